"""What a model is told of its skills before it has asked for any: names and descriptions."""

from __future__ import annotations

from collections.abc import Iterable

from web.harness.skills.skill import Skill
from web.harness.tools.words import shorten

MAX_PROMPT_CHARS = 12_000
MIN_DESCRIPTION_CHARS = 80
"""Descriptions are shortened so far before skills are left out."""

_HEAD = (
    "You have skills: instructions for certain tasks, written by the people who run or use this "
    "chat. When a task fits a description, or the person names a skill, call use_skill with its "
    "name first and follow what it says. The skills are:"
)


def skills_prompt(skills: Iterable[Skill], max_chars: int = MAX_PROMPT_CHARS) -> str:
    """An addition to the system prompt of at most `max_chars` characters; '' without skills.

    Broken skills are not in it. Where there are too many, all descriptions are cut to one length,
    and in the end skills are left out, which is said.
    """
    whole = [skill for skill in skills if not skill.fault]
    if not whole:
        return ""
    longest = max(len(skill.description) for skill in whole)
    for length in (longest, 300, 150, MIN_DESCRIPTION_CHARS):
        lines = [f"- {skill.name}: {shorten(skill.description, length)}" for skill in whole]
        text = "\n".join([_HEAD, *lines])
        if len(text) <= max_chars:
            return text
    kept, left = [_HEAD], max_chars - len(_HEAD) - 80
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    missing = len(lines) - len(kept) + 1
    kept.append(f"({missing:,} more skills are not listed here; use_skill knows them by name.)")
    return "\n".join(kept)
