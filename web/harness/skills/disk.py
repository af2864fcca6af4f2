"""A skill's folder on disk, read without following links: see `beneath`.

A file with a second name (a hard link) is as good as any here: some installers of packages link all
that they install from a cache.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from web.harness.skills.names import LITTER, MAX_DEPTH, SKILL_FILE, fault_of_name
from web.harness.skills.skill import SkillFile
from web.harness.tools.beneath import (
    Mark,
    chunks_of,
    folder_below,
    mark_of,
    open_folder,
    open_plain,
)
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded, NotFound, SkillRefused, ToolError


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


@contextmanager
def opened_folder(name: str, parent: int) -> Iterator[int]:
    """A descriptor of a folder in an open one; raises OSError, also for a link."""
    descriptor = open_folder(parent, name)
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
        with folder_below(folder, names[:-1], path) as inner:
            descriptor = open_plain(inner, names[-1], path, linked=True)
    except NotFound:
        if path == SKILL_FILE:
            raise SkillRefused("There is no SKILL.md in the folder.") from None
        raise NotFound(f"There is no file {shown(path)} in this skill.") from None
    except ToolError as error:
        raise SkillRefused(error.message) from error
    try:
        content = b"".join(chunks_of(descriptor, limit + 1))
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise LimitExceeded(f"{path} is larger than {limit:,} bytes.", code="too_large")
    return content


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
