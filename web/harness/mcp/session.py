"""One entered client: from the first message until it ends. It lives in the task that opened it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import mcp_types as types
from mcp.client import Client, IncomingMessage, Transport
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from web import __version__
from web.harness.mcp.asking import Asker
from web.harness.mcp.calls import Call, Calls, OnProgress
from web.harness.mcp.failures import (
    SESSION_LOST,
    Failure,
    Seen,
    Unreachable,
    call_error,
    explain,
    lost_session_call,
    silent_call,
)
from web.harness.mcp.spec import Protocol, ServerSpec, Way
from web.harness.mcp.status import Journal
from web.harness.mcp.tap import Tap
from web.harness.mcp.transports import Wire, legacy_sse, stdio, streamable_http
from web.harness.tools.outputs import as_output
from web.harness.values.messages import JsonObject

MAX_PAGES = 100
MAX_TOOLS = 5_000
LOG_LEVEL: types.LoggingLevel = "info"
LISTEN_AGAIN_SECONDS = (1.0, 60.0)
"""The first and the longest wait before a lost subscription is asked for again."""

_NOT_STREAMABLE = frozenset({400, 404, 405, 406, 415, 501})
"""Refusals after which an address may still speak the older HTTP+SSE."""


class Session:
    """One connected server. `over` is set once it has ended; `failure` then says why."""

    def __init__(self, spec: ServerSpec, journal: Journal, changed: Callable[[], None]) -> None:
        self.tools: tuple[types.Tool, ...] = ()
        self.over = anyio.Event()
        self.failure: Failure | None = None
        self.seen = Seen()
        self._spec = spec
        self._journal = journal
        self._changed = changed
        self._tap = Tap(journal.add)
        self._calls = Calls(spec.name)
        self._stale = anyio.Event()
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The SDK's client. Raises RuntimeError before it is entered."""
        if self._client is None:
            raise RuntimeError("The session has not been entered.")
        return self._client

    @property
    def legacy(self) -> bool:
        """Whether the server speaks a version with a handshake."""
        return self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS

    def end(self, failure: Failure) -> None:
        """Tells the owner to leave; the first reason counts."""
        if self.failure is None:
            self.failure = failure
            self.over.set()

    def leave(self) -> None:
        """Ends it because it is no longer wanted."""
        self.end(Failure("It was disconnected."))

    @asynccontextmanager
    async def entered(
        self, environ: Mapping[str, str], way: Way, *, sse: bool
    ) -> AsyncIterator[Session]:
        """Connected and with its tools for as long as the block lasts."""
        transport = self._transport(environ, sse)
        async with self._made(transport, _mode(self._spec.protocol, way)) as self._client:
            if self._spec.protocol == LATEST_MODERN_VERSION:
                await self._discover()
            way.legacy = self.legacy
            await self._refresh()
            async with anyio.create_task_group() as group:
                group.start_soon(self._follow_tools)
                group.start_soon(self._listen)
                group.start_soon(self._ask_for_log)
                yield self
                group.cancel_scope.cancel()

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        on_progress: OnProgress | None = None,
        ask: Asker | None = None,
    ) -> types.CallToolResult:
        """The result, from any task. Raises ToolError; cancelled, it cancels at the server too."""
        call = Call(self._spec.call_seconds, on_progress, ask)
        try:
            with self._calls.entered(call):
                return await self.client.call_tool(
                    name, arguments, progress_callback=call.progressed
                )
        except Exception as error:
            if self._is_session_lost(error):
                raise lost_session_call(name, self._spec) from error
            raise call_error(error, name, self._spec, self.seen) from error
        # Only the clock of the call leaves the block without a result.
        raise silent_call(name, self._spec)

    def _transport(self, environ: Mapping[str, str], sse: bool) -> Transport:
        wire = Wire(self.seen, self._journal, self.end)
        if self._spec.kind == "stdio":
            return stdio(self._spec, environ, wire, self._tap)
        make = legacy_sse if sse else streamable_http
        return make(self._spec, wire, self._tap)

    def _made(self, transport: Transport, mode: str) -> Client:
        return Client(
            transport,
            mode=mode,
            cache=None,
            client_info=types.Implementation(name="harness-web", version=__version__),
            log_level=LOG_LEVEL,
            logging_callback=self._logged,
            message_handler=self._heard,
            elicitation_callback=self._calls.elicit,
        )

    async def _discover(self) -> None:
        """What the server says of itself; a version that is forced is taken without asking."""
        session = self.client.session
        raw = await session.send_discover(LATEST_MODERN_VERSION)
        session.adopt(types.DiscoverResult.model_validate(raw, by_name=False))

    async def _refresh(self) -> None:
        """Reads the whole list. Raises what the SDK raises; the tools stay then as they were."""
        if self.client.server_capabilities.tools is None:
            return
        self._tap.output_schemas.clear()
        found: list[types.Tool] = []
        cursors: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in cursors or len(found) >= MAX_TOOLS:
                self._journal.add("warning", "The tool list does not end; what came was kept.")
                break
            cursors.add(cursor)
        else:
            self._journal.add("warning", f"The tool list has over {MAX_PAGES} pages; it was cut.")
        schemas = self._tap.output_schemas
        self.tools = tuple(
            tool.model_copy(update={"output_schema": schemas.get(tool.name)})
            for tool in found[:MAX_TOOLS]
        )

    async def _follow_tools(self) -> None:
        """Reads the list again whenever the server says that it has changed."""
        while True:
            await self._stale.wait()
            self._stale = anyio.Event()
            try:
                with anyio.fail_after(self._spec.connect_seconds):
                    await self._refresh()
            except (MCPError, ValidationError, TimeoutError) as error:
                words = explain(error, self._spec, self.seen).cause
                self._journal.add("warning", f"The changed tool list could not be read: {words}")
            else:
                self._changed()

    async def _listen(self) -> None:
        """Keeps the newer protocol's subscription to changes open."""
        tools = self.client.server_capabilities.tools
        if self.legacy or tools is None or not tools.list_changed:
            return
        wait, longest = LISTEN_AGAIN_SECONDS
        while True:
            try:
                async with self.client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        wait = LISTEN_AGAIN_SECONDS[0]
                        self._stale.set()
            except MCPError as error:
                if error.code == types.METHOD_NOT_FOUND:
                    return
            except ListenNotSupportedError:
                return
            except SubscriptionLost:
                pass
            await anyio.sleep(wait)
            wait = min(2 * wait, longest)
            # Nothing is sent again that happened meanwhile.
            self._stale.set()

    async def _ask_for_log(self) -> None:
        """The older protocol sends log messages of a level only when asked to."""
        if not self.legacy or self.client.server_capabilities.logging is None:
            return
        level = types.SetLevelRequest(params=types.SetLevelRequestParams(level=LOG_LEVEL))
        try:
            await self.client.session.send_request(
                level, types.EmptyResult, self._spec.connect_seconds
            )
        except (MCPError, ValidationError) as error:
            words = explain(error, self._spec, self.seen).cause
            self._journal.add("warning", f"The level of the log could not be set: {words}")

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        text = params.data if isinstance(params.data, str) else as_output(params.data).text
        self._journal.add(params.level, text, params.logger or "")

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._stale.set()

    def _is_session_lost(self, error: Exception) -> bool:
        """Whether a server over HTTP refused a request since it does not know the session.

        Some say so with 400 and in words only; then this ends the session too.
        """
        if not isinstance(error, MCPError) or error.code == types.CONNECTION_CLOSED:
            return False
        if self.seen.session_lost:
            return True
        told = self.seen.status == 400 and "session" in error.message.lower()
        if told and self.legacy:
            self.end(SESSION_LOST)
        return told and self.legacy


