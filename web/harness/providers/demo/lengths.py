"""How long a conversation is, counted once: a late turn is to cost no more than an early one."""

from __future__ import annotations

from collections.abc import Sequence

from web.harness.values.messages import Message

SPOTS = 32
"""Messages of a known conversation that are looked at: where some were changed, many were."""


class Lengths:
    """Characters of messages; of a conversation that has grown only the new ones are counted."""

    def __init__(self) -> None:
        self._known = 0
        self._chars = 0
        self._spots: dict[int, Message] = {}

    def __call__(self, messages: Sequence[Message]) -> int:
        known = self._known if self._has_grown(messages) else 0
        chars = self._chars if known else 0
        # One by one, as a slice of a long conversation would be a copy of it.
        self._chars = chars + sum(messages[index].size for index in range(known, len(messages)))
        self._known = len(messages)
        steps = range(0, len(messages), max(1, len(messages) // SPOTS))
        self._spots = {index: messages[index] for index in (*steps, *range(len(messages))[-1:])}
        return self._chars

    def _has_grown(self, messages: Sequence[Message]) -> bool:
        """Whether the messages begin with those that were counted last."""
        return len(messages) >= self._known and all(
            messages[index] == message for index, message in self._spots.items()
        )
