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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from web.harness.builtin.paths import MAX_DEPTH, RESERVED_FOLDER, TEMPORARY_PREFIX, parse_path
from web.harness.tools.words import shown
from web.harness.values.errors import ConfigurationError, LimitExceeded, NotFound, ToolError

FILE_MODE = 0o644
FOLDER_MODE = 0o755
CHUNK_BYTES = 256 * 1024

OPEN_ATTEMPTS = 100
"""Times a file may be replaced while it is opened before that is an error."""

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Stamp(NamedTuple):
    """What of a file's status changes with its content. Times are in nanoseconds since 1970.

    The change time is the system's own: no editor can put it back. But clocks of disks tick some
    milliseconds apart, so a change right after another may leave the same stamp.
    """

    size: int
    modified: int
    changed: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class FileEntry(NamedTuple):
    """One file: its path from the root, its size in bytes, its change in seconds since 1970."""

    path: str
    size: int
    modified: float
    stamp: Stamp


@dataclass(slots=True)
class Listing:
    """The files of a folder, sorted by path.

    `left_out` counts what is there but cannot be reached by a path: links, devices, names that
    `parse_path` refuses, folders too deep. The reserved folder is no part of it. `more` is True
    where the listing stopped at its limit.
    """

    files: list[FileEntry] = field(default_factory=list)
    left_out: int = 0
    more: bool = False


def accept(status: os.stat_result | None) -> None:
    """The check of whoever does not mind what is replaced."""


class RootedFolder:
    """Files below one folder, which is made by the first write.

    All methods block and may be called from several threads. A path is relative, in the form
    that `parse_path` takes. Each method raises ToolError for a path that is refused, NotFound for
    a file that is not there, LimitExceeded where a limit would be passed, and OSError for what
    the disk refuses.
    """

    def __init__(self, root: Path) -> None:
        # rename stands for replace in this set.
        if not {os.open, os.mkdir, os.stat, os.rename, os.unlink, os.rmdir} <= os.supports_dir_fd:
            raise ConfigurationError(
                "This system cannot open files relative to a folder.",
                hint="File tools need Linux or macOS.",
            )
        self.root = root

    def read(self, path: str, limit: int) -> bytes:
        """The whole file, of at most `limit` bytes."""
        with self.open_read(path) as descriptor:
            data = b"".join(chunks_of(descriptor, limit + 1))
        if len(data) > limit:
            raise LimitExceeded(f"{shown(path)} is larger than the limit of {limit:,} bytes.")
        return data

    @contextlib.contextmanager
    def open_read(self, path: str) -> Iterator[int]:
        """A descriptor for reading, of a plain file that has one name, of any size."""
        *folders, name = parse_path(path)
        with self.folder(folders, path, create=False) as parent:
            descriptor = open_plain(parent, name, path)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def write_atomic(
        self,
        path: str,
        content: Iterable[bytes],
        check: Callable[[os.stat_result | None], None] = accept,
    ) -> os.stat_result:
        """Makes or replaces a file in one step, and returns the status of the new one.

        Readers see the old content or the new one, never a part, also after a crash. Folders on
        the way are made. The file gets mode 0644. `check` is given the status of what is there,
        None for nothing, right before it is replaced, and may raise to stop that.
        """
        *folders, name = parse_path(path)
        self.status(path)
        with self.folder(folders, path, create=True) as parent:
            return _replace(parent, name, path, content, check)

    def delete(self, path: str, check: Callable[[os.stat_result | None], None] = accept) -> None:
        """Removes a file, and the folders around it that hold nothing any more."""
        *folders, name = parse_path(path)
        with self.folder(folders, path, create=False) as parent:
            check(_plain(parent, name, path))
            os.unlink(name, dir_fd=parent)
            os.fsync(parent)
        while folders:
            *folders, name = folders
            with self.folder(folders, path, create=False) as parent:
                try:
                    os.rmdir(name, dir_fd=parent)
                except OSError:
                    return

    def status(self, path: str) -> os.stat_result | None:
        """The file's status, None where there is none; ToolError for what is no plain file."""
        *folders, name = parse_path(path)
        try:
            with self.folder(folders, path, create=False) as parent:
                return _plain(parent, name, path)
        except NotFound:
            return None

    def walk(self, limit: int) -> Listing:
        """The files of the whole folder, at most `limit`."""
        listing = Listing()
        with contextlib.suppress(NotFound), self.folder([], "", create=False) as root:
            _walk(root, (), listing, limit)
        listing.files.sort()
        return listing

    def remove_leftovers(self) -> None:
        """Removes what writes left behind that a crash ended. Nobody may write meanwhile."""
        with contextlib.suppress(NotFound), self.folder([], "", create=False) as root:
            _remove_leftovers(root, 1)

    @contextlib.contextmanager
    def folder(self, names: list[str], path: str, *, create: bool) -> Iterator[int]:
        """A descriptor of the folder that the names lead to; closed at the end.

        The names are taken as they are; `path` is what errors call the way.
        """
        descriptor = -1
        try:
            if create:
                self.root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            descriptor = os.open(self.root, _FOLDER_FLAGS)
            for name in names:
                inner = open_folder(descriptor, name, create=create)
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


