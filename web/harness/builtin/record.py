"""The readable record of a chat: `transcript.md` for people, `events.jsonl` for programs.

Both lie in `.harness/record/`, so that a copy of the chat's folder is the whole chat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from web.harness.builtin.chat_files import ChatFiles
from web.harness.values.events import Event, event_data
from web.harness.values.messages import (
    ContentBlock,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.text import sayable

TRANSCRIPT, EVENTS = "transcript.md", "events.jsonl"
RECORD_NAMES = (TRANSCRIPT, EVENTS)

MAX_RESULT_CHARS = 20_000
"""Of one result in the transcript; the events have all of it."""

_HEADINGS = {"user": "Person", "assistant": "Assistant", "tool": "Results"}
_FENCE = re.compile(r"`{3,}")

Run = tuple[str, Sequence[Event]]
"""A run's id and its events."""


async def write_record(
    files: ChatFiles, title: str, messages: Sequence[Message], runs: Iterable[Run]
) -> None:
    """Writes both files or none. What is handed in is read in a thread."""
    await files.write_record(
        [
            (TRANSCRIPT, (piece.encode() for piece in transcript(title, messages))),
            (EVENTS, (line.encode() for line in event_lines(runs))),
        ]
    )


def transcript(title: str, messages: Iterable[Message]) -> Iterator[str]:
    """The conversation as markdown, message by message.

    What somebody else wrote (results, attachments, arguments) stands in fences that it cannot end.
    """
    heading = " ".join(sayable(title).split())
    yield f"# {heading or 'Chat'}\n"
    for message in messages:
        yield f"\n## {_HEADINGS[message.role]}\n"
        for block in message.content:
            yield f"\n{sayable(_block(block))}\n"


def event_lines(runs: Iterable[Run]) -> Iterator[str]:
    """One JSON object a line: `run`, `number`, `at` (ISO 8601, UTC), `type` and `data`."""
    for run_id, events in runs:
        for event in events:
            line = {
                "run": run_id,
                "number": event.number,
                "at": datetime.fromtimestamp(event.at, UTC).isoformat(),
                "type": event.type,
                "data": event_data(event.body),
            }
            # Escaped, for what a model sends may hold half a character, which no UTF-8 can.
            yield json.dumps(line) + "\n"


def _block(block: ContentBlock) -> str:
    match block:
        case TextBlock():
            return block.text.strip()
        case ThinkingBlock():
            return _quoted(block.text.strip() or "(Not shown by the provider.)", "Thinking")
        case ToolUseBlock():
            arguments = block.malformed
            if arguments is None:
                arguments = json.dumps(block.arguments, ensure_ascii=False, indent=2)
            return f"Calls `{block.name}` ({block.id}):\n\n{_fenced(arguments, 'json')}"
        case ToolResultBlock():
            what = "Error" if block.is_error else "Result"
            pictures = "".join(f"\n\n{_picture(each)}" for each in block.pictures)
            return f"{what} of {block.call_id}:\n\n{_fenced(_cut(block.text), 'text')}{pictures}"
        case ImageBlock():
            return _picture(block)
        case ResourceBlock():
            about = " ".join(f"{block.name} {block.uri}".split())
            return f"Attached:\n\n{_fenced(about, 'text')}\n\n{_fenced(_cut(block.text), 'text')}"
    return f"(A part of type {block.type}.)"


def _picture(picture: ImageBlock) -> str:
    """Its words and its hash, by which the bytes can be found."""
    return _fenced(f"{picture.line} sha256 {picture.sha256}", "text")


def _fenced(text: str, language: str) -> str:
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _quoted(text: str, label: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in [f"{label}:", "", *text.split("\n")])


def _cut(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n… ({len(text) - MAX_RESULT_CHARS:,} more characters)"
