"""A model server as a process of its own: `python -m tests.bench.model` prints its address.

It speaks the Chat Completions format and streams what the last user message asks for:
`tokens=500 rate=50` (no rate: as fast as they are taken) `paragraph=60` (tokens between two blank
lines, 0 for none). The model server of the other tests can do much more and takes 100 microseconds
for a token; this one takes some 5, so that it is not itself what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import cast

import httptools
import uvloop

from tests.bench.tokens import stamp, word
from tests.support.model_wire import chat_ending, http_chunk, token_event

BATCH = 20
"""Tokens of one write where there is no rate."""

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_BUFFER_BYTES = 16 * 1024
"""What may wait in a connection: a reader that is behind is not given tokens that grow old."""


class _Connection(asyncio.Protocol):
    """Answers requests one after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._next = 0
        self._paused = False
        self._waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._waiting:
            self._waiting = False
            self._loop.call_soon(self._pour)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        document = json.loads(b"".join(self._body))
        self._body.clear()
        asked = dict(re.findall(r"(\w+)=([\d.]+)", document["messages"][-1]["content"]))
        self._tokens = int(asked["tokens"])
        self._paragraph = int(asked.get("paragraph", 0))
        self._next = 0
        self._transport.write(_HEAD)
        if "rate" in asked:
            self._step = 1 / float(asked["rate"])
            self._start = self._loop.time()
            self._tick()
        else:
            self._pour()

    def _tick(self) -> None:
        """Sends what is due and comes again for the next token."""
        if self._transport.is_closing():
            return
        due = min(self._tokens, int((self._loop.time() - self._start) / self._step + 1.001))
        self._send(due - self._next)
        if self._next < self._tokens:
            self._loop.call_at(self._start + self._next * self._step, self._tick)

    def _pour(self) -> None:
        """Sends a batch and comes again as soon as the reader has taken it."""
        if self._transport.is_closing():
            return
        self._send(min(BATCH, self._tokens - self._next))
        if self._next < self._tokens:
            if self._paused:
                self._waiting = True
            else:
                self._loop.call_soon(self._pour)

    def _send(self, count: int) -> None:
        now = stamp()
        pieces = []
        for number in range(self._next, self._next + count):
            ends = self._paragraph and number % self._paragraph == self._paragraph - 1
            text = word(number, now) + ("\n\n" if ends else " ")
            pieces.append(http_chunk(token_event(text)))
        self._next += count
        if self._next == self._tokens:
            pieces += map(http_chunk, chat_ending(tokens=self._tokens))
            pieces.append(b"0\r\n\r\n")
        self._transport.write(b"".join(pieces))


async def _main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_main())
