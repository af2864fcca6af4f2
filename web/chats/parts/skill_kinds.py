"""The kinds of part that show the skills of a chat.

Names, descriptions and faults in here are a stranger's words on one line. A `ref` names a skill in
addresses: the name of a broken one may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from web.harness.skills.skill import SkillOrigin


@dataclass(frozen=True, slots=True)
class ShownSkill:
    """A skill that a chat can use while it is `on`; one with a `fault` cannot be used at all.

    `writable` says that this person may edit and delete it, `editable` that it has a text to edit;
    of what one may not write a copy is made. `changed` is when its text was written,
    in seconds since the epoch, 0 where that is not known.
    """

    kind: ClassVar[str] = "skill"
    ref: str
    name: str
    description: str
    origin: SkillOrigin
    fault: str
    writable: bool
    changed: float
    on: bool
    editable: bool = True


@dataclass(frozen=True, slots=True)
class DeletedSkill:
    """A skill that was deleted or replaced and can be brought back."""

    name: str
    origin: SkillOrigin


@dataclass(frozen=True, slots=True)
class DeletedSkills:
    """Those that can be brought back."""

    kind: ClassVar[str] = "deleted_skills"
    skills: tuple[DeletedSkill, ...]


SkillData = ShownSkill | DeletedSkills
