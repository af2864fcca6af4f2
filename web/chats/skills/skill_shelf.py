"""The skills of one person as they were when somebody looked last, for all chats of that person."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from web.chats.parts.skill_kinds import DeletedSkill, DeletedSkills, ShownSkill
from web.harness.skills.library import Skills
from web.harness.skills.skill import Skill, SkillOrigin, SkillText
from web.harness.skills.uploads import UploadedFile
from web.harness.skills.writing import Installed
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import HarnessError, NotFound

ORIGINS: tuple[SkillOrigin, ...] = ("upload", "server")
"""Where skills can be deleted."""

T = TypeVar("T")


class SkillShelf:
    """Looks at the disk in a thread. What is read from here in between costs nothing."""

    def __init__(self, skills: Skills) -> None:
        self.skills = skills
        self.listed: tuple[Skill, ...] = ()
        self.deleted = DeletedSkills(())
        self.version = 0
        """Rises with each look that found something new."""
        self._looking = asyncio.Lock()

    async def look(self) -> bool:
        """Brings all up to what is on disk; says whether it is another."""
        async with self._looking:
            listed, deleted = await run_in_thread(self._look)
            found = DeletedSkills(deleted)
            if (listed, found) == (self.listed, self.deleted):
                return False
            self.listed, self.deleted = listed, found
            self.version += 1
            return True

    async def do(self, work: Callable[[], T]) -> T:
        """Runs what reads or writes skills, to its end. Disk errors are raised in words."""
        try:
            return await run_in_thread(work, finish=True)
        except OSError as error:
            raise HarnessError(
                f"The disk refused: {error.strerror or type(error).__name__}.",
                hint="The list of skills shows what is there now. Look at it, and try again.",
                code="skill_refused",
            ) from error

    def find(self, ref: str) -> Skill:
        """A skill by what names it in addresses. Raises NotFound."""
        for skill in self.listed:
            if ref_of(skill) == ref:
                return skill
        raise NotFound("There is no such skill any more.", hint="It was renamed or deleted.")

    def find_deleted(self, ref: str) -> DeletedSkill:
        """One that can be brought back, by what named it. Raises NotFound."""
        for each in self.deleted.skills:
            if ref_of(each) == ref:
                return each
        raise NotFound("This skill cannot be brought back any more.")

    def named(self, name: str) -> Skill | None:
        """The whole skill of this name."""
        return next((each for each in self.listed if each.name == name and not each.fault), None)

    async def read(self, skill: Skill) -> tuple[SkillText | None, str]:
        """The text of a skill, or why there is none: a broken one may be no text at all."""
        try:
            return await self.do(lambda: self.skills.read(skill.name, skill.origin)), ""
        except HarnessError as error:
            return None, error.message

    def usable(self, off: Collection[str]) -> tuple[Skill, ...]:
        """The whole ones, less those that are switched off."""
        return tuple(each for each in self.listed if not each.fault and each.name not in off)

    def shown(self, off: Collection[str]) -> tuple[ShownSkill, ...]:
        """All of them as a chat shows them, in which those are switched off."""
        return tuple(
            ShownSkill(
                ref=ref_of(each),
                name=each.name,
                description=each.description,
                origin=each.origin,
                fault=each.fault,
                writable=each.writable,
                changed=each.changed,
                on=each.name not in off,
                editable=each.editable,
            )
            for each in self.listed
        )

    # What changes them. Pages follow the next `ChatSkills.look`.

    async def install(self, files: Sequence[UploadedFile], *, replace: bool) -> Installed:
        """Makes a skill of this person's own from one `.md`, the files of a folder, or a zip."""
        return await self.do(lambda: self.skills.install(files, replace=replace))

    async def edit(self, skill: Skill, text: str, seen: str) -> None:
        """Gives a skill a new text; of one that this person may not write a copy is made. `seen` is
        the hash of the text that was edited."""
        await self.do(lambda: self._edit(skill, text, seen))

    async def delete(self, skill: Skill) -> None:
        """Takes a skill away; it can be brought back."""
        await self.do(lambda: self.skills.delete(skill.name, skill.origin))

    async def restore(self, deleted: DeletedSkill) -> None:
        """Undoes a deletion, or a replacement: then the two change places."""
        await self.do(lambda: self.skills.restore(deleted.name, deleted.origin))

    def _edit(self, skill: Skill, text: str, seen: str) -> None:
        if skill.writable:
            self.skills.edit(skill.name, text, seen=seen, origin=skill.origin)
        else:
            self.skills.adopt(skill.name, text)

    def _look(self) -> tuple[tuple[Skill, ...], tuple[DeletedSkill, ...]]:
        deleted = tuple(
            DeletedSkill(name, origin) for origin in ORIGINS for name in self.skills.deleted(origin)
        )
        return self.skills.list(), deleted


def ref_of(skill: Skill | DeletedSkill) -> str:
    """What stands for a skill in addresses: a broken one may share its name with a whole one."""
    whole = f"{skill.origin}/{skill.name}".encode(errors="surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:16]
