"""One folder of skills, as it is on disk at this moment."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from web.harness.skills import disk
from web.harness.skills.limits import SkillLimits
from web.harness.skills.names import SKILL_FILE, parse_file_path
from web.harness.skills.places import COMING, finish
from web.harness.skills.skill import Skill, SkillOrigin, SkillText, decoded, read_skill
from web.harness.tools.beneath import Mark, mark_of
from web.harness.tools.file_lock import FileLock
from web.harness.tools.words import shown
from web.harness.values.errors import HarnessError, NotFound, SkillRefused

LOCK_NAME = ".lock"
BUSY_SECONDS = 10.0
"""So long another program is waited for that changes skills."""

SETTLED_NS = 2_000_000_000
"""Nanoseconds after which a change counts as old. Times on disk are coarse: two changes in one tick
look like one, so what has changed just now is read at each look."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A skill as it was when its marks were taken."""

    skill: Skill
    marks: dict[str, Mark]
    settled: bool


class SkillFolder:
    """The skills below `root`, one folder each; names that begin with a dot are not looked at.

    Nothing watches the disk: each call looks at the marks of what it knows (some 30 microseconds a
    skill) and reads what has changed. A root that is not there holds no skills. All methods block
    and may be called from several threads; while one of them writes, the others wait. `changing` is
    for whoever moves a skill, so that nobody here sees the moment in between, and no other program
    changes anything meanwhile.
    """

    def __init__(
        self,
        root: Path,
        *,
        origin: SkillOrigin = "server",
        writable: bool = False,
        limits: SkillLimits | None = None,
        now_ns: Callable[[], int] = time.time_ns,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.root = root
        self.origin: SkillOrigin = origin
        self.writable = writable
        self.limits = limits or SkillLimits()
        self.lock = threading.RLock()
        self._file_lock = FileLock(LOCK_NAME, busy_seconds, _busy)
        self._changed_by: int | None = None
        self._now_ns = now_ns
        self._seen: dict[str, _Seen] = {}

    def skills(self) -> tuple[Skill, ...]:
        """All skills by name, the broken ones with their fault among them."""
        self.mend()
        with self.lock:
            names = self._names()
            most = self.limits.max_skills
            self._seen = {name: self._look(name) for name in names[:most]}
            found = [seen.skill for seen in self._seen.values()]
        if len(names) > most:
            left = len(names) - most
            found.append(
                self._broken(
                    names[most],
                    f"At most {most:,} skills are read; {left:,} are left out, this one first.",
                )
            )
        return tuple(found)

    def find(self, name: str) -> Skill | None:
        """The skill of this name, broken or not."""
        self.mend()
        with self.lock:
            on_disk = self._on_disk(name)
            if on_disk is None:
                return None
            seen = self._seen[on_disk] = self._look(on_disk)
            return seen.skill

    def name_on_disk(self, name: str) -> str:
        """How the folder of a skill is called. Raises NotFound."""
        on_disk = self._on_disk(name)
        if on_disk is None:
            raise NotFound(f"There is no skill {shown(name)}.")
        return on_disk

    @contextmanager
    def changing(self) -> Iterator[None]:
        """While something in the folder is changed, by one thread of one program.

        What a program that died had begun is ended first. Not to be nested. Raises SkillRefused
        (`skills_busy`) where another program keeps the folder too long, NotFound where there is no
        folder, and OSError.
        """
        try:
            root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotFound("There are no skills here.") from None
        try:
            # The file first: whoever only looks does not wait for another program.
            with self._file_lock.held(root), self.lock:
                self._changed_by = threading.get_ident()
                try:
                    finish(self.root, self.limits.kept_deleted)
                    yield
                finally:
                    self._changed_by = None
        finally:
            os.close(root)

    def mend(self) -> None:
        """Ends what a program that died had begun, where that can be done."""
        if (
            self.writable
            and self._changed_by != threading.get_ident()
            and os.path.lexists(self.root / COMING)
        ):
            with suppress(HarnessError, OSError), self.changing():
                pass

    def read(self, name: str) -> SkillText:
        """A skill with its text and the files beside it.

        A broken one is read as well, so that it can be mended; its body is empty. Raises NotFound,
        SkillRefused or LimitExceeded for a `SKILL.md` that cannot be read as text, and OSError.
        """
        with self.lock:
            skill, on_disk = self._known(name), self.name_on_disk(name)
            with self.opened(on_disk) as folder:
                found = disk.contents(folder, self.root / on_disk, self.limits.max_files)
                content = disk.read_file(folder, (SKILL_FILE,), self.limits.max_skill_md_bytes)
        source = decoded(content)
        body = "" if skill.fault else read_skill(source)[1]
        files = tuple(file for file in found.files if file.path != SKILL_FILE)
        digest = hashlib.sha256(content).hexdigest()
        return SkillText(skill, source, body, digest, files, found.left_out)

    def read_file(self, name: str, path: str, limit: int | None = None) -> bytes:
        """One file of a skill, of at most `limit` bytes.

        Raises NotFound, SkillRefused for a path or file that is refused, LimitExceeded, OSError.
        """
        names = parse_file_path(path)
        most = self.limits.max_file_bytes if limit is None else limit
        with self.lock, self.opened(self.name_on_disk(name)) as folder:
            return disk.read_file(folder, names, most)

    def read_all(self, name: str) -> list[tuple[str, bytes]]:
        """Path and content of every file of a skill that is whole. Raises as `read_file`."""
        with self.lock:
            skill = self._known(name)
            if skill.fault:
                raise SkillRefused(f"The skill {shown(name)} is broken: {skill.fault}")
            with self.opened(name) as folder:
                left = self.limits.max_skill_bytes
                read: list[tuple[str, bytes]] = []
                for file in disk.contents(folder, self.root / name, self.limits.max_files).files:
                    most = min(left, self.limits.max_file_bytes)
                    content = disk.read_file(folder, tuple(file.path.split("/")), most)
                    left -= len(content)
                    read.append((file.path, content))
        return read

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """A descriptor of a skill's folder, which `name` must be known to be."""
        try:
            # The root is what the server was told to use, and may be a link.
            root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                with disk.opened_folder(name, root) as folder:
                    yield folder
            finally:
                os.close(root)
        except FileNotFoundError:
            raise NotFound(f"There is no skill {shown(name)}.") from None

    def _names(self) -> list[str]:
        """The names of all that may be skills: folders, and links where a folder should be."""
        try:
            with os.scandir(self.root) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if not entry.name.startswith(".")
                    and (entry.is_dir(follow_symlinks=False) or entry.is_symlink())
                )
        except OSError:
            return []

    def _on_disk(self, name: str) -> str | None:
        # None but the names on disk are ever looked at: this one is a key, not a path.
        names = self._names()[: self.limits.max_skills]
        return next((each for each in names if sayable_name(each) == name), None)

    def _known(self, name: str) -> Skill:
        skill = self.find(name)
        if skill is None:
            raise NotFound(f"There is no skill {shown(name)}.")
        return skill

    def _look(self, name: str) -> _Seen:
        seen = self._seen.get(name)
        place = self.root / name
        if seen is not None and seen.settled and not disk.has_changed(place, seen.marks):
            return seen
        marks: dict[str, Mark] = {}
        try:
            status = os.lstat(place)
            marks[""] = mark_of(status)
            if stat.S_ISLNK(status.st_mode):
                raise SkillRefused("It is a link, and links are not followed.")
            skill = self._read_listed(name, place, marks)
        except HarnessError as error:
            skill = self._broken(name, error.message, editable=self._is_readable(name))
        except OSError as error:
            skill = self._broken(name, f"The disk refused: {error.strerror}.")
        newest = max((max(mark[2:]) for mark in marks.values()), default=0)
        return _Seen(skill, marks, bool(marks) and abs(self._now_ns() - newest) > SETTLED_NS)

    def _read_listed(self, name: str, place: Path, marks: dict[str, Mark]) -> Skill:
        """The skill in a folder. `marks` are filled before the text is read, so that a change in
        between is seen at the next look."""
        limits = self.limits
        with self.opened(name) as folder:
            found = disk.contents(folder, place, limits.max_files)
            marks.update(found.marks)
            if found.escaping:
                raise SkillRefused(f"The link {shown(found.escaping)} leads out of the folder.")
            if found.more:
                raise SkillRefused(f"It holds more than {limits.max_files:,} files.")
            if found.size > limits.max_skill_bytes:
                raise SkillRefused(
                    f"Its files have {found.size:,} bytes; at most {limits.max_skill_bytes:,} "
                    "are taken."
                )
            for file in found.files:
                if file.path != SKILL_FILE and file.path.casefold() == SKILL_FILE.casefold():
                    raise SkillRefused(f"Its file {file.path} must be called {SKILL_FILE}.")
            content = disk.read_file(folder, (SKILL_FILE,), limits.max_skill_md_bytes)
        skill, _ = read_skill(decoded(content), name)
        changed = marks[SKILL_FILE][2] / 1e9 if SKILL_FILE in marks else 0.0
        return replace(skill, origin=self.origin, writable=self.writable, changed=changed)

    def _is_readable(self, name: str) -> bool:
        """Whether a broken skill has a text, to find the fault in."""
        try:
            with self.opened(name) as folder:
                decoded(disk.read_file(folder, (SKILL_FILE,), self.limits.max_skill_md_bytes))
        except (HarnessError, OSError):
            return False
        return True

    def _broken(self, name: str, fault: str, *, editable: bool = False) -> Skill:
        return Skill(
            sayable_name(name),
            fault=fault,
            origin=self.origin,
            writable=self.writable,
            editable=editable,
        )


def sayable_name(name: str) -> str:
    """The name of a folder as text, which it is not on every disk: other bytes are spelled out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _busy(why: str) -> SkillRefused:
    return SkillRefused(
        f"The skills are busy: {why}.",
        hint="Nothing was changed. Try again in a moment.",
        code="skills_busy",
    )
