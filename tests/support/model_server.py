"""A small HTTP server on a port that plays a model API, byte by byte as a test wants it.

    async with ModelServer() as server:
        server.script(sse(chat_events("Hello")), status(429, {"error": {"message": "slow down"}}))
        provider = make_provider("openai", base_url=server.base_url)

Each request takes the next scripted reply; when none is left, `server.default` answers. A reply is
any `async def reply(exchange: Exchange) -> None`; those below are ready-made, with events from
`model_wire`. All that was asked is in `server.requests`. As a process of its own
(`python -m tests.support.model_server --help`) it streams tokens as the last user message says:
`tokens=500 rate=50`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.support.model_wire import chat_ending, http_chunk, token, token_event

WAIT_SECONDS = 30.0
"""No wait in this file is longer; a test that needs more has gone wrong."""


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it came. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def prompt(self) -> str:
        """The text of the last user message, in either vendor's form."""
        for message in reversed(self.json["messages"]):
            content = message.get("content")
            if message["role"] == "user" and isinstance(content, str):
                return content
            if message["role"] == "user" and content and content[0]["type"] == "text":
                return str(content[0]["text"])
        return ""


class Exchange:
    """One request and the connection that its answer goes to."""

    def __init__(self, request: RecordedRequest, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self.keep_alive = False
        self.client_gone = asyncio.Event()
        """Set as soon as the client has closed the connection."""
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Writes raw bytes to the connection."""
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Sends the status line and headers; an event stream in chunks unless told otherwise."""
        fields = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        if headers is not None:
            fields = dict(headers)
        lines = [
            f"HTTP/1.1 {status} Reply",
            *(f"{name}: {value}" for name, value in fields.items()),
        ]
        await self.send("\r\n".join((*lines, "", "")).encode("latin-1"))

    async def chunk(self, data: bytes) -> None:
        """Sends `data` as one HTTP chunk."""
        await self.send(http_chunk(data))

    async def end(self) -> None:
        """Sends the closing chunk; the connection may serve another request."""
        await self.send(b"0\r\n\r\n")
        self.keep_alive = True

    def abort(self) -> None:
        """Drops the connection at once, as a crash does."""
        self._writer.transport.abort()

    async def stall(self) -> None:
        """Sends nothing more until the client gives up."""
        await asyncio.wait_for(self.client_gone.wait(), WAIT_SECONDS)


Reply = Callable[[Exchange], Awaitable[None]]


class ModelServer:
    """Listens on a free port of the loopback interface while it is entered."""

    def __init__(
        self, default: Reply | None = None, *, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.exchanges: list[Exchange] = []
        self.default = default
        self._replies: list[Reply] = []
        self._port = port
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, ssl=self._tls
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """The address without a path, as the Messages API wants it."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The address that a Chat Completions client wants."""
        return f"{self.url}/v1"

    def script(self, *replies: Reply) -> None:
        """Adds replies for the requests to come, in order."""
        self._replies.extend(replies)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            lead = b""
            while (request := await read_request(reader, lead)) is not None:
                exchange = Exchange(request, writer)
                self.requests.append(request)
                self.exchanges.append(exchange)
                lead = await self._answer(exchange, reader)
                if not exchange.keep_alive:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client is gone or the server is closing: nobody is left to be told.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, exchange: Exchange, reader: asyncio.StreamReader) -> bytes:
        """Runs the reply while it watches whether the client leaves; gives what it read ahead."""
        reply = self._replies.pop(0) if self._replies else self.default
        assert reply is not None, "a request came for which no reply is scripted"
        watch = asyncio.ensure_future(_watch(exchange, reader))
        try:
            await reply(exchange)
        finally:
            watch.cancel()
            await asyncio.wait([watch])
        return b"" if watch.cancelled() else watch.result()


async def _watch(exchange: Exchange, reader: asyncio.StreamReader) -> bytes:
    try:
        data = await reader.read(1)
    except ConnectionError:
        data = b""
    if not data:
        exchange.client_gone.set()
    return data


async def read_request(reader: asyncio.StreamReader, lead: bytes = b"") -> RecordedRequest | None:
    """The next request of a connection, None when it has ended. Bodies need a content-length."""
    try:
        head = lead + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return RecordedRequest(method, path, headers, body)


# Replies


def raw(*pieces: bytes) -> Reply:
    """Sends these bytes, head included, then closes the connection."""

    async def reply(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.send(piece)
            await asyncio.sleep(0)

    return reply


def sse(body: bytes, *, split: int = 0) -> Reply:
    """An event stream in HTTP chunks of `split` bytes, each written apart (0: all in one)."""
    size = split or max(1, len(body))

    async def reply(exchange: Exchange) -> None:
        await exchange.head()
        for start in range(0, len(body), size):
            await exchange.chunk(body[start : start + size])
            await asyncio.sleep(0)
        await exchange.end()

    return reply


def cut(body: bytes, at: int, *, abort: bool = False) -> Reply:
    """An event stream that ends after `at` bytes: closed, or dropped as in a crash."""

    async def reply(exchange: Exchange) -> None:
        await exchange.head()
        if at:
            await exchange.chunk(body[:at])
        if abort:
            exchange.abort()

    return reply


def stall_after(body: bytes) -> Reply:
    """An event stream that says nothing more after `body`, and stays open."""

    async def reply(exchange: Exchange) -> None:
        await exchange.head()
        if body:
            await exchange.chunk(body)
        await exchange.stall()

    return reply


def status(code: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON (or, for text, plain) answer with this status."""
    content = body if isinstance(body, str) else json.dumps(body)
    kind = "text/plain" if isinstance(body, str) else "application/json"
    data = content.encode()
    fields = {"content-type": kind, "content-length": str(len(data)), **(headers or {})}

    async def reply(exchange: Exchange) -> None:
        await exchange.head(code, fields)
        await exchange.send(data)
        exchange.keep_alive = True

    return reply


class Valve:
    """Lets a test decide how far a token stream goes, and see how far it went.

    `allow(n)` lets the first n tokens pass, `open()` all; `passed(n)` waits until n were sent;
    `cut()` drops the connection where it is.
    """

    def __init__(self, allowed: int = 0) -> None:
        self._allowed: float = allowed
        self._sent = 0
        self._is_cut = False
        self._changed = asyncio.Condition()

    async def allow(self, tokens: float) -> None:
        async with self._changed:
            self._allowed = max(self._allowed, tokens)
            self._changed.notify_all()

    async def open(self) -> None:
        await self.allow(float("inf"))

    async def cut(self) -> None:
        async with self._changed:
            self._is_cut = True
            self._changed.notify_all()

    async def passed(self, tokens: int) -> None:
        """Waits until `tokens` tokens were written; fails after some seconds."""
        async with asyncio.timeout(WAIT_SECONDS), self._changed:
            await self._changed.wait_for(lambda: self._sent >= tokens)

    async def enter(self, number: int) -> bool:
        """Called by the stream before token `number` (from 0); False if it was cut."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_cut or number < self._allowed)
            return not self._is_cut

    async def note(self, sent: int) -> None:
        """Called by the stream: so many tokens were written."""
        async with self._changed:
            self._sent = sent
            self._changed.notify_all()


class TokenStream:
    """A reply of `tokens` known tokens in the Chat Completions format, then usage and `[DONE]`.

    `rate` is tokens a second, None for as fast as they go. A token is `token(number)`; with
    `stamped` it is `number:time ` with the time of sending in seconds since the epoch. `batch`
    tokens share one write. `cut_at` drops the connection after so many bytes of the event stream.
    """

    def __init__(
        self,
        tokens: int,
        *,
        rate: float | None = None,
        stamped: bool = False,
        batch: int = 1,
        valve: Valve | None = None,
        cut_at: int | None = None,
    ) -> None:
        self.tokens = tokens
        self.text = "" if stamped else "".join(map(token, range(tokens)))
        self._rate = rate
        self._stamped = stamped
        self._batch = batch
        self._valve = valve
        self._left = cut_at

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.head()
        start = asyncio.get_running_loop().time()
        for first in range(0, self.tokens, self._batch):
            numbers = range(first, min(first + self._batch, self.tokens))
            if self._valve is not None and not await self._valve.enter(numbers[-1]):
                exchange.abort()
                return
            if self._rate:
                due = start + first / self._rate - asyncio.get_running_loop().time()
                await asyncio.sleep(max(0.0, due))
            if not await self._write(exchange, [self._event(number) for number in numbers]):
                return
            if self._valve is not None:
                await self._valve.note(numbers[-1] + 1)
        if await self._write(exchange, chat_ending(tokens=self.tokens)):
            await exchange.end()

    def _event(self, number: int) -> bytes:
        text = f"{number}:{time.time():.6f} " if self._stamped else token(number)
        return token_event(text)

    async def _write(self, exchange: Exchange, events: list[bytes]) -> bool:
        """Sends each event as an HTTP chunk, all in one write; False where the stream was cut."""
        if self._left is not None:
            data = b"".join(events)
            if self._left <= len(data):
                if self._left:
                    await exchange.chunk(data[: self._left])
                exchange.abort()
                return False
            self._left -= len(data)
        await exchange.send(b"".join(map(http_chunk, events)))
        return True


async def as_prompted(exchange: Exchange) -> None:
    """Streams what the last user message asks for: `tokens=500 rate=50 batch=1 stamped`."""
    words = dict(re.findall(r"(\w+)=([\d.]+)", exchange.request.prompt))
    await TokenStream(
        int(words.get("tokens", 100)),
        rate=float(words["rate"]) if "rate" in words else None,
        stamped="stamped" in exchange.request.prompt,
        batch=int(words.get("batch", 1)),
    )(exchange)


async def _main() -> None:
    parser = argparse.ArgumentParser(description="Streams tokens as the last user message says.")
    parser.add_argument("--port", type=int, default=0)
    async with ModelServer(as_prompted, port=parser.parse_args().port) as server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
