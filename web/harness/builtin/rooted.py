"""One folder, and no way out of it.

Every name of a path is opened relative to the descriptor of the folder before it, without
following links, so that what was checked is what is used: a folder that is swapped for a link
meanwhile is either not entered, or was entered before and is still the same folder. This needs
`dir_fd` and `O_NOFOLLOW`, which Linux and macOS have and Windows has not; there, making a
`RootedFolder` raises ConfigurationError.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from web.harness.builtin.paths import MAX_DEPTH, TEMPORARY_PREFIX, parse_path
from web.harness.tools.words import shown
from web.harness.values.errors import ConfigurationError, LimitExceeded, NotFound, ToolError

FILE_MODE = 0o644
FOLDER_MODE = 0o755


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """What one folder may hold. Sizes are in bytes."""

    max_file_bytes: int = 1024 * 1024
    max_files: int = 1000


class FileEntry(NamedTuple):
    """One file: its path from the root, its size in bytes, its change in seconds since 1970."""

    path: str
    size: int
    modified: float


@dataclass(slots=True)
class Listing:
    """The files of a folder, sorted by path.

    `left_out` counts what is there but cannot be reached by a path: links, devices, names that
    `parse_path` refuses, folders too deep. `more` is True where the listing stopped at its limit.
    """

    files: list[FileEntry] = field(default_factory=list)
    left_out: int = 0
    more: bool = False


OPEN_ATTEMPTS = 100
"""Times a file may be replaced while it is opened before that is an error."""


class RootedFolder:
    """Files below one folder, which is made by the first write.

    All methods block and may be called from several threads. A path is relative, in the form
    that `parse_path` takes. Each method raises ToolError for a path that is refused, NotFound for
    a file that is not there, LimitExceeded where a limit would be passed, and OSError for what
    the disk refuses.
    """

    def __init__(self, root: Path, limits: FolderLimits | None = None) -> None:
        # rename stands for replace in this set.
        if not {os.open, os.mkdir, os.stat, os.rename, os.unlink} <= os.supports_dir_fd:
            raise ConfigurationError(
                "This system cannot open files relative to a folder.",
                hint="File tools need Linux or macOS.",
            )
        self.root = root
        self.limits = limits or FolderLimits()
        self._writing = threading.Lock()

    def read(self, path: str) -> bytes:
        """The whole file."""
        with self.open_read(path) as descriptor:
            limit = self.limits.max_file_bytes
            chunks: list[bytes] = []
            size = 0
            # A file may grow while it is read, so its size is no promise.
            while size <= limit and (chunk := os.read(descriptor, 1 << 16)):
                chunks.append(chunk)
                size += len(chunk)
            if size > limit:
                raise self._too_large(path)
            return b"".join(chunks)

    @contextlib.contextmanager
    def open_read(self, path: str) -> Iterator[int]:
        """A descriptor for reading, of a plain file that has one name and a size in bounds."""
        *folders, name = parse_path(path)
        with self._folder(folders, path, create=False) as parent:
            descriptor = self._open_plain(parent, name, path)
        try:
            status = os.fstat(descriptor)
            _refuse_unless_plain(status, path)
            if status.st_size > self.limits.max_file_bytes:
                raise self._too_large(path)
            yield descriptor
        finally:
            os.close(descriptor)

    def write_atomic(self, path: str, content: bytes) -> bool:
        """Makes or replaces a file in one step; True if it was made.

        Readers see the old content or the new one, never a part, also after a crash. Folders on
        the way are made. The file gets mode 0644.
        """
        *folders, name = parse_path(path)
        if len(content) > self.limits.max_file_bytes:
            raise self._too_large(path)
        # One write at a time, or two could pass the limit of files together.
        with self._writing:
            before = self.status(path)
            if before is None and self._count() >= self.limits.max_files:
                raise LimitExceeded(
                    f"The folder holds {self.limits.max_files:,} files, which is the limit.",
                    hint="Write to a file that exists.",
                )
            with self._folder(folders, path, create=True) as parent:
                _replace(parent, name, path, content)
            return before is None

    def status(self, path: str) -> os.stat_result | None:
        """The file's status, None where there is none; ToolError for what is no plain file."""
        *folders, name = parse_path(path)
        try:
            with self._folder(folders, path, create=False) as parent:
                return self._plain(parent, name, path)
        except NotFound:
            return None

    def walk(self, limit: int | None = None) -> Listing:
        """The files of the whole folder, at most `limit` (by default the limit of files)."""
        listing = Listing()
        limit = self.limits.max_files if limit is None else limit
        with contextlib.suppress(NotFound), self._folder([], "", create=False) as root:
            _walk(root, (), listing, limit)
        listing.files.sort()
        return listing

    def _count(self) -> int:
        return len(self.walk().files)

    def _too_large(self, path: str) -> LimitExceeded:
        limit = self.limits.max_file_bytes
        return LimitExceeded(f"{shown(path)} is larger than the limit of {limit:,} bytes.")

    @classmethod
    def _open_plain(cls, parent: int, name: str, path: str) -> int:
        """Opens the very file that was looked at: one that takes its place is looked at anew.

        A hard link that is replaced after it was opened has one name left, as a plain file has; but
        that is not the name by which it was opened.
        """
        # Should a pipe have taken the file's place by now, opening it must not wait.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        for _ in range(OPEN_ATTEMPTS):
            seen = cls._plain(parent, name, path)
            try:
                descriptor = os.open(name, flags, dir_fd=parent)
            except OSError as error:
                raise _in_words(error, path) from error
            status = os.fstat(descriptor)
            if os.path.samestat(seen, status) and _is_plain(status) and _is_named(descriptor, name):
                return descriptor
            os.close(descriptor)
        raise ToolError(f"The file '{path}' is being replaced all the time. Try again later.")

    @staticmethod
    def _plain(parent: int, name: str, path: str) -> os.stat_result:
        """The status of a plain file, before it is opened: opening a device may already act."""
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            raise _in_words(error, path) from error
        _refuse_unless_plain(status, path)
        return status

    @contextlib.contextmanager
    def _folder(self, names: list[str], path: str, *, create: bool) -> Iterator[int]:
        """A descriptor of the folder that the names lead to; closed at the end."""
        if create:
            self.root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = -1
        try:
            descriptor = os.open(self.root, flags)
            for name in names:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, FOLDER_MODE, dir_fd=descriptor)
                inner = os.open(name, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise _in_words(error, path, folder=True) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _replace(parent: int, name: str, path: str, content: bytes) -> None:
    """Writes a temporary file beside the target, then gives it the target's name."""
    temporary = TEMPORARY_PREFIX + secrets.token_hex(8)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=parent)
    try:
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
            # Set here, since the mode given to open is cut by the umask.
            os.fchmod(descriptor, FILE_MODE)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        if isinstance(error, OSError):
            raise _in_words(error, path) from error
        raise
    os.fsync(parent)


