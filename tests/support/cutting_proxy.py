"""A TCP proxy between a browser and a server that does what networks and other proxies do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self

READ_BYTES = 65_536


class CuttingProxy:
    """Listens on a free port while it is entered. What it does holds for what comes from then on.

    `cut_after` gives, for each connection, after how many bytes of the server's it is cut (None:
    never). `rate` is how many bytes of the server's a second reach the browser. `buffers` keeps
    the server's bytes back until the server ends the connection. `hold()` lets nothing through in
    either direction and takes no new connection; `release()` ends that.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition("//")[2].partition(":")
        self._server_address = host, int(port)
        self.cut_after: Callable[[], int | None] = lambda: None
        self.rate: float | None = None
        self.buffers = False
        self.cuts = 0
        """Connections that were cut."""
        self._flows = asyncio.Event()
        self._flows.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Drops every connection at once, as a network does that goes away."""
        for writer in self._writers:
            writer.transport.abort()

    def hold(self) -> None:
        self._flows.clear()

    def release(self) -> None:
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ends = {writer}
        try:
            await self._flows.wait()
            server_reader, server_writer = await asyncio.open_connection(*self._server_address)
            ends.add(server_writer)
            self._writers |= ends
            async with asyncio.TaskGroup() as both:
                both.create_task(self._up(reader, server_writer))
                both.create_task(self._down(server_reader, writer))
        except* (ConnectionError, asyncio.CancelledError):
            pass  # one of the two ends is gone, or the proxy is
        finally:
            self._writers -= ends
            self._tasks.discard(task)
            for end in ends:
                end.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("the browser closed the connection")

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self.cut_after()
        kept = bytearray()
        while data := await reader.read(self._portion()):
            await self._flows.wait()
            if self.buffers and _is_stream(kept or data):
                kept += data
                continue
            if left is not None and len(data) >= left:
                writer.write(data[:left])
                with suppress(ConnectionError):
                    await writer.drain()
                self.cuts += 1
                raise ConnectionResetError("cut")
            left = left - len(data) if left is not None else None
            writer.write(data)
            await writer.drain()
            if self.rate is not None:
                await asyncio.sleep(len(data) / self.rate)
        writer.write(bytes(kept))
        await writer.drain()
        writer.close()
        raise ConnectionResetError("the server closed the connection")

    def _portion(self) -> int:
        return READ_BYTES if self.rate is None else max(1, int(self.rate / 20))


def _is_stream(head: bytes | bytearray) -> bool:
    return b"text/event-stream" in head[:2000]
