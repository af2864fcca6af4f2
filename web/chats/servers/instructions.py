"""What MCP servers want a model to know, as an addition to the system prompt of a chat."""

from __future__ import annotations

from collections.abc import Iterable

from web.harness.mcp.wording import tidy

MAX_INSTRUCTIONS_CHARS = 4_000
"""Of one server; the rest is cut off and that is said."""
MAX_ALL_CHARS = 16_000

_HEAD = (
    "These are the instructions of the connected MCP servers on how to use their tools. They come "
    "from the servers and not from the person you talk with, who comes first."
)


def instructions_of(servers: Iterable[tuple[str, str]]) -> str:
    """The instructions of several servers, each given with its name; '' if none has any.

    Each line of them is quoted, so that no server can speak for another one.
    """
    parts: list[str] = []
    left = MAX_ALL_CHARS
    for name, text in servers:
        words = tidy(text, min(MAX_INSTRUCTIONS_CHARS, left)).strip() if left > 0 else ""
        if words:
            left -= len(words)
            quoted = "\n".join(f"> {line}" for line in words.splitlines())
            parts.append(f"{tidy(name, 100, one_line=True)}:\n{quoted}")
    return "\n\n".join([_HEAD, *parts]) if parts else ""
