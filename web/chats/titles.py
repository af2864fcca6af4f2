"""Titles of chats, from what was said first."""

from __future__ import annotations

import re

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
