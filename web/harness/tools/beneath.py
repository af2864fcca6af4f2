"""Files and folders below one that is open, and no way out of it.

Every name of a path is opened relative to the descriptor of the folder before it, without
following links, so that what was checked is what is used: a folder that is swapped for a link
meanwhile is either not entered, or was entered before and is still the same folder. This needs
`dir_fd` and `O_NOFOLLOW`, which Linux and macOS have and Windows has not.

The names are taken as they are: whoever lets strangers write paths checks them first. `path` is
what errors call the way.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from web.harness.tools.words import shown
from web.harness.values.errors import NotFound, ToolError

FILE_MODE = 0o644
FOLDER_MODE = 0o755
CHUNK_BYTES = 256 * 1024

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

OPEN_ATTEMPTS = 100
"""Times a file may be replaced while it is opened before that is an error."""

Mark = tuple[int, int, int, int]
"""Tells that a file or folder has changed: inode, size, and two times in nanoseconds."""

# Should a pipe have taken a file's place, opening it does not wait.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_folder(parent: int, name: str, *, create: bool = False) -> int:
    """A descriptor of the folder of that name, which is made where it is missing, if so wished.

    Raises OSError, also for a link.
    """
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, FOLDER_MODE, dir_fd=parent)
    return os.open(name, FOLDER_FLAGS, dir_fd=parent)


@contextlib.contextmanager
def folder_below(
    start: int, names: Sequence[str], path: str, *, create: bool = False
) -> Iterator[int]:
    """A descriptor of the folder that the names lead to from an open one; closed at the end.

    Raises NotFound, ToolError where a link or a file is in the way, and OSError.
    """
    descriptor = os.dup(start)
    try:
        for name in names:
            inner = open_folder(descriptor, name, create=create)
            os.close(descriptor)
            descriptor = inner
    except OSError as error:
        os.close(descriptor)
        raise in_words(error, path, folder=True) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_plain(parent: int, name: str, path: str, *, linked: bool = False) -> int:
    """Opens for reading the very file that was looked at: one in its place is looked at anew.

    With `linked` it may have other names elsewhere, as hard links do. Without, one that is replaced
    after it was opened has one name left, as a plain file has; but that is not the name by which it
    was opened. Raises NotFound, ToolError for what is no plain file, and OSError.
    """
    for _ in range(OPEN_ATTEMPTS):
        seen = plain_status(parent, name, path, linked=linked)
        try:
            descriptor = os.open(name, _READ_FLAGS, dir_fd=parent)
        except OSError as error:
            raise in_words(error, path) from error
        if _is_same(descriptor, seen) and (linked or _has_one_name(descriptor, name)):
            return descriptor
        os.close(descriptor)
    raise ToolError(f"The file {shown(path)} is being replaced all the time. Try again later.")


def plain_status(parent: int, name: str, path: str, *, linked: bool = False) -> os.stat_result:
    """The status of a plain file, before it is opened: opening a device may already act.

    Raises as `open_plain`.
    """
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise in_words(error, path) from error
    _refuse_unless_plain(status, path, linked)
    return status


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


def mark_of(status: os.stat_result) -> Mark:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def flush_names(folder: Path) -> None:
    """Brings the names in a folder to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_plain(status: os.stat_result, *, linked: bool = False) -> bool:
    """Whether it is that of a file, with one name unless `linked`."""
    # A file that was replaced after it was opened has no name left, and is as good.
    return stat.S_ISREG(status.st_mode) and (linked or status.st_nlink <= 1)


def in_words(error: OSError, path: str, *, folder: bool = False) -> Exception:
    """The error that a model and a person can use, or the same one where it is the disk's.

    `folder` tells that it came on the way to the file.
    """
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


def _is_same(descriptor: int, seen: os.stat_result) -> bool:
    status = os.fstat(descriptor)
    return os.path.samestat(seen, status) and stat.S_ISREG(status.st_mode)


def _has_one_name(descriptor: int, name: str) -> bool:
    """Whether an open file still has the name it was opened by, and no other. Where the system
    cannot tell the name (it has no /proc), the looks before and after it was opened have to do."""
    if not is_plain(os.fstat(descriptor)):
        return False
    try:
        return os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")) == name
    except FileNotFoundError:
        return True


def _refuse_unless_plain(status: os.stat_result, path: str, linked: bool) -> None:
    if is_plain(status, linked=linked):
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
