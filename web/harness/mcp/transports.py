"""The ways to a server, each behind the tap: a process, streamable HTTP, the older HTTP and SSE."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio.lowlevel
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.client._transport import TransportStreams, WriteStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from web.harness.mcp.failures import Failure, Seen, ended_process
from web.harness.mcp.http import WatchedClient
from web.harness.mcp.sizes import MAX_VALUES, has_too_many_values
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.status import STRAY, Journal
from web.harness.mcp.stdio import MAX_LINE_BYTES, LongLine, ServerProcess, running
from web.harness.mcp.tap import ENDS_BYTES, Tap, parsed, without_flood

_WRITE_AHEAD = 64
"""Messages that may wait for a server that does not read, so that Stop need not wait for it."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What a transport tells: what it saw, the server's lines, and that the connection ended."""

    seen: Seen
    journal: Journal
    ended: Callable[[Failure], None]

    def report(self, level: str, text: str) -> None:
        self.journal.add(level, text)


@asynccontextmanager
async def stdio(
    spec: ServerSpec, environ: Mapping[str, str], wire: Wire, tap: Tap
) -> AsyncIterator[TransportStreams]:
    """The streams of a process that is started here. Raises Unreachable."""
    to_sdk, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](_WRITE_AHEAD)
    outgoing, from_sdk = anyio.create_memory_object_stream[SessionMessage](_WRITE_AHEAD)

    wire.journal.forget_stderr()
    async with (
        running(spec, environ, on_stderr=wire.journal.add_stderr) as process,
        to_sdk,
        incoming,
        outgoing,
        from_sdk,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_read_lines, process, to_sdk, wire, tap)
        group.start_soon(_write_lines, process, from_sdk, tap)
        yield incoming, outgoing
        group.cancel_scope.cancel()


async def _read_lines(
    process: ServerProcess,
    to_sdk: MemoryObjectSendStream[SessionMessage | Exception],
    wire: Wire,
    tap: Tap,
) -> None:
    async with to_sdk:
        before, spoke = wire.journal.log, False
        async for lines in process.lines():
            messages: list[SessionMessage] = []
            for line in lines:
                messages += await _messages(line, wire, tap)
            spoke = spoke or bool(messages)
            for message in without_flood(messages):
                message.message = tap.received(message.message)
                try:
                    await to_sdk.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
        # Said before the stream ends, so that whoever waits for an answer can tell why.
        with anyio.move_on_after(1):
            await process.ended.wait()
            await process.silent()
        strays = () if spoke else [each for each in wire.journal.log if each not in before]
        wire.seen.ending = ended_process(
            process.ending() or "The server closed its output.",
            next((each.text for each in strays if each.level == STRAY), ""),
            next(reversed(wire.journal.stderr), ""),
        )
        wire.ended(Failure(wire.seen.ending))


async def _messages(line: bytes | LongLine, wire: Wire, tap: Tap) -> list[SessionMessage]:
    if isinstance(line, LongLine):
        limit = f"{MAX_LINE_BYTES // 2**20} MiB is the limit"
        wire.report("warning", f"A line of {line.length:,} bytes was dropped; {limit}.")
        return tap.too_large(line.start, line.end, limit) or []
    if await has_too_many_values(line):
        limit = f"it has more than {MAX_VALUES:,} values"
        wire.report("warning", f"A line of {len(line):,} bytes was dropped: {limit}.")
        return tap.too_large(line[:ENDS_BYTES], line[-ENDS_BYTES:], limit) or []
    read = parsed(line)
    if len(line) > MAX_VALUES:
        # That took a while, and so does what follows.
        await anyio.lowlevel.checkpoint()
    if read is None and line.strip():
        wire.journal.add(STRAY, line[:16_384].decode(errors="replace"))
    return read or []


async def _write_lines(
    process: ServerProcess, from_sdk: MemoryObjectReceiveStream[SessionMessage], tap: Tap
) -> None:
    async for each in from_sdk:
        tap.sent(each.message)
        text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            await process.write(text.encode(errors="replace") + b"\n")
        except OSError:
            # The end of its output says that it is gone; until then it may still answer.
            return


def streamable_http(
    spec: ServerSpec, wire: Wire, tap: Tap, auth: httpx2.Auth | None = None
) -> Transport:
    """The streams of an address that speaks streamable HTTP."""

    @asynccontextmanager
    async def inner() -> AsyncIterator[TransportStreams]:
        async with (
            WatchedClient(spec, wire.seen, wire.ended, auth=auth) as client,
            streamable_http_client(
                spec.url, http_client=client, max_sse_event_size=MAX_LINE_BYTES
            ) as streams,
        ):
            yield streams

    return _tapped(inner(), tap, wire)


def legacy_sse(
    spec: ServerSpec, wire: Wire, tap: Tap, auth: httpx2.Auth | None = None
) -> Transport:
    """The streams of an address that speaks HTTP+SSE, as before 2025."""

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return WatchedClient(spec, wire.seen, wire.ended, auth=auth, answers=False)

    return _tapped(sse_client(spec.url, auth=auth, httpx_client_factory=client), tap, wire)


@asynccontextmanager
async def _tapped(inner: Transport, tap: Tap, wire: Wire) -> AsyncIterator[TransportStreams]:
    """The streams of `inner` with the tap in both ways; tells when the server's side ends."""
    async with inner as (source, sink):
        to_sdk, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pump() -> None:
            async with to_sdk:
                async for item in source:
                    if isinstance(item, Exception):
                        wire.journal.add(STRAY, f"Something that is not MCP came: {item}")
                    else:
                        item.message = tap.received(item.message)
                    try:
                        await to_sdk.send(item)
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                        return
                    if wire.seen.last is not None:
                        wire.ended(wire.seen.last)
            wire.ended(Failure("The server ended the connection."))

        async with to_sdk, incoming, anyio.create_task_group() as group:
            group.start_soon(pump)
            yield incoming, _Noting(sink, tap)
            group.cancel_scope.cancel()


class _Noting:
    """A write stream that shows the tap what passes. It adds no task, so the order stays."""

    def __init__(self, inner: WriteStream[SessionMessage], tap: Tap) -> None:
        self._inner = inner
        self._tap = tap

    async def send(self, item: SessionMessage, /) -> None:
        self._tap.sent(item.message)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        await self.aclose()
        return None
