"""The skills of chats where a test needs none."""

from __future__ import annotations

from pathlib import Path

from web.chats.skills.skills import ChatSkills
from web.chats.tasks import TaskOwner
from web.harness.skills.library import SkillLibrary


def no_skills(tasks: TaskOwner) -> ChatSkills:
    """What chats have where there is no folder of skills."""
    nowhere = Path("no-such-folder")
    return ChatSkills(SkillLibrary(nowhere), tasks, folder=lambda chat: nowhere, environ={})
