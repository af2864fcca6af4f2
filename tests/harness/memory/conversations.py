"""Conversations for tests, drawn at random or written down in short."""

from __future__ import annotations

from hypothesis import strategies as st

from web.harness.memory.condensing import linked
from web.harness.memory.summaries import summary_message
from web.harness.values.messages import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)


def person(message_id: str, size: int = 10) -> Message:
    return Message(message_id, "user", (TextBlock("p" * 4 * size),))


def answer(message_id: str, size: int = 10) -> Message:
    return Message(message_id, "assistant", (ThinkingBlock("hm"), TextBlock("a" * 4 * size)))


def round_of(message_id: str, *sizes: int, arguments: int = 1) -> list[Message]:
    """An answer with calls and the message with their results of these many tokens."""
    uses = tuple(
        ToolUseBlock(f"{message_id}-{number}", "read", {"path": "x" * arguments})
        for number in range(len(sizes))
    )
    results = tuple(
        ToolResultBlock(use.id, (TextBlock("r" * 4 * size),))
        for use, size in zip(uses, sizes, strict=True)
    )
    return [Message(message_id, "assistant", uses), Message(f"{message_id}r", "tool", results)]


SIZES = st.integers(0, 400)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Turns of a message, rounds of calls and mostly an answer; the last may be under way."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(summary_message("notes", "n" * draw(SIZES)))
    for turn in range(draw(st.integers(1, 6))):
        messages.append(person(f"u{turn}", draw(SIZES)))
        for number in range(draw(st.integers(0, 3))):
            sizes = draw(st.lists(SIZES, min_size=1, max_size=3))
            messages += round_of(f"t{turn}.{number}", *sizes)
        if draw(st.booleans()):
            messages.append(answer(f"a{turn}", draw(SIZES)))
    return linked(messages)
