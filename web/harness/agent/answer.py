"""One model call: chunks come in, events go out, and a message is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from web.harness.values.events import EventBody, Note, TextDelta, ThinkingDelta, ToolCallDelta
from web.harness.values.json_form import NotSerialisable, json_copy
from web.harness.values.messages import (
    ContentBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from web.harness.values.model import (
    ModelChunk,
    ModelDone,
    ModelRequest,
    NoteChunk,
    Provider,
    TextChunk,
    ThinkingChunk,
    ToolUseChunk,
)
from web.harness.values.text import sayable, sayable_json

SLICE = 64
"""Chunks that are taken before it is looked how long it took."""

SLICE_SECONDS = 0.003
"""After so long others are let have the event loop."""

Emit = Callable[[list[EventBody]], None]


class AnswerBuilder:
    """Gathers one answer. What has come so far is kept when the stream breaks or is stopped.

    `noted` are remarks that were made already; each is made once.
    """

    def __init__(self, message_id: str, emit: Emit, noted: set[str] | None = None) -> None:
        self.message_id = message_id
        self.done: ModelDone | None = None
        self.shown = False
        """Whether anything was emitted that a reset would have to take back."""
        self._emit = emit
        self._noted = noted if noted is not None else set()
        self._blocks: list[ContentBlock] = []
        self._text: list[str] = []
        self._thinking: list[str] = []

    async def receive(self, provider: Provider, request: ModelRequest) -> ModelDone:
        """Streams one answer to its end. Raises ProviderError; closes the stream in any case."""
        stream = provider.stream(request)
        began = time.perf_counter()
        try:
            async for chunks in stream:
                for start in range(0, len(chunks), SLICE):
                    self._take(chunks[start : start + SLICE])
                    # What one read brought, or what waits in a buffer, may be a great deal.
                    if time.perf_counter() - began > SLICE_SECONDS:
                        await asyncio.sleep(0)
                        began = time.perf_counter()
        finally:
            await stream.aclose()
        if self.done is None:
            raise RuntimeError("A provider ended its stream without ModelDone.")
        return self.done

    def call_id(self, index: int) -> str:
        """Our own id of the call at an index: unique, derived, safe in a page and for every API."""
        return f"{self.message_id}-{index}"

    def message(self, parent_id: str | None, *, calls: bool) -> Message | None:
        """The answer so far, with its finished calls or without any.

        None if it says nothing that a later model call could be sent.
        """
        self._close_thinking(None)
        self._close_text()
        blocks = list(self._blocks)
        if calls and self.done is not None and self.done.stop_reason != "refusal":
            blocks += (
                _own_call(use, self.call_id(index)) for index, use in enumerate(self.done.tool_uses)
            )
        if not any(isinstance(block, TextBlock | ToolUseBlock) for block in blocks):
            return None
        return Message(self.message_id, "assistant", tuple(blocks), parent_id)

    def _take(self, chunks: list[ModelChunk]) -> None:
        events: list[EventBody] = []
        for chunk in chunks:
            match chunk:
                case TextChunk():
                    if text := sayable(chunk.text):
                        self._close_thinking(None)
                        self._text.append(text)
                        events.append(TextDelta(text, self.message_id))
                case ThinkingChunk():
                    self._take_thinking(chunk, events)
                case ToolUseChunk():
                    events.append(
                        ToolCallDelta(
                            self.call_id(chunk.index),
                            sayable(chunk.name),
                            sayable(chunk.arguments),
                            self.message_id,
                        )
                    )
                case NoteChunk():
                    self._note(chunk)
                case ModelDone():
                    self.done = chunk
        if events:
            self.shown = True
            self._emit(events)

    def _note(self, chunk: NoteChunk) -> None:
        if chunk.text not in self._noted:
            self._noted.add(chunk.text)
            self._emit([Note(sayable(chunk.text))])

    def _take_thinking(self, chunk: ThinkingChunk, events: list[EventBody]) -> None:
        self._close_text()
        if chunk.redacted:
            self._close_thinking(None)
            self._blocks.append(ThinkingBlock("", chunk.signature, redacted=True))
            return
        if text := sayable(chunk.text):
            self._thinking.append(text)
            events.append(ThinkingDelta(text, self.message_id))
        if chunk.signature:
            self._close_thinking(chunk.signature)

    def _close_thinking(self, signature: str | None) -> None:
        if self._thinking or signature:
            self._blocks.append(ThinkingBlock("".join(self._thinking), signature))
            self._thinking = []

    def _close_text(self) -> None:
        if self._text:
            self._blocks.append(TextBlock("".join(self._text)))
            self._text = []


def _own_call(use: ToolUseBlock, call_id: str) -> ToolUseBlock:
    """The call under our own id, with nothing in it that could not be sent on."""
    name = sayable(use.name)
    try:
        arguments = json_copy(sayable_json(use.arguments), "It")
        return ToolUseBlock(call_id, name, arguments, use.malformed)
    except NotSerialisable as error:
        # Such as NaN, which many parsers take for a number.
        return ToolUseBlock(call_id, name, malformed=sayable(error.message))
    except ValueError as error:
        return ToolUseBlock(call_id, name, malformed=str(error))
