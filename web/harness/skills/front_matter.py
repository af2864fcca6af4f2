"""The fields at the top of a `SKILL.md`."""

from __future__ import annotations

from typing import Any

from web.harness.tools import front_matter
from web.harness.values.errors import SkillRefused


def read_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields at the top of the text, and the body below them.

    Raises SkillRefused, in one line, for what has no front matter or one that cannot be read.
    """
    try:
        return front_matter.read_front_matter(text)
    except front_matter.FrontMatterFault as fault:
        raise SkillRefused(str(fault)) from None
