"""Titles of chats, from what was said first; and what a person may write beside messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from web.chats.records.attachments import shown_attachment
from web.harness.values.errors import LimitExceeded
from web.harness.values.messages import AttachedBlock

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


def title_of_attached(blocks: Sequence[AttachedBlock]) -> str:
    """A chat's title from what was sent without a word: the first name, and how many more."""
    if not blocks:
        return ""
    more = f" and {len(blocks) - 1} more" if len(blocks) > 1 else ""
    name = " ".join(shown_attachment(blocks[0]).name.split())
    most = TITLE_CHARS - len(more)
    return (name if len(name) <= most else f"{name[: most - 1]}…") + more


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


def checked_draft(text: str, most: int) -> str:
    """What is typed and not sent, as it is. Raises LimitExceeded."""
    if len(text) > most:
        raise LimitExceeded(
            f"What you typed has {len(text):,} characters; a draft is kept up to {most:,}.",
            hint="Shorten it, or put it into a file and attach that. Nothing was changed.",
            code="too_long",
        )
    return text
