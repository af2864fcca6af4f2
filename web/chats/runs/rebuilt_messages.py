"""The messages of a run from its events: of one that was cut off, or that another server has.

Only what a model can be sent again: texts, and calls that have their result. Thinking is left out,
as its signature is in no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from web.chats.chat import Turn
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    Event,
    TextDelta,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import (
    ContentBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)


@dataclass(slots=True)
class _Answer:
    """One answer of the model: its text, its calls, and the results of those that have one."""

    text: list[str] = field(default_factory=list)
    uses: dict[str, ToolUseBlock] = field(default_factory=dict)
    results: dict[str, ToolResultBlock] = field(default_factory=dict)


def rebuilt(turn: Turn, events: Iterable[Event], parent_id: str | None) -> list[Message]:
    """What a run said and did, from the person's message on, after the message `parent_id`.

    The ids are those that the run gave its messages.
    """
    said = (TextBlock(turn.text),) if turn.text.strip() or not turn.attachments else ()
    first = Message(f"{turn.run_id}-0", "user", (*turn.attachments, *said), parent_id)
    messages = [first]
    for message_id, answer in _answers(events).items():
        for message in _told(message_id, answer, messages[-1].id):
            messages.append(message)
    return messages


def _answers(events: Iterable[Event]) -> dict[str, _Answer]:
    answers: dict[str, _Answer] = {}
    asked_in: dict[str, str] = {}
    for event in events:
        match event.body:
            case TextDelta(text=text, message_id=message_id):
                answers.setdefault(message_id, _Answer()).text.append(text)
            case ApprovalRequired() | ToolCallStart() as call:
                # The later counts: a person may have changed the arguments.
                use = ToolUseBlock(call.call_id, call.name, call.arguments)
                answers.setdefault(call.message_id, _Answer()).uses[call.call_id] = use
                asked_in[call.call_id] = call.message_id
            case ToolResult(call_id=call_id) as result if call_id in asked_in:
                block = ToolResultBlock(call_id, (TextBlock(result.text),), result.is_error)
                answers[asked_in[call_id]].results[call_id] = block
            case AttemptReset(message_id=message_id):
                answers.pop(message_id, None)
                asked_in = {call: each for call, each in asked_in.items() if each != message_id}
    return answers


def _told(message_id: str, answer: _Answer, parent_id: str) -> Iterator[Message]:
    """An answer and, in a message of their own, the results of its calls."""
    uses = [use for call_id, use in answer.uses.items() if call_id in answer.results]
    text = "".join(answer.text)
    blocks: tuple[ContentBlock, ...] = (*((TextBlock(text),) if text.strip() else ()), *uses)
    if blocks:
        yield Message(message_id, "assistant", blocks, parent_id)
    if uses:
        results = tuple(answer.results[use.id] for use in uses)
        yield Message(_following(message_id), "tool", results, message_id)


def _following(message_id: str) -> str:
    """The id of the results of an answer: a run counts its messages."""
    before, _, number = message_id.rpartition("-")
    return f"{before}-{int(number) + 1}" if number.isdecimal() else f"{message_id}-results"
