"""The client side of HTTP/1.1 with as little work as possible, so that it can share a core."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import httptools

WAIT_SECONDS = 30.0
"""For the answer to a request that does not stream."""


class Connection(asyncio.Protocol):
    """One request and its answer, whose body goes to `take` piece by piece."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self.head: asyncio.Future[int] = loop.create_future()
        """The status, once the head of the answer is there."""
        self.ended: asyncio.Future[None] = loop.create_future()
        self._take = take
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        lost = exc or ConnectionResetError("the connection ended in mid-answer")
        for each in (self.head, self.ended):
            if not each.done():
                each.set_exception(lost)
                each.exception()  # Somebody may have stopped to wait.

    def on_headers_complete(self) -> None:
        self.head.set_result(self._parser.get_status_code())

    def on_body(self, body: bytes) -> None:
        self._take(body)

    def on_message_complete(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def open_request(
    address: str, method: str, path: str, take: Callable[[bytes], None], document: Any = None
) -> Connection:
    """Sends a request and returns once the head of a good answer is there.

    Raises RuntimeError for any status but 2xx.
    """
    where = urlsplit(address)
    content = b"" if document is None else json.dumps(document).encode()
    lines = (
        f"{method} {path} HTTP/1.1",
        f"host: {where.netloc}",
        "content-type: application/json",
        f"content-length: {len(content)}",
        "",
        "",
    )
    transport, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(take), str(where.hostname), where.port or 80
    )
    transport.write("\r\n".join(lines).encode() + content)
    async with asyncio.timeout(WAIT_SECONDS):
        status = await connection.head
    if not 200 <= status < 300:
        connection.close()
        raise RuntimeError(f"{method} {path} answered {status}")
    return connection


async def fetch(address: str, method: str, path: str, document: Any = None) -> bytes:
    """The body of a good answer."""
    pieces: list[bytes] = []
    connection = await open_request(address, method, path, pieces.append, document)
    async with asyncio.timeout(WAIT_SECONDS):
        await connection.ended
    connection.close()
    return b"".join(pieces)
