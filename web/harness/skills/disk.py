"""A skill's folder on disk, read without following links.

Every name of a path is opened relative to the descriptor of the folder before it, so that what was
checked is what is read. A file with a second name (a hard link) is as good as any here: some
installers of packages link all that they install from a cache.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from web.harness.skills.names import LITTER, MAX_DEPTH, SKILL_FILE, fault_of_name
from web.harness.skills.skill import SkillFile
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded, NotFound, SkillRefused

FILE_MODE = 0o644
FOLDER_MODE = 0o755

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Should a pipe have taken a file's place, opening it must not wait.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Mark = tuple[int, int, int, int]
"""Tells that a file or folder has changed: inode, size, and two times in nanoseconds."""


@dataclass(slots=True)
class Contents:
    """What lies in a skill's folder, by path and sorted.

    `marks` are those of `SKILL.md` and of each folder, '' being the skill's own. `escaping` is a
    link that leads out of the folder, if there is one. `more` is True where there are more files
    than were asked for.
    """

    files: list[SkillFile] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    left_out: int = 0
    escaping: str = ""
    more: bool = False

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def mark_of(status: os.stat_result) -> Mark:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@contextmanager
def opened_folder(path: Path | str, parent: int | None = None) -> Iterator[int]:
    """A descriptor of a folder; raises OSError, also for a link."""
    descriptor = os.open(path, _FOLDER, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(folder: int, names: tuple[str, ...], limit: int) -> bytes:
    """The whole file that the names lead to from an open folder.

    Raises NotFound, SkillRefused for what is no plain file, LimitExceeded, and OSError.
    """
    path = "/".join(names)
    try:
        descriptor = _open_file(folder, names, path)
    except OSError as error:
        raise _in_words(error, path) from error
    try:
        chunks: list[bytes] = []
        size = 0
        # A file may grow while it is read, so its size is no promise.
        while size <= limit and (chunk := os.read(descriptor, 1 << 16)):
            chunks.append(chunk)
            size += len(chunk)
    finally:
        os.close(descriptor)
    if size > limit:
        raise LimitExceeded(f"{path} is larger than {limit:,} bytes.", code="too_large")
    return b"".join(chunks)


def contents(folder: int, place: Path, limit: int) -> Contents:
    """All that lies in an open folder, which is at `place`, and below it; at most `limit` files."""
    found = Contents(marks={"": mark_of(os.fstat(folder))})
    _walk(folder, (), place, found, limit)
    found.files.sort()
    return found


def has_changed(place: Path, marks: dict[str, Mark]) -> bool:
    """Whether `SKILL.md` was written, or any name in these folders added, removed or replaced."""
    try:
        # Joined as text: this is done for each skill before each answer of a model.
        folder = str(place)
        return any(
            mark_of(os.lstat(f"{folder}/{path}" if path else folder)) != mark
            for path, mark in marks.items()
        )
    except OSError:
        return True


def _open_file(folder: int, names: tuple[str, ...], path: str) -> int:
    *above, name = names
    if above:
        with opened_folder(above[0], folder) as inner:
            return _open_file(inner, names[1:], path)
    # Looked at before it is opened: opening a device may already act.
    _refuse_unless_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        _refuse_unless_plain(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _walk(folder: int, above: tuple[str, ...], place: Path, found: Contents, limit: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            names = (*above, entry.name)
            path = "/".join(names)
            # Removed, or swapped for a link, since its name was read.
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode) and _leads_out(place, path):
                    found.escaping = path
                elif entry.name.casefold() in LITTER:
                    continue
                elif fault_of_name(entry.name) or len(names) > MAX_DEPTH:
                    found.left_out += not entry.name.startswith(".")
                elif stat.S_ISDIR(status.st_mode):
                    with opened_folder(entry.name, folder) as inner:
                        found.marks[path] = mark_of(os.fstat(inner))
                        _walk(inner, names, place, found, limit)
                elif not stat.S_ISREG(status.st_mode):
                    found.left_out += 1
                elif len(found.files) < limit:
                    if path == SKILL_FILE:
                        found.marks[path] = mark_of(status)
                    found.files.append(SkillFile(path, status.st_size))
                else:
                    found.more = True
            if found.more:
                return


def _leads_out(place: Path, path: str) -> bool:
    """Whether a link points out of the skill's folder. No link is ever followed to read; this only
    tells one that is merely left out from one that a person should know of."""
    root = os.path.realpath(place)
    return os.path.commonpath([root, os.path.realpath(place / path)]) != root


def _refuse_unless_plain(status: os.stat_result, path: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        raise SkillRefused(f"{shown(path)} is a link, and links are not followed.")
    what = "a folder" if stat.S_ISDIR(mode) else "a device, pipe or socket"
    raise SkillRefused(f"{shown(path)} is {what}; only plain files can be read.")


def _in_words(error: OSError, path: str) -> Exception:
    """The error that a model and a person can use, or the same one where it is the disk's."""
    match error.errno:
        case errno.ENOENT if path == SKILL_FILE:
            return SkillRefused("There is no SKILL.md in the folder.")
        case errno.ENOENT:
            return NotFound(f"There is no file {shown(path)} in this skill.")
        case errno.ELOOP | errno.ENOTDIR:
            return SkillRefused(f"{shown(path)} leads over a link or a file.")
        case errno.ENXIO:
            return SkillRefused(f"{shown(path)} is a device, pipe or socket.")
        case _:
            return error
