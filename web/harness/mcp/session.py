"""One entered client: from the first message until it ends. It lives in the task that opened it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.client import Client, ClientRequestContext, IncomingMessage, Transport
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from web import __version__
from web.harness.mcp.asking import Asker, Elicitation, ElicitationAnswer
from web.harness.mcp.authorising import Authorised
from web.harness.mcp.calls import Call, Calls, OnProgress
from web.harness.mcp.concealing import concealed
from web.harness.mcp.failures import (
    SESSION_LOST,
    Failure,
    Seen,
    Unreachable,
    call_error,
    explain,
    lost_session_call,
    refusal,
    silent_call,
)
from web.harness.mcp.listing import Listing, Lists
from web.harness.mcp.roots import told_roots
from web.harness.mcp.rounds import Rounds
from web.harness.mcp.sampling import Sampler
from web.harness.mcp.sign_in import SignIn
from web.harness.mcp.spec import Protocol, ServerSpec, Way
from web.harness.mcp.status import Journal
from web.harness.mcp.subscriptions import Subscriptions
from web.harness.mcp.tap import Tap
from web.harness.mcp.transports import Wire, legacy_sse, stdio, streamable_http
from web.harness.mcp.watches import Watches
from web.harness.mcp.wording import tidy
from web.harness.tools.outputs import as_output
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import Continued
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

SETTLE_SECONDS = 3.0
MAX_PROGRESS_CHARS = 500
LOG_LEVEL: types.LoggingLevel = "info"

_NOT_STREAMABLE = frozenset({400, 404, 405, 406, 415, 501})
"""Refusals after which an address may still speak the older HTTP+SSE."""

_T = TypeVar("_T")


class Session:
    """One connected server. `over` is set once it has ended; `failure` then says why.

    `client`, `lists` and `subscriptions` are there once it is entered.
    """

    subscriptions: Subscriptions

    def __init__(
        self,
        spec: ServerSpec,
        journal: Journal,
        changed: Callable[[], None],
        watches: Watches,
        roots: Sequence[Path],
        access: SignIn,
    ) -> None:
        self.over = anyio.Event()
        self.failure: Failure | None = None
        self.seen = Seen()
        self._spec = spec
        self._journal = journal
        self._changed = changed
        self._watches = watches
        self._roots = roots if spec.roots else ()
        self._access = access
        self._tap = Tap(journal.add)
        self._calls = Calls(spec.name, journal.add)
        self._client: Client | None = None
        self._lists: Lists | None = None

    @property
    def client(self) -> Client:
        """The SDK's client. Raises RuntimeError before it is entered."""
        if self._client is None:
            raise RuntimeError("The session has not been entered.")
        return self._client

    @property
    def lists(self) -> Lists:
        """What the server offers. Raises RuntimeError before it is entered."""
        if self._lists is None:
            raise RuntimeError("The session has not been entered.")
        return self._lists

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
            self._lists = Lists(self._client)
            if self.lists.tools.entries is None:
                await self._read(self.lists.tools)
            async with anyio.create_task_group() as group:
                self.subscriptions = self._subscriptions(group)
                group.start_soon(self._follow, self.lists.tools)
                for each in self.lists.later:
                    each.outdate()
                    group.start_soon(self._follow, each)
                group.start_soon(self.subscriptions.keep)
                group.start_soon(self._ask_for_log)
                yield self
                group.cancel_scope.cancel()

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        on_progress: OnProgress | None = None,
        ask: Asker | None = None,
        sample: Sampler | None = None,
        continued: Continued | None = None,
    ) -> types.CallToolResult:
        """The result, from any task. Raises ToolError; cancelled, it cancels at the server too."""
        call = Call(self._spec.call_seconds, self._watched(on_progress), self._asker(ask), sample)

        def send() -> Awaitable[types.CallToolResult]:
            if self.legacy:
                if continued is not None:
                    raise ToolError(f"The question of '{name}' has ended with its connection.")
                return self.client.call_tool(name, arguments, progress_callback=call.progressed)
            # What holds a secret is not written down: the question then ends with this process.
            rounds = Rounds(self.client, self._calls, call, name, arguments, self._is_fit)
            return rounds.run(continued)

        return await self._answered(call, f"'{name}'", lambda: self._calls.after_visits(call, send))

    async def settled(self) -> None:
        """Waits at most `SETTLE_SECONDS` while the tools are being read again."""
        with anyio.move_on_after(SETTLE_SECONDS):
            await self.lists.tools.settled.wait()

    async def request(self, name: str, send: Callable[[], Awaitable[_T]]) -> _T:
        """The answer to another request that is called `name`, as for a call."""
        return await self._answered(Call(self._spec.call_seconds), name, send)

    async def _answered(self, call: Call, name: str, send: Callable[[], Awaitable[_T]]) -> _T:
        try:
            with self._calls.entered(call):
                return concealed(await send(), self._spec)
        except Exception as error:
            if self._is_session_lost(error):
                raise lost_session_call(name, self._spec) from error
            raise call_error(error, name, self._spec, self.seen) from error
        # Only the clock of the call leaves the block without a result.
        raise silent_call(name, self._spec)

    def _is_fit(self, text: str) -> bool:
        return concealed(text, self._spec) == text

    def _watched(self, on_progress: OnProgress | None) -> OnProgress | None:
        """The same with words that are fit to be shown."""
        if on_progress is None:
            return None

        def told(done: float, total: float | None, words: str) -> None:
            fit = tidy(concealed(words, self._spec), MAX_PROGRESS_CHARS, one_line=True)
            on_progress(done, total, fit)

        return told

    def _asker(self, ask: Asker | None) -> Asker | None:
        """The same with questions in which no secret is shown."""
        if ask is None:
            return None

        async def asked(question: Elicitation) -> ElicitationAnswer:
            return await ask(
                replace(
                    question,
                    message=concealed(question.message, self._spec),
                    schema=concealed(question.schema, self._spec),
                    url=concealed(question.url, self._spec),
                )
            )

        return asked

    async def _sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        return await self._calls.sample(context, concealed(params, self._spec))

    def _transport(self, environ: Mapping[str, str], sse: bool) -> Transport:
        wire = Wire(self.seen, self._journal, self.end)
        if self._spec.kind == "stdio":
            return stdio(self._spec, environ, wire, self._tap)
        make = legacy_sse if sse else streamable_http
        auth = Authorised(self._access) if self._access.possible else None
        return make(self._spec, wire, self._tap, auth)

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
            sampling_callback=self._sample,
            list_roots_callback=told_roots(self._roots) if self._roots else None,
        )

    async def _discover(self) -> None:
        """What the server says of itself; a version that is forced is taken without asking."""
        session = self.client.session
        raw = await session.send_discover(LATEST_MODERN_VERSION)
        session.adopt(types.DiscoverResult.model_validate(raw, by_name=False))

    def _subscriptions(self, group: TaskGroup) -> Subscriptions:
        return Subscriptions(
            self.client,
            group,
            self._watches,
            legacy=self.legacy,
            missed=self.lists.all_stale,
            words=lambda error: refusal(error, self._spec, self.seen),
            report=self._journal.add,
            seconds=self._spec.call_seconds,
        )

    async def _read(self, listing: Listing[Any]) -> None:
        """Reads the whole list. Raises what the SDK raises."""
        if listing is self.lists.tools:
            self._tap.output_schemas.clear()
            await listing.read(self._journal.add, self._fit_tools)
        else:
            await listing.read(self._journal.add, self._fit)

    async def _fit_tools(self, tools: tuple[types.Tool, ...]) -> tuple[types.Tool, ...]:
        schemas = self._tap.output_schemas
        whole = tuple(
            tool.model_copy(update={"output_schema": schemas.get(tool.name)})
            for tool in tools
            if self._is_callable(tool)
        )
        return await self._fit(whole)

    async def _fit(self, entries: tuple[_T, ...]) -> tuple[_T, ...]:
        """The entries without secrets; a long list takes a while to be looked through."""
        if not entries or not self._spec.secret_forms():
            return entries
        return await run_in_thread(lambda: tuple(concealed(each, self._spec) for each in entries))

    def _is_callable(self, tool: types.Tool) -> bool:
        """False for one that may be called as a task only, which this host does not do."""
        if tool.execution is None or tool.execution.task_support != "required":
            return True
        words = f"The tool '{tool.name}' is left out: it runs as a task only."
        self._journal.add("warning", words)
        return False

    async def _follow(self, listing: Listing[Any]) -> None:
        """Reads a list whenever that is due. One that cannot be read costs a line of the log."""
        while True:
            await listing.due()
            try:
                with anyio.fail_after(self._spec.connect_seconds):
                    await self._read(listing)
            except (MCPError, ValidationError, TimeoutError) as error:
                words = refusal(error, self._spec, self.seen)
                self._journal.add("warning", f"The {listing.name} could not be read: {words}")
            else:
                self._changed()
            listing.settle()

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
            words = refusal(error, self._spec, self.seen)
            self._journal.add("warning", f"The level of the log could not be set: {words}")

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        text = params.data if isinstance(params.data, str) else as_output(params.data).text
        self._journal.add(params.level, text, params.logger or "")

    async def _heard(self, message: IncomingMessage) -> None:
        if self._lists is not None:
            self._lists.heard(message)
        if isinstance(message, types.ResourceUpdatedNotification):
            self._watches.tell(str(message.params.uri))
        elif isinstance(message, types.ElicitCompleteNotification):
            self._calls.completed(message.params.elicitation_id)

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
    watches: Watches,
    roots: Sequence[Path],
    access: SignIn,
) -> AsyncIterator[Session]:
    """A connected session with its tools; `way` is used and brought up to date.

    `changed` is called when its lists are others than before. `watches` are those of the
    connection, `roots` the folders that the server may know of, `access` is how it is signed in to.
    Raises Unreachable when the session cannot be made; the caller limits how long that takes.
    """
    sse = spec.kind == "sse" or (spec.kind == "http" and way.sse)
    async with AsyncExitStack() as stack:
        session = Session(spec, journal, changed, watches, roots, access)
        try:
            await stack.enter_async_context(session.entered(environ, way, sse=sse))
        except Exception as error:
            failure = explain(error, spec, session.seen)
            if spec.kind != "http" or sse or session.seen.status not in _NOT_STREAMABLE:
                raise Unreachable(failure) from error
            session = Session(spec, journal, changed, watches, roots, access)
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
