"""A conversation that ends in the middle of a round can go on: each of its calls gets a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from web.harness.sessions.journal import CallRecord
from web.harness.values.messages import Message, TextBlock, ToolResultBlock


def with_results(
    messages: list[Message], records: Mapping[str, CallRecord], words: Callable[[str], str]
) -> list[Message]:
    """A conversation whose last answer has all its results: those that are in the `records` of its
    calls, and for a call without one an error with the `words` for its id."""
    last = messages[-1]
    if not last.tool_uses:
        return messages
    results = tuple(
        record.result
        if (record := records.get(use.id)) is not None and record.result is not None
        else ToolResultBlock(use.id, (TextBlock(words(use.id)),), is_error=True)
        for use in last.tool_uses
    )
    return [*messages, Message(f"{last.id}-results", "tool", results, last.id)]
