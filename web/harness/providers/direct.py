"""An httpx transport for one request, whose body can be read from the connection itself.

httpx hands out every HTTP chunk of a body on its own. Servers send one chunk a token, and at 29
microseconds each (measured) 20,000 tokens a second would take more than half a core before any of
them is looked at. Here httpx and httpcore do all up to the end of the response head, and the body
is read as it comes from the network: one piece a read, whatever the number of chunks in it.

For this the parser of httpcore must not see a byte of the body, so the connection it is given
(`httpcore.AsyncNetworkStream`) never lets a read go beyond the end of a head. It lies on asyncio's
own streams: those of anyio, which httpcore would take, enter a cancel scope and stop and start the
transport with each read, which costs more than all the rest of a token.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpcore
import httpx

READ_BYTES = 256 * 1024

ATTEMPT_SECONDS = 5.0
"""For one address of a host: an address family that leads nowhere must not use up all the time."""

_HEAD_END = re.compile(rb"\n\r?\n")


class HeadFirstStream(httpcore.AsyncNetworkStream):
    """A connection whose `read` stops at the end of a head and keeps the rest for `read_body`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._silence = _Silence(reader)
        self._held = b""
        self._tail = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = await self.read_body(timeout)
        # The two bytes before belong to the search: an end may lie across two reads.
        window = self._tail + data
        end = _HEAD_END.search(window)
        cut = len(data) if end is None else end.end() - len(self._tail)
        self._held = data[cut:]
        self._tail = b"" if end is not None else window[-2:]
        return data[:cut]

    async def read_body(self, seconds: float | None) -> bytes:
        """What comes next, head or not; b'' at the end of the connection."""
        if self._held:
            held, self._held = self._held, b""
            return held
        self._silence.expect(seconds)
        try:
            return await self._reader.read(READ_BYTES)
        except TimeoutError as error:
            raise httpcore.ReadTimeout from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error
        finally:
            self._silence.over()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self._silence.close()
        # Not `close`: under TLS it would wait for the other side.
        self._writer.transport.abort()

    def get_extra_info(self, info: str) -> Any:
        return self._writer.get_extra_info(info)


class _Silence:
    """Ends a read of a connection that says nothing for too long, with TimeoutError.

    `asyncio.timeout` would start and stop a timer with each read, which costs a seventh of all
    that a token costs. Here one timer stays, and looks when it is due whether it still has to be.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, seconds: float | None) -> None:
        """A read begins that may take so long; None is for ever."""
        if seconds is None:
            return
        self._due = due = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > due:
            self.close()
            self._timer = self._loop.call_at(due, self._look)

    def over(self) -> None:
        """The read has ended, in whatever way."""
        self._due = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due > self._loop.time():
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._reader.set_exception(TimeoutError())


async def connect(
    host: str, port: int, tls: ssl.SSLContext | None, seconds: float | None
) -> HeadFirstStream:
    """Opens a connection, trying the addresses of the host in turn.

    Raises httpcore.ConnectError or httpcore.ConnectTimeout after `seconds`.
    """
    name = host if tls is not None else None
    failure: Exception = OSError("the name has no address")
    try:
        async with asyncio.timeout(seconds):
            for family, address in await _addresses(host, port):
                try:
                    async with asyncio.timeout(ATTEMPT_SECONDS):
                        return HeadFirstStream(
                            *await asyncio.open_connection(
                                address,
                                port,
                                family=family,
                                ssl=tls,
                                server_hostname=name,
                                limit=READ_BYTES,
                            )
                        )
                except OSError as error:
                    failure = error
    except TimeoutError as error:
        raise httpcore.ConnectTimeout from error
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from error
    if isinstance(failure, TimeoutError):
        raise httpcore.ConnectTimeout from failure
    raise httpcore.ConnectError(str(failure)) from failure


async def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    """`(family, address)` of a host, in the order to try them."""
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys((family, str(place[0])) for family, _, _, _, place in found))
    return [(socket.AF_INET6 if literal.version == 6 else socket.AF_INET, host)]


class DirectTransport(httpx.AsyncBaseTransport):
    """Serves one request over a connection of its own; errors are those of httpcore."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._connection: httpcore.AsyncHTTP11Connection | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        seconds = request.extensions.get("timeout", {}).get("connect")
        host, port = request.url.host, url.origin.port
        stream = await connect(host, port, self._tls, seconds)
        self._connection = httpcore.AsyncHTTP11Connection(url.origin, stream)
        response = await self._connection.handle_async_request(
            httpcore.Request(
                request.method,
                url,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.aclose()


class _Body(httpx.AsyncByteStream):
    """The body as httpx reads it, for answers that are not read directly."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._response.aiter_stream():
            yield data

    async def aclose(self) -> None:
        await self._response.aclose()
