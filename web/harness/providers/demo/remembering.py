"""What the demo model was told to remember, in this conversation or in earlier ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from web.harness.providers.demo.matching import REMEMBER, stems_of
from web.harness.values.messages import SUMMARY_URI
from web.harness.values.model import ModelRequest

_REMEMBER = re.compile(REMEMBER, re.I | re.S)
_QUESTION = re.compile(
    r"^\s*(?:(?:what|who|where|when|which|why|how|does|do|did|is|are|was|were|can|whose)\b|.*\?\s*$)",
    re.I | re.S,
)
_FACT = re.compile(r"^> \[[^\]\n]*\] (.+)$", re.M)
"""As `memory_prompt` tells of a fact."""

MAX_SHOWN = 5


def wish(prompt: str) -> str | None:
    """What a message wants to have remembered, None if nothing."""
    match = _REMEMBER.match(prompt)
    return match["text"] if match and not prompt.rstrip().endswith("?") else None


def known_about(prompt: str, request: ModelRequest) -> list[str]:
    """What was told that has words of this question, the best first; empty for no question."""
    asked = stems_of(prompt) if _QUESTION.match(prompt) else set()
    found = {text: len(asked & stems_of(text)) for text in _told(request)}
    best = max(found.values(), default=0)
    # One word in common is chance where others have more.
    return [text for text, common in found.items() if common == best][:MAX_SHOWN] if best else []


def _told(request: ModelRequest) -> Iterator[str]:
    """Everything, what was said last first."""
    for message in reversed(request.messages):
        if message.role != "user":
            continue
        summed_up = [block.text for block in message.attachments if block.uri == SUMMARY_URI]
        lines = [line.removeprefix("- ") for text in summed_up for line in text.splitlines()]
        for text in (*([message.text] if message is not request.messages[-1] else ()), *lines):
            if (wanted := wish(text)) is not None:
                yield wanted
    yield from _FACT.findall(request.system_prompt)
