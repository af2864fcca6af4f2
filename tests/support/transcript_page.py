"""What a page shows of one run, folded from the events that a test says happened."""

from __future__ import annotations

import itertools
from typing import Self

from web.chats.parts.channel import Channel, Clock
from web.chats.parts.kinds import Call, MarkdownBlock, PartData
from web.chats.transcript.transcript import Transcript
from web.harness.values.events import Event, EventBody

M, C = "r-1", "r-1-0"
"""The first answer of run `r`, and its first call."""


class Page:
    """A chat whose run `r` has begun."""

    def __init__(self) -> None:
        self.channel = Channel("chat", Clock("e"))
        self.transcript = Transcript(self.channel)
        self.states: list[str] = []
        self.transcript.state_changed = lambda: self.states.append(self.transcript.status.state)
        self.numbers = itertools.count(1)
        self.transcript.begin("r", "hello", 100.0, "demo:demo")

    def happens(self, *bodies: EventBody, at: float = 103.0) -> Self:
        self.transcript.fold("r", [Event(next(self.numbers), at, body) for body in bodies])
        return self

    def log(self) -> list[PartData]:
        return [part.data for part in self.channel.slot("log")]

    def text(self, slot: str) -> str:
        """The markdown source that the blocks of a slot hold."""
        return "|".join(
            part.data.block.source
            for part in self.channel.slot(slot)
            if isinstance(part.data, MarkdownBlock)
        )

    def call(self) -> Call:
        (call,) = [data for data in self.log() if isinstance(data, Call)]
        return call