@asynccontextmanager
async def opened(
    spec: ServerSpec,
    environ: Mapping[str, str],
    way: Way,
    *,
    journal: Journal,
    changed: Callable[[], None],
) -> AsyncIterator[Session]:
    """A connected session with its tools; `way` is used and brought up to date.

    `changed` is called when the tools are others than before. Raises Unreachable when the session
    cannot be made; the caller limits how long that takes.
    """
    sse = spec.kind == "sse" or (spec.kind == "http" and way.sse)
    async with AsyncExitStack() as stack:
        session = Session(spec, journal, changed)
        try:
            await stack.enter_async_context(session.entered(environ, way, sse=sse))
        except Exception as error:
            failure = explain(error, spec, session.seen)
            if spec.kind != "http" or sse or session.seen.status not in _NOT_STREAMABLE:
                raise Unreachable(failure) from error
            session = Session(spec, journal, changed)
            try:
                await stack.enter_async_context(session.entered(environ, way, sse=True))
            except Exception as second:
                # The address was given as streamable HTTP, so that refusal is the one to tell.
                raise Unreachable(failure) from second
            way.sse = True
        yield session


def _mode(protocol: Protocol, way: Way) -> str:
    if protocol == "auto":
        return "legacy" if way.legacy else "auto"
    return protocol
