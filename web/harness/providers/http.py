"""One HTTP request whose answer is read as it comes."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import httpcore
import httpx

from web.harness.providers.body import Body, body_of
from web.harness.providers.direct import DirectTransport, HeadFirstStream
from web.harness.providers.failures import (
    Api,
    broken_stream,
    closed,
    refusal,
    transport_error,
)
from web.harness.providers.payload import Payload
from web.harness.values.errors import ProviderError

CONNECT_SECONDS = 15.0
CLOSE_SECONDS = 2.0
MAX_ERROR_BYTES = 64 * 1024
ERROR_BODY_SECONDS = 10.0

NETWORK_ERRORS = (
    httpx.HTTPError,
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    anyio.ClosedResourceError,
    OSError,
)


class Patience:
    """How long one read may take. The reader of an answer may shorten it as it goes."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Answer:
    """The answer to one request: its status, its headers and its bytes."""

    def __init__(self, response: httpx.Response, requests: Requests) -> None:
        self._response = response
        self._requests = requests
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def reads(self, patience: Patience) -> AsyncGenerator[bytes, None]:
        """The body, piece by piece, each as large as one read brought.

        Raises ProviderError when the connection is lost, ends before the body does, or is silent
        for longer than `patience` allows.
        """
        connection = self._response.extensions.get("network_stream")
        plain = self.headers.get("content-encoding", "identity") == "identity"
        if isinstance(connection, HeadFirstStream) and plain:
            source = self._direct(connection, body_of(self.headers), patience)
        else:
            source = self._decoded()
        try:
            async with aclosing(source) as pieces:
                async for data in pieces:
                    yield data
        except NETWORK_ERRORS as error:
            raise self._requests.lost(error, patience.seconds) from None
        except ValueError as error:
            raise broken_stream(self._requests.api, str(error)) from error

    async def error_text(self) -> str:
        """The start of the body of an error, '' where it does not come in time."""
        pieces: list[bytes] = []
        size = 0
        with anyio.move_on_after(ERROR_BODY_SECONDS):
            try:
                async for data in self._response.aiter_bytes():
                    pieces.append(data)
                    size += len(data)
                    if size >= MAX_ERROR_BYTES:
                        break
            except NETWORK_ERRORS:
                # What came until then is still the best that can be told.
                pass
        return b"".join(pieces)[:MAX_ERROR_BYTES].decode("utf-8", "replace")

    async def _direct(
        self, connection: HeadFirstStream, body: Body, patience: Patience
    ) -> AsyncGenerator[bytes, None]:
        while not body.ended:
            raw = await connection.read_body(patience.seconds)
            if not raw:
                if body.until_close:
                    return
                raise httpcore.ReadError("the connection ended in mid-answer")
            data = body.feed(raw)
            if data:
                yield data

    async def _decoded(self) -> AsyncGenerator[bytes, None]:
        """The body as httpx reads it: where it is compressed or comes through a proxy."""
        async for data in self._response.aiter_bytes():
            yield data


class Requests:
    """Sends requests to one API, each over a connection of its own.

    httpx 0.28 looks at every connection of a pool whenever one closes, so that 500 streams in one
    pool delay each other by seconds. A stream therefore has a transport for itself, closed with
    it; the trust store, its one costly part (20 ms), is loaded once, at first need.
    """

    def __init__(
        self,
        api: Api,
        url: httpx.URL,
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.api = api
        self._url = url
        self._headers = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": "harness-web",
            **headers,
        }
        self._proxy = _proxy_for(url)
        self._tls = tls
        self._tls_lock = anyio.Lock()
        self._transports: set[httpx.AsyncBaseTransport] = set()
        self._closed = False

    @asynccontextmanager
    async def post(
        self, document: dict[str, Any], model: str, stall_seconds: float
    ) -> AsyncIterator[Answer]:
        """Sends `document` as JSON; gives the answer once its headers are there.

        Texts of the document may be `Base64`; an error status may then be PicturesRefused.
        Raises ProviderError where there is no answer or it has an error status. Leaving the
        context closes the connection at once, also in mid-answer.
        """
        if self._closed:
            raise closed(self.api)
        transport = await self._transport()
        self._transports.add(transport)
        response: httpx.Response | None = None
        payload = Payload(document)
        try:
            try:
                response = await transport.handle_async_request(
                    self._request(payload, stall_seconds)
                )
            except NETWORK_ERRORS as error:
                # Not chained: the words of the cause may repeat what the server echoed, unredacted.
                raise self.lost(error, stall_seconds) from None
            answer = Answer(response, self)
            if not response.is_success:
                text = await answer.error_text()
                raise refusal(
                    self.api,
                    model,
                    text,
                    status=answer.status,
                    headers=answer.headers,
                    pictures=payload.has_data,
                )
            yield answer
        finally:
            self._transports.discard(transport)
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                if response is not None:
                    await response.aclose()
                await transport.aclose()

    async def aclose(self) -> None:
        """Ends every open stream; each then raises ProviderError where it is read."""
        self._closed = True
        while self._transports:
            await self._transports.pop().aclose()

    def lost(self, error: Exception, seconds: float) -> ProviderError:
        """The error for a connection that failed, or that `aclose` took away."""
        return closed(self.api) if self._closed else transport_error(self.api, error, seconds)

    def _request(self, payload: Payload, stall_seconds: float) -> httpx.Request:
        timeout = httpx.Timeout(stall_seconds, connect=CONNECT_SECONDS)
        return httpx.Request(
            "POST",
            self._url,
            content=payload.chunks(),
            headers={**self._headers, "content-length": str(payload.length)},
            extensions={"timeout": timeout.as_dict()},
        )

    async def _transport(self) -> httpx.AsyncBaseTransport:
        """A transport for one stream, through the proxy that the environment names, if any."""
        if self._proxy is not None:
            return httpx.AsyncHTTPTransport(verify=await self._trust(), proxy=self._proxy)
        return DirectTransport(await self._trust() if self._url.scheme == "https" else None)

    async def _trust(self) -> ssl.SSLContext:
        async with self._tls_lock:
            if self._tls is None:
                # In a thread: it reads a file of certificates and would hold up all streams.
                self._tls = await anyio.to_thread.run_sync(httpx.create_ssl_context)
            return self._tls


def _proxy_for(url: httpx.URL) -> str | None:
    """The proxy that the environment names for this address; the machine itself needs none."""
    if url.host in ("localhost", "::1") or url.host.startswith("127."):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(url.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
