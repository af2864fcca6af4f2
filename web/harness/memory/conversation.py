"""The messages of one conversation."""

from __future__ import annotations

from collections.abc import Iterable

from web.harness.values.messages import ImageBlock, Message
from web.harness.values.pictures import has_pictures, leave_out

KEPT_PICTURE_BYTES = 64_000_000
"""Of all pictures of a conversation; models are sent less. Older ones are named, not kept."""


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
        """Adds a message. Its pictures stay, those before them as far as they fit beside it."""
        self._messages.append(message)
        if has_pictures(message):
            self._messages = list(leave_out(self._messages, _Room()))

    @property
    def last_id(self) -> str | None:
        return self._messages[-1].id if self._messages else None

    def __len__(self) -> int:
        return len(self._messages)


class _Room:
    """Says which pictures have none left, the newest first."""

    def __init__(self) -> None:
        self._total = 0

    def __call__(self, picture: ImageBlock) -> str:
        self._total += len(picture.data)
        return "newer ones took its place" if self._total > KEPT_PICTURE_BYTES else ""
