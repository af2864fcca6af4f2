"""What the two streaming APIs have in common: from a request to chunks."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from web.harness.providers.failures import broken_stream, no_model_api
from web.harness.providers.http import Answer, Patience, Requests
from web.harness.providers.sse import SseDecoder, SseEvent
from web.harness.values.errors import ProviderError
from web.harness.values.messages import JsonObject
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest

GRACE_SECONDS = 5.0
"""How long a server may take to close an answer that is complete but for its usage."""

MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
MAX_COUNT = 10**12
"""No answer has so many tokens; a larger number (or an infinity) is nonsense."""


class Fold(Protocol):
    """Gathers one answer from the JSON objects of its stream."""

    complete: bool
    """The model has said why it stopped: the end of the stream is no failure any more."""
    closed: bool
    """The closing event was seen: nothing of value follows."""

    def take(self, data: JsonObject, out: list[ModelChunk]) -> None:
        """Adds the chunks that one streamed object brings. Raises ProviderError if it is one."""
        ...

    def take_whole(self, data: JsonObject, out: list[ModelChunk]) -> None:
        """Adds the chunks of an answer that came as one JSON document."""
        ...

    def done(self) -> ModelDone:
        """The last chunk of the answer."""
        ...


async def stream_answer(
    requests: Requests, request: ModelRequest, document: JsonObject, fold: Fold
) -> AsyncGenerator[list[ModelChunk], None]:
    """Sends `document`, yields the chunks of each read, ends with `ModelDone`."""
    async with requests.post(document, request.model, request.stall_seconds) as answer:
        if "text/html" in answer.headers.get("content-type", ""):
            raise no_model_api(requests.api)
        reader = _Reader(requests, fold)
        patience = Patience(request.stall_seconds)
        try:
            async with aclosing(_chunks(answer, patience, reader)) as chunks:
                async for out in chunks:
                    yield out
        except ProviderError as error:
            # A server that has told why the model stopped may end the connection as it likes.
            if not fold.complete or not error.transient:
                raise
        if not fold.complete:
            raise broken_stream(requests.api, "the stream ended before the answer did")
        yield [fold.done()]


async def _chunks(
    answer: Answer, patience: Patience, reader: _Reader
) -> AsyncGenerator[list[ModelChunk], None]:
    """One list of chunks a read, until the closing event or the end of the body."""
    fold = reader.fold
    async with aclosing(answer.reads(patience)) as reads:
        async for data in reads:
            out: list[ModelChunk] = []
            try:
                reader.feed(data, out)
            except ProviderError:
                if out:
                    yield out
                raise
            if out:
                yield out
            if fold.closed:
                return
            if fold.complete:
                patience.seconds = min(patience.seconds, GRACE_SECONDS)
    out = []
    reader.finish(out)
    if out:
        yield out


class _Reader:
    """Bytes of a body into a fold: an event stream, or one document from a server that sends it."""

    def __init__(self, requests: Requests, fold: Fold) -> None:
        self.fold = fold
        self._api = requests.api
        self._events = SseDecoder()
        self._document: bytearray | None = None
        self._at_start = True

    def feed(self, data: bytes, out: list[ModelChunk]) -> None:
        if self._at_start and data.strip():
            self._at_start = False
            # The content type does not tell: some servers send events as application/json.
            if data.lstrip().startswith(b"{"):
                self._document = bytearray()
        if self._document is not None:
            self._document += data
            if len(self._document) > MAX_DOCUMENT_BYTES:
                raise broken_stream(self._api, "it is too large")
            return
        try:
            events = self._events.feed(data)
        except ValueError as error:
            raise broken_stream(self._api, str(error)) from error
        self._take(events, out)

    def finish(self, out: list[ModelChunk]) -> None:
        """The end of the body: a document is read now, an open event if it is whole."""
        if self._document is not None:
            value = self._parsed(self._document.decode("utf-8", "replace"))
            if isinstance(value, dict):
                self.fold.take_whole(value, out)
            return
        self._take([event for event in self._events.finish() if _is_whole(event.data)], out)

    def _take(self, events: list[SseEvent], out: list[ModelChunk]) -> None:
        fold = self.fold
        for event in events:
            if event.data == "[DONE]":
                fold.complete = fold.closed = True
            elif event.data and not event.data.isspace():
                value = self._parsed(event.data)
                if isinstance(value, dict):
                    if event.type == "error":
                        value = {"error": value, **value}
                    fold.take(value, out)
            if fold.closed:
                return

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise broken_stream(self._api, "it holds something that is not JSON") from error


def _is_whole(data: str) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return data == "[DONE]"
    return True


def count(value: Any) -> int:
    """A token count as servers send it: a number, a null, or nothing."""
    return int(value) if isinstance(value, (int, float)) and 0 < value < MAX_COUNT else 0


def text_of(value: Any) -> str:
    """`value` if it is text, else ''."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> JsonObject:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[JsonObject]:
    """The JSON objects in `value`; none if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