def chunks_of(descriptor: int, limit: int | None = None) -> Iterator[bytes]:
    """What an open file holds from where it stands, at most `limit` bytes, piece by piece."""
    left = limit
    # A file may grow while it is read, so its size is no promise.
    while left is None or left > 0:
        chunk = os.read(descriptor, CHUNK_BYTES if left is None else min(CHUNK_BYTES, left))
        if not chunk:
            return
        if left is not None:
            left -= len(chunk)
        yield chunk


def open_folder(parent: int, name: str, *, create: bool) -> int:
    """A descriptor of the folder of that name, which is made where it is missing, if so wished."""
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, FOLDER_MODE, dir_fd=parent)
    return os.open(name, _FOLDER_FLAGS, dir_fd=parent)


def make_temporary(parent: int) -> tuple[str, int]:
    """The name and the descriptor of a new file that no path names."""
    name = TEMPORARY_PREFIX + secrets.token_hex(8)
    return name, os.open(name, _MAKE_FLAGS, 0o600, dir_fd=parent)


def write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def open_plain(parent: int, name: str, path: str) -> int:
    """Opens for reading the very file that was looked at: one in its place is looked at anew.

    A hard link that is replaced after it was opened has one name left, as a plain file has; but
    that is not the name by which it was opened.
    """
    for _ in range(OPEN_ATTEMPTS):
        seen = _plain(parent, name, path)
        try:
            # Should a pipe have taken the file's place by now, opening it does not wait.
            descriptor = os.open(name, _READ_FLAGS, dir_fd=parent)
        except OSError as error:
            raise _in_words(error, path) from error
        status = os.fstat(descriptor)
        if os.path.samestat(seen, status) and _is_plain(status) and _is_named(descriptor, name):
            return descriptor
        os.close(descriptor)
    raise ToolError(f"The file '{path}' is being replaced all the time. Try again later.")


def _plain(parent: int, name: str, path: str) -> os.stat_result:
    """The status of a plain file, before it is opened: opening a device may already act."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise _in_words(error, path) from error
    _refuse_unless_plain(status, path)
    return status


def _replace(
    parent: int,
    name: str,
    path: str,
    content: Iterable[bytes],
    check: Callable[[os.stat_result | None], None],
) -> os.stat_result:
    """Writes a temporary file beside the target, then gives it the target's name."""
    temporary, descriptor = make_temporary(parent)
    try:
        for chunk in content:
            write_all(descriptor, chunk)
        # Set here, since the mode given to open is cut by the umask.
        os.fchmod(descriptor, FILE_MODE)
        os.fsync(descriptor)
        try:
            check(_plain(parent, name, path))
        except NotFound:
            check(None)
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
        # Taking the name has changed the file's status.
        return os.fstat(descriptor)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        if isinstance(error, OSError):
            raise _in_words(error, path) from error
        raise
    finally:
        os.close(descriptor)


def _remove_leftovers(folder: int, depth: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == RESERVED_FOLDER and depth == 1:
                continue
            with contextlib.suppress(OSError):
                if entry.name.startswith(TEMPORARY_PREFIX):
                    os.unlink(entry.name, dir_fd=folder)
                elif depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                    inner = open_folder(folder, entry.name, create=False)
                    try:
                        _remove_leftovers(inner, depth + 1)
                    finally:
                        os.close(inner)


def _walk(folder: int, names: tuple[str, ...], listing: Listing, limit: int) -> None:
    """Adds what lies in the open folder, and below it, until the limit is reached."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY_PREFIX):
                continue
            if entry.name == RESERVED_FOLDER and not names:
                continue
            inner = (*names, entry.name)
            try:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and len(inner) < MAX_DEPTH:
                    descriptor = open_folder(folder, entry.name, create=False)
                    try:
                        _walk(descriptor, inner, listing, limit)
                    finally:
                        os.close(descriptor)
                elif not _reachable(inner, status):
                    listing.left_out += 1
                elif len(listing.files) < limit:
                    stamp = Stamp.of(status)
                    listing.files.append(
                        FileEntry("/".join(inner), stamp.size, status.st_mtime, stamp)
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
        case errno.ELOOP | errno.ENOTDIR | errno.EEXIST if folder:
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
