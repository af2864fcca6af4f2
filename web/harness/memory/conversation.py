"""The messages of one conversation."""

from __future__ import annotations

from collections.abc import Iterable

from web.harness.values.messages import Message


class Conversation:
    """Messages in order, each one the child of the message before it."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = list(messages)

    def get_messages(self) -> list[Message]:
        """A list of its own; the messages themselves are immutable."""
        return list(self._messages)

    def set_messages(self, messages: Iterable[Message]) -> None:
        """Replaces the whole conversation."""
        self._messages = list(messages)

    def append(self, message: Message) -> None:
        self._messages.append(message)

    @property
    def last_id(self) -> str | None:
        return self._messages[-1].id if self._messages else None

    def __len__(self) -> int:
        return len(self._messages)