def _walk(folder: int, names: tuple[str, ...], listing: Listing, limit: int) -> None:
    """Adds what lies in the open folder, and below it, until the limit is reached."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY_PREFIX):
                continue
            inner = (*names, entry.name)
            try:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and len(inner) < MAX_DEPTH:
                    descriptor = os.open(entry.name, flags, dir_fd=folder)
                    try:
                        _walk(descriptor, inner, listing, limit)
                    finally:
                        os.close(descriptor)
                elif not _reachable(inner, status):
                    listing.left_out += 1
                elif len(listing.files) < limit:
                    listing.files.append(
                        FileEntry("/".join(inner), status.st_size, status.st_mtime)
                    )
                else:
                    listing.more = True
            except OSError:
                # Removed, or swapped for a link, since its name was read.
                listing.left_out += 1
            if listing.more:
                return


def _reachable(names: tuple[str, ...], status: os.stat_result) -> bool:
    try:
        return parse_path("/".join(names)) == names and _is_plain(status)
    except ToolError:
        return False


def _is_named(descriptor: int, name: str) -> bool:
    """Whether an open file still has the name it was opened by. Where the system cannot say so
    (it has no /proc), the looks before and after it was opened have to do."""
    try:
        return os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")) == name
    except FileNotFoundError:
        return True


def _is_plain(status: os.stat_result) -> bool:
    # A file that was replaced after it was opened has no name left, and is as good.
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1


def _refuse_unless_plain(status: os.stat_result, path: str) -> None:
    if _is_plain(status):
        return
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        what = "is a folder"
    elif stat.S_ISLNK(mode):
        what = "is a link, and links are not followed"
    elif stat.S_ISREG(mode):
        what = "has a second name elsewhere (a hard link)"
    else:
        what = "is a device, pipe or socket"
    raise ToolError(f"{shown(path)} {what}; only plain files can be used.")


def _in_words(error: OSError, path: str, *, folder: bool = False) -> Exception:
    """The error that a model and a person can use, or the same one where it is the disk's."""
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"There is no file {shown(path)}.")
        case errno.ELOOP | errno.ENOTDIR if folder:
            return ToolError(f"A folder on the way to {shown(path)} is a link or a file.")
        case errno.ELOOP:
            return ToolError(f"{shown(path)} is a link, and links are not followed.")
        case errno.EISDIR | errno.ENOTEMPTY:
            return ToolError(f"{shown(path)} is a folder; only plain files can be used.")
        case errno.ENAMETOOLONG:
            return ToolError(f"The path {shown(path)} is too long for this disk.")
        case errno.ENXIO:
            return ToolError(f"{shown(path)} is a device, pipe or socket.")
        case _:
            return error
