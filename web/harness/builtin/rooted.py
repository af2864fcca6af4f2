"""One folder, and no way out of it.

Paths are checked by `paths`, and opened by `beneath`. Where the system cannot do so, making a
`RootedFolder` raises ConfigurationError.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from web.harness.builtin.paths import (
    MAX_DEPTH,
    RESERVED_FOLDER,
    TEMPORARY_PREFIX,
    fault_of,
    parse_path,
)
from web.harness.builtin.spellings import spelled, spelled_way, spellings
from web.harness.tools.beneath import (
    FILE_MODE,
    FOLDER_FLAGS,
    FOLDER_MODE,
    chunks_of,
    folder_below,
    in_words,
    is_plain,
    open_folder,
    open_plain,
    plain_status,
)
from web.harness.tools.words import clean, shorten, shown
from web.harness.values.errors import ConfigurationError, LimitExceeded, NotFound

_MAKE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


MAX_NAMED = 20
"""So much of what a listing leaves out is named, each by so many characters."""
MAX_NAMED_CHARS = 300


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


class LeftOut(NamedTuple):
    """Something that lies in a folder and is no file that can be used: its path, and why."""

    path: str
    why: str


@dataclass(slots=True)
class Listing:
    """The files of a folder, sorted by path.

    `left_out` counts what is there but cannot be reached by a path: links, devices, names that
    `parse_path` refuses, folders too deep; the first of it is `named`. The reserved folder is no
    part of it. `more` is True where the listing stopped at its limit.
    """

    files: list[FileEntry] = field(default_factory=list)
    left_out: int = 0
    named: list[LeftOut] = field(default_factory=list)
    more: bool = False

    def leave_out(self, path: str, why: str) -> None:
        self.left_out += 1
        if len(self.named) < MAX_NAMED:
            self.named.append(LeftOut(clean(shorten(path, MAX_NAMED_CHARS)), why))


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
            descriptor = open_plain(parent, spelled(parent, name), path)
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
            return _replace(parent, spelled(parent, name), path, content, check)

    def delete(self, path: str, check: Callable[[os.stat_result | None], None] = accept) -> None:
        """Removes a file, and the folders around it that hold nothing any more."""
        *folders, name = parse_path(path)
        with self.folder(folders, path, create=False) as parent:
            name = spelled(parent, name)
            check(plain_status(parent, name, path))
            os.unlink(name, dir_fd=parent)
            os.fsync(parent)
        while folders:
            *folders, name = folders
            with self.folder(folders, path, create=False) as parent:
                try:
                    os.rmdir(spelled(parent, name), dir_fd=parent)
                except OSError:
                    return

    def status(self, path: str) -> os.stat_result | None:
        """The file's status, None where there is none; ToolError for what is no plain file."""
        *folders, name = parse_path(path)
        try:
            with self.folder(folders, path, create=False) as parent:
                return plain_status(parent, spelled(parent, name), path)
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

        The names are taken as they are, in whatever form of Unicode they are there; `path` is what
        errors call the way.
        """
        try:
            if create:
                self.root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            root = os.open(self.root, FOLDER_FLAGS)
        except OSError as error:
            raise in_words(error, path, folder=True) from error
        try:
            way = spelled_way(root, names)
            with folder_below(root, way, path, create=create) as descriptor:
                yield descriptor
        finally:
            os.close(root)


def make_temporary(parent: int) -> tuple[str, int]:
    """The name and the descriptor of a new file that no path names."""
    name = TEMPORARY_PREFIX + secrets.token_hex(8)
    return name, os.open(name, _MAKE_FLAGS, 0o600, dir_fd=parent)


def write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


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
            check(plain_status(parent, name, path))
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
            raise in_words(error, path) from error
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
    known: dict[str, str] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY_PREFIX):
                continue
            if entry.name == RESERVED_FOLDER and not names:
                continue
            name = unicodedata.normalize("NFC", entry.name)
            inner = (*names, name)
            path = "/".join(inner)
            if name != entry.name:
                known = known or spellings(folder)
                if name.isascii():
                    listing.leave_out(path, "it is spelled with a look-alike of another character")
                    continue
                if known.get(name) != entry.name:
                    listing.leave_out(path, "another one here has the same name, spelled otherwise")
                    continue
            try:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and len(inner) < MAX_DEPTH:
                    descriptor = open_folder(folder, entry.name, create=False)
                    try:
                        _walk(descriptor, inner, listing, limit)
                    finally:
                        os.close(descriptor)
                elif why := _refusal(path, status):
                    listing.leave_out(path, why)
                elif len(listing.files) < limit:
                    stamp = Stamp.of(status)
                    listing.files.append(FileEntry(path, stamp.size, status.st_mtime, stamp))
                else:
                    listing.more = True
            except OSError:
                # Removed, or swapped for a link, since its name was read.
                listing.leave_out(path, "it was changed while it was looked at")
            if listing.more:
                return


def _refusal(path: str, status: os.stat_result) -> str:
    """Why something in the folder is no file that can be used; '' where it is one."""
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return "it is a link"
    if stat.S_ISDIR(mode):
        return f"it is deeper than {MAX_DEPTH} levels"
    if not stat.S_ISREG(mode):
        return "it is a device, pipe or socket"
    if not is_plain(status):
        return "it has a second name elsewhere (a hard link)"
    return fault_of(path)
