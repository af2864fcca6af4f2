"""The beginning of a list that only grows, as a sequence that does not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from web.harness.values.messages import Message


class MessageView(Sequence[Message]):
    """The messages that the list holds now. Whoever owns it only ever appends.

    A copy for each model call would be the dearest part of a turn of a long conversation.
    """

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._length = len(messages)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, at: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(at, slice):
            return tuple(self._messages[index] for index in range(*at.indices(self._length)))
        if not -self._length <= at < self._length:
            raise IndexError("There is no such message.")
        return self._messages[at if at >= 0 else at + self._length]

    def __iter__(self) -> Iterator[Message]:
        return islice(self._messages, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
