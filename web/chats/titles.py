"""Titles of chats, from what was said first."""

from __future__ import annotations

import re

from web.harness.values.errors import LimitExceeded

TITLE_CHARS = 60

_MARKS = re.compile(
    r"^\s*(?:#{1,6}\s|>\s?|[-+*]\s)+|(?<![\w`*~])[`*~]+(?=\w)|(?<=[\w.!?])[`*~]+(?![\w`*~])"
)
"""Markdown marks that say nothing in a title. Between words or inside one they stay: `6 * 7`."""


def title_of(text: str) -> str:
    """A chat's title from its first message: the first line with words, without markdown marks."""
    for line in text.splitlines():
        title = " ".join(_MARKS.sub("", line).split())
        if re.search(r"\w", title):
            if len(title) <= TITLE_CHARS:
                return title
            return title[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
    return ""


def checked_title(title: str, most: int) -> str:
    """A title that a person gave, on one line. Raises LimitExceeded."""
    title = " ".join(title.split())
    if len(title) > most:
        raise LimitExceeded(
            f"The title has {len(title)} characters; at most {most} are taken.",
            hint="Shorten it.",
            code="too_long",
        )
    return title


def checked_prompt(prompt: str, max_chars: int) -> str:
    """A system prompt as it is. Raises LimitExceeded."""
    if len(prompt) > max_chars:
        raise LimitExceeded(
            f"The system prompt has {len(prompt):,} characters; at most {max_chars:,} are taken.",
            hint="Shorten it.",
            code="too_long",
        )
    return prompt
