"""One server, kept connected: an actor that opens, serves, closes and opens again."""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio

from web.harness.mcp.asking import Asker
from web.harness.mcp.backoff import Backoff
from web.harness.mcp.sampling import Sampler
from web.harness.mcp.sign_in import SignIn, SignInSetup
from web.harness.mcp.spec import Kind, ServerSpec, Way
from web.harness.mcp.status import Journal, State, Status
from web.harness.mcp.tokens import TokenStore
from web.harness.mcp.watches import Watches
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import Continued
from web.harness.values.errors import ConfigurationError, ToolError
from web.harness.values.messages import JsonObject

if TYPE_CHECKING:
    import mcp_types

    # These bring the SDK, which takes most of a second: it is loaded with the first connect.
    from web.harness.mcp.calls import OnProgress
    from web.harness.mcp.failures import Failure
    from web.harness.mcp.session import Session

log = logging.getLogger(__name__)

CLOSE_SECONDS = 8.0
"""How long a server may take to be closed: a process needs four seconds to be killed."""
GRACE_SECONDS = 1.0
NOTICE_SECONDS = 0.1
"""Lines of a server are told to watchers at most this often; a change of state at once."""


class Connection:
    """A connection as others see it. Made by `Connections`, whose task runs it."""

    def __init__(
        self,
        spec: ServerSpec,
        environ: Mapping[str, str],
        way: Way,
        backoff: Backoff,
        roots: Sequence[Path] = (),
        sign_in: SignInSetup | None = None,
    ) -> None:
        self.spec = spec
        self.access = SignIn(spec, sign_in or SignInSetup(TokenStore()), self._sign_in_changed)
        self._environ = environ
        self._way = way
        self._backoff = backoff
        self._roots = roots
        self._watches = Watches(time.time, self._watches_changed)
        self._journal = Journal(spec.conceal, time.time, self._line_came)
        self._status = Status("connecting")
        self._lines_shown = True
        self._watchers: list[Callable[[Connection], None]] = []
        self._notice: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()
        self._wanted = asyncio.Event()
        self._leaving = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._session: Session | None = None
        self._served = False

    @property
    def status(self) -> Status:
        """How things stand now."""
        if not self._lines_shown:
            self._lines_shown = True
            self._status = replace(self._status, stderr=self._journal.stderr, log=self._journal.log)
        return self._status

    def watch(self, changed: Callable[[Connection], None]) -> Callable[[], None]:
        """Calls `changed` after every change of `status`; returns how to stop that."""
        self._watchers.append(changed)

        def stop() -> None:
            if changed in self._watchers:
                self._watchers.remove(changed)

        return stop

    def retry(self) -> None:
        """Connects now, where that failed or waits for its time."""
        self._wanted.set()

    async def ready(self) -> None:
        """Waits until it is ready, hardly longer than `spec.connect_seconds`.

        A connection that waits to be made anew is made at once. Raises ToolError with the cause.
        """
        await self._ready_session()

    async def settled(self) -> None:
        """Waits shortly while a tool list that the server says has changed is being read."""
        if self._session is not None:
            await self._session.settled()

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        on_progress: OnProgress | None = None,
        ask: Asker | None = None,
        sample: Sampler | None = None,
        continued: Continued | None = None,
    ) -> mcp_types.CallToolResult:
        """Calls a tool by the server's own name for it.

        `on_progress(done, total or None, words)` is called at most ten times a second, always with
        the last report. Silence for `spec.call_seconds` ends a call, but not while `ask` has a
        question open or `sample` is at work, which answers only what `ask` has shown. `continued`
        goes on from a question put before. Raises ToolError in words. Cancelling tells the server.
        """
        session = await self._ready_session()
        return await session.call(name, arguments, on_progress, ask, sample, continued)

    async def read_resource(self, uri: str) -> mcp_types.ReadResourceResult:
        """What a resource holds now; see `reading.read_resource` for its limits.

        Raises ToolError in words, also after `spec.call_seconds`.
        """
        from web.harness.mcp.reading import read_resource

        session = await self._ready_session()
        asked_at = self._watches.now()
        result = await read_resource(session, uri)
        self._watches.was_read(uri, asked_at)
        return result

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str]
    ) -> mcp_types.GetPromptResult:
        """The messages of a prompt; see `reading.get_prompt` for its limits.

        Raises ToolError in words, also after `spec.call_seconds`.
        """
        from web.harness.mcp.reading import get_prompt

        return await get_prompt(await self._ready_session(), name, arguments)

    async def complete(
        self,
        reference: mcp_types.PromptReference | mcp_types.ResourceTemplateReference,
        argument: str,
        value: str,
        others: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[str, ...]:
        """What the server thinks that `value` may become; `others` are typed already.

        Nothing where it cannot tell, does not within five seconds, or is not connected.
        """
        from web.harness.mcp.concealing import concealed
        from web.harness.mcp.reading import complete

        if self._session is None:
            return ()
        found = await complete(self._session, reference, argument, value, others)
        return concealed(found, self.spec)

    async def watch_resource(self, uri: str) -> None:
        """Has news of a resource told in `status.updated`, after a restart of the server too.

        News is also told where some may have been missed. Raises ToolError in words.
        """
        session = await self._ready_session()
        await session.subscriptions.watch(uri)

    async def unwatch_resource(self, uri: str) -> None:
        """Ends `watch_resource`; one that is not watched is fine. Never fails."""
        if self._session is None:
            self._watches.discard(uri)
        else:
            await self._session.subscriptions.unwatch(uri)

    def begin_sign_in(self, redirect_uri: str) -> None:
        """Connects with a sign-in, after which the browser comes back to `redirect_uri`.

        Once `status.sign_in` has an address, a person has to go there, and `access.finish` takes
        what comes back. Twice is once. Raises ConfigurationError where none is waited for.
        """
        if self.access.begun:
            return
        if self._status.state != "sign_in" or not self.access.possible:
            raise ConfigurationError(f"'{self.spec.name}' does not wait for a sign-in.")
        self.access.begin(redirect_uri)
        self._wanted.set()

    def leave(self) -> None:
        """Ends the connection soon; whoever runs it waits for that."""
        self._leaving.set()
        self._wanted.set()
        self._set("closed", retry_at=None)
        if self._session is not None:
            self._session.leave()
        elif self._scope is not None:
            self._scope.cancel()

    async def run(self) -> None:
        """Keeps the server connected until `leave`, or until this task is cancelled."""
        stop = self.access.watch(self._signed)
        try:
            # A page must not stand still while the SDK is loaded.
            await run_in_thread(lambda: _load(self.spec.kind))
            await self._keep()
        finally:
            stop()
            self._session = None
            self.access.end(f"'{self.spec.name}' has been disconnected.")
            self._set("closed", retry_at=None)

    async def _keep(self) -> None:
        failures, ever = 0, False
        while not self._leaving.is_set():
            began = anyio.current_time()
            self._served = False
            failure = await self._serve()
            if not self._served:
                self.access.end(failure.cause)
            if self._leaving.is_set():
                return
            if not self._served:
                self._search_again(failure)
            elif anyio.current_time() - began > self._backoff.healthy:
                failures = 0
            failures += 1
            ever = ever or self._served
            await self._wait(failure, self._pause(failure, failures, ever))

    async def _serve(self) -> Failure:
        """One session, from its beginning to its end; returns why it ended."""
        from web.harness.mcp.failures import Seen, Unreachable, explain, silence
        from web.harness.mcp.session import opened

        self._set("connecting", cause="", retry_at=None)
        self._wanted.clear()
        session: Session | None = None
        try:
            with anyio.CancelScope() as self._scope:
                self._scope.deadline = anyio.current_time() + self.spec.connect_seconds
                async with opened(
                    self.spec,
                    self._environ,
                    self._way,
                    journal=self._journal,
                    changed=self._list_changed,
                    watches=self._watches,
                    roots=self._roots,
                    access=self.access,
                ) as session:
                    self._scope.deadline = math.inf
                    self._enter(session)
                    await session.over.wait()
                    self._end(session)
                    self._scope.deadline = anyio.current_time() + CLOSE_SECONDS
        except Unreachable as error:
            return error.failure
        except Exception as error:
            # What ended it was told before; what came of closing it says less.
            if session is None or session.failure is None:
                return explain(error, self.spec, Seen())
        finally:
            self._session = self._scope = None
        if session is not None and session.failure is not None:
            return session.failure
        return silence(self.spec, self._journal.has_stray)

    def _search_again(self, failure: Failure) -> None:
        """Forgets how the server was reached, since it was not.

        A program that ends when it is asked for the newer protocol is tried with the older one.
        """
        self._way.sse = False
        self._way.legacy = (
            self.spec.kind == "stdio" and not failure.lasting and not self._way.legacy
        )

    def _pause(self, failure: Failure, failures: int, ever: bool) -> float | None:
        """Seconds until the next attempt, None where only a person can help."""
        hopeless = failure.lasting or failures >= self._backoff.attempts
        if failure.state == "sign_in" or (hopeless and not ever):
            return None
        return self._backoff.wait(failures)

    async def _wait(self, failure: Failure, seconds: float | None) -> None:
        """Waits for the next attempt: its time, somebody who wants it now, or the end."""
        if self._wanted.is_set():
            return
        retry_at = None if seconds is None else anyio.current_time() + seconds
        self._set(failure.state, cause=failure.cause, retry_at=retry_at)
        with anyio.move_on_after(seconds):
            await self._wanted.wait()

    def _enter(self, session: Session) -> None:
        from web.harness.mcp.concealing import concealed

        client = session.client
        info = concealed(client.server_info, self.spec)
        self._served = True
        self._session = session
        self.access.end("")
        self._set(
            "ready",
            title=(info.title or info.name) if info else "",
            version=info.version if info else "",
            protocol=client.protocol_version,
            instructions=concealed(client.instructions or "", self.spec),
            completes=client.server_capabilities.completions is not None,
            subscribable=session.subscriptions.offered,
            **session.lists.read_so_far(),
        )

    def _end(self, session: Session) -> None:
        """No call is given to a session that has ended, while that is being cleared away."""
        self._session = None
        failure = session.failure
        if failure is not None and not self._leaving.is_set():
            retry_at = None if failure.state == "sign_in" else anyio.current_time()
            self._set(failure.state, cause=failure.cause, retry_at=retry_at)

    async def _ready_session(self) -> Session:
        if self._status.state == "failed" and self._status.retry_at is not None:
            self._wanted.set()
            await self._news.wait()
        # A little longer than a connect may take, so that its cause can be told.
        with anyio.move_on_after(self.spec.connect_seconds + GRACE_SECONDS):
            while self._session is None and self._status.state == "connecting":
                await self._news.wait()
        if self._session is None:
            raise ToolError(self._not_ready())
        return self._session

    def _not_ready(self) -> str:
        name = self.spec.name
        match self._status.state:
            case "closed":
                return f"'{name}' has been disconnected."
            case "sign_in":
                return f"'{name}' needs a person to sign in first. {self._status.cause}"
            case "failed":
                return f"'{name}' is not connected. {self._status.cause}"
            case _:
                return f"'{name}' did not connect within {self.spec.connect_seconds:g} seconds."

    # What is shown.

    def _list_changed(self) -> None:
        if self._session is not None:
            self._set("ready", **self._session.lists.read_so_far())

    def _sign_in_changed(self) -> None:
        """A person is waited for while a connection is made: that takes as long as it takes."""
        if self._scope is None or self._session is not None or self._leaving.is_set():
            return
        if self.access.waiting:
            self._scope.deadline = math.inf
            state: State = "sign_in" if self.access.address else "connecting"
            self._set(state, cause="", sign_in=self.access.address)
        else:
            self._scope.deadline = anyio.current_time() + self.spec.connect_seconds
            self._set("connecting", sign_in="")

    def _signed(self, signed_in: bool) -> None:
        """A person has signed in or out, perhaps at another connection to the same server."""
        from web.harness.mcp.failures import Failure

        if signed_in and self._status.state == "sign_in" and not self.access.begun:
            self.retry()
        if not signed_in:
            self.access.signed_in = False
            self._set(self._status.state)
            if self._session is not None:
                self._session.end(Failure("You have signed out.", "sign_in", lasting=True))

    def _watches_changed(self) -> None:
        self._set(self._status.state, watched=self._watches.uris, updated=self._watches.updated)

    def _line_came(self) -> None:
        self._lines_shown = False
        if self._notice is None and self._watchers:
            loop = asyncio.get_running_loop()
            self._notice = loop.call_later(NOTICE_SECONDS, self._tell)

    def _set(self, state: State, **changes: Any) -> None:
        changes = {"signed_in": self.access.signed_in, **changes}
        self._status = replace(self._status, state=state, **changes)
        self._news.set()
        self._news = asyncio.Event()
        self._tell()

    def _tell(self) -> None:
        if self._notice is not None:
            self._notice.cancel()
            self._notice = None
        for watcher in list(self._watchers):
            try:
                watcher(self)
            except Exception:
                log.exception("A watcher of the MCP server '%s' failed", self.spec.name)


def _load(kind: Kind) -> None:
    importlib.import_module("web.harness.mcp.session")
    if kind != "stdio":
        importlib.import_module("web.harness.mcp.trust").trusted()
