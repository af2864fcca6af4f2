"""An HTTP client that remembers what the server's refusals were."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2

from web.harness.mcp.failures import SESSION_LOST, Failure, Seen, explain, more_rights
from web.harness.mcp.sign_in import SignInFailed
from web.harness.mcp.sizes import MAX_SDK_VALUES, TOO_LARGE, EventCount
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.stdio import MAX_LINE_BYTES
from web.harness.mcp.trust import trusted

SESSION_HEADER = "mcp-session-id"

_CONNECT_TIMEOUT = 30.0


class _Capped(httpx2.AsyncByteStream):
    """A body that fails its request once it is too large, or has too many values to be read.

    In a stream of events that is one event; the bytes of an event have the SDK's limit.
    """

    def __init__(self, inner: object, *, events: bool) -> None:
        if not isinstance(inner, httpx2.AsyncByteStream):
            raise TypeError("The body of an asynchronous answer is an asynchronous stream.")
        self._inner = inner
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_LINE_BYTES
        count = EventCount()
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0 and not self._events:
                raise httpx2.StreamError(f"{TOO_LARGE}: more than {MAX_LINE_BYTES:,} bytes.")
            if count.add(chunk) > MAX_SDK_VALUES:
                words = f"{TOO_LARGE}: it has more than {MAX_SDK_VALUES:,} values."
                raise httpx2.SSEError(words) if self._events else httpx2.StreamError(words)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class WatchedClient(httpx2.AsyncClient):
    """Takes note of every refusal, and of the end of a session, before the SDK makes it all one.

    `ended` is called once the server cannot be reached or no longer knows the session: the
    connection has to be made anew. Reading has no limit here; a call has its own clock. `answers`
    says that a request which is refused is told so, as it is in streamable HTTP.
    """

    def __init__(
        self,
        spec: ServerSpec,
        seen: Seen,
        ended: Callable[[Failure], None],
        auth: httpx2.Auth | None = None,
        answers: bool = True,
    ) -> None:
        super().__init__(
            headers=dict(spec.headers),
            timeout=httpx2.Timeout(_CONNECT_TIMEOUT, read=None),
            verify=trusted(),
            auth=auth,
        )
        self._spec = spec
        self._seen = seen
        self._ended = ended
        self._answers = answers

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends as the base class does. Raises what it raises."""
        try:
            response = await super().send(request, **options)
        except SignInFailed as error:
            response = self._unsigned(request, error)
        except httpx2.TransportError as error:
            if not isinstance(error, httpx2.TimeoutException):
                self._ended(explain(error, self._spec, Seen()))
            raise
        self._note(request, response)
        kind = response.headers.get("content-type", "").lower()
        if kind.startswith(("application/json", "text/event-stream")):
            response.stream = _Capped(response.stream, events=kind.startswith("text/"))
        return response

    def _unsigned(self, request: httpx2.Request, error: SignInFailed) -> httpx2.Response:
        """A refusal in place of an error, which would end more than this request."""
        if self._seen.failure is None:
            self._seen.failure = Failure(error.cause, error.state, lasting=error.state == "sign_in")
        return httpx2.Response(401, request=request)

    def _note(self, request: httpx2.Request, response: httpx2.Response) -> None:
        if response.status_code == 404 and SESSION_HEADER in request.headers:
            self._seen.session_lost = self._seen.session_lost or request.method == "POST"
            if request.method in ("GET", "POST"):
                self._end(request, SESSION_LOST)
        elif request.method == "POST" or response.status_code in (401, 403):
            # The stream for notifications is a wish: a server may refuse that GET.
            refused = response.status_code >= 400
            self._seen.status = response.status_code if refused else None
            self._seen.challenge = response.headers.get("www-authenticate", "")
            if response.status_code == 401 or more_rights(self._seen):
                self._end(request, explain(httpx2.HTTPError("refused"), self._spec, self._seen))

    def _end(self, request: httpx2.Request, failure: Failure) -> None:
        if request.method == "POST" and self._answers:
            # The request itself is told first; see the transport.
            self._seen.last = self._seen.last or failure
        else:
            self._ended(failure)
