"""`AgentRuntime`: an agent whose runs are written down at each step, and go on after a crash."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from web.harness.agent.agent import Agent
from web.harness.agent.closing import in_turn
from web.harness.agent.given import check_asked
from web.harness.agent.run import Prepare
from web.harness.host import Driver, ExecutionServices, HarnessRuntime
from web.harness.runtime.answering import Answering
from web.harness.runtime.backend import Alone, Backend, Turn, executions_of
from web.harness.runtime.fitting import fitting_of
from web.harness.runtime.handle import Performing, RunHandle
from web.harness.runtime.lending import Lending
from web.harness.runtime.performing import ended
from web.harness.runtime.sql import SQLiteBackend
from web.harness.runtime.taking_up import (
    began_after,
    check_alone,
    check_fit,
    end_unread,
    to_perform,
    unreadable,
)
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity, check_scope
from web.harness.sessions.journal import Execution, Submission
from web.harness.sessions.opening import Stores
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionLease, SessionStore
from web.harness.tools.finishing import see_through
from web.harness.tools.previews import KeepQuestion
from web.harness.values.errors import (
    AgentBusy,
    AgentClosed,
    HarnessError,
    NotFound,
    SessionConflict,
    StoreError,
)
from web.harness.values.events import Event, RunResult
from web.harness.values.messages import AttachedBlock, JsonObject

log = logging.getLogger(__name__)

OWN_BACKEND = Path(".agent_runtime", "runtime.db")
"""Where runs are kept if no backend is given."""

PAUSE_SECONDS = 5.0
"""How long a run may take to come to a pause when its runtime is closed; then it is cut off."""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    execution: Execution
    performing: Performing
    handle: RunHandle


class AgentRuntime(Answering):
    """Runs an agent so that a run survives its process, and can be answered from any other.

    One run at a time, in any session of `identity`; `session_id` says which, the agent's own where
    it is not said. The agent is closed with the runtime. A backend that is handed in stays its
    owner's; without one, runs are kept in `.agent_runtime/runtime.db`. `host` ties the runs to the
    sessions and resources of an application; without one they are those of the backend.

    Nothing is resumed by itself: `resume` goes on with what was cut off or paused. `run`,
    `run_stream`, `submit` and `resume` raise SessionConflict while another process has the session
    for longer than `wait` seconds, AgentBusy while this runtime has a run under way, and
    StoreError. Use it as an async context manager, or call `aclose`.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        backend: Backend | None = None,
        identity: HarnessIdentity = LOCAL_IDENTITY,
        host: HarnessRuntime | None = None,
        keeps_state: bool = True,
    ) -> None:
        """`keeps_state` False leaves to the application what a session keeps beside messages."""
        self.agent = agent
        self.identity = identity
        self.backend: Backend = backend if backend is not None else SQLiteBackend(OWN_BACKEND)
        self.session_id = agent.session_id or secrets.token_hex(16)
        """Of the session that is run where no other is named."""
        self.pause_seconds = PAUSE_SECONDS
        self._owns_backend = backend is None
        self._host = host
        self._owns_host = host is None
        self._lending = Lending(agent, keeps=keeps_state)
        self._under_way: _UnderWay | None = None
        self._claimed = False
        self._closing = False
        self._tidying: set[asyncio.Task[None]] = set()

    async def run(
        self,
        message: str,
        *,
        session_id: str | None = None,
        request_id: str | None = None,
        attachments: Sequence[AttachedBlock] = (),
        wait: float = 0,
    ) -> RunResult:
        """One turn, from a message to its result; see `submit`. Cancelled, it cancels the run.

        A question that the agent's own approver does not answer waits for `approve`, however long.
        """
        handle = await self.submit(
            message,
            session_id=session_id,
            request_id=request_id,
            attachments=attachments,
            wait=wait,
        )
        try:
            return await handle.result()
        except asyncio.CancelledError:
            await see_through(self._stop(handle))
            raise

    @asynccontextmanager
    async def run_stream(
        self,
        message: str,
        *,
        session_id: str | None = None,
        request_id: str | None = None,
        attachments: Sequence[AttachedBlock] = (),
        wait: float = 0,
    ) -> AsyncIterator[AsyncGenerator[Event, None]]:
        """The events of one turn, once they are committed. Leaving the block early cancels it."""
        handle = await self.submit(
            message,
            session_id=session_id,
            request_id=request_id,
            attachments=attachments,
            wait=wait,
        )
        events = handle.stream()
        try:
            yield events
        finally:
            await events.aclose()
            await see_through(self._stop(handle))

    async def submit(
        self,
        message: str,
        *,
        session_id: str | None = None,
        request_id: str | None = None,
        attachments: Sequence[AttachedBlock] = (),
        about: JsonObject | None = None,
        wait: float = 0,
    ) -> RunHandle:
        """Writes a message down and begins its run, which goes on by itself.

        The same `request_id` in the same session is the same run, also in another process: nothing
        is begun twice, and where text or attachments differ, HarnessError (`request_id_reused`) is
        raised. A session whose last run was cut off or paused takes no other message:
        SessionConflict (`run_unfinished`). `about` is the application's own, JSON.
        """
        check_asked(message, attachments)
        session_id = session_id or self.session_id
        check_scope(self.identity, session_id)
        submission = Submission(
            secrets.token_hex(8),
            self.identity,
            session_id,
            request_id or secrets.token_hex(16),
            message,
            tuple(attachments),
            fitting_of(self.agent),
            about or {},
        )
        handle: RunHandle | None = None
        while handle is None:
            handle = await self._taken(submission, wait)
        return handle

    async def resume(
        self, session_id: str | None = None, *, run_id: str | None = None, wait: float = 0
    ) -> RunHandle:
        """Goes on with the run of a session that was cut off, or paused, or never begun.

        Of several the one that has begun, else the oldest, or the one that is named: each call
        goes on with one. Raises NotFound where there is none, and
        HarnessError (`runtime_differs`) where the agent does not fit the run; then nothing is done.
        """
        execution = await self._unfinished(session_id, run_id)
        here = self._handle_here(execution.submission.run_id)
        return here if here is not None else await self._start(execution, wait)

    def driver(
        self,
        execution: Execution,
        *,
        prepare: Prepare | None = None,
        keep_question: KeepQuestion | None = None,
        begun: asyncio.Future[None] | None = None,
        only_here: bool = False,
        alone: Alone | None = None,
    ) -> Driver[RunResult]:
        """What `HarnessRuntime.run` performs a run with, of a message that was submitted.

        The session's history is committed with the end of the run, in one transaction where both
        are in one database. A run that is paused, cut off or lost leaves the session as it was.
        `begun` is set once the run is certain to be performed. `prepare` and `keep_question` are
        those of `Agent.perform`, `only_here` and `alone` those of `Turn`.
        """

        async def drive(services: ExecutionServices) -> RunResult:
            services.commits = False
            stores = await self.backend.open()
            executions, run_id = executions_of(stores), execution.submission.run_id
            current = await to_perform(executions, run_id)
            await check_alone(executions, services.identity, services.session_id, run_id)
            given = await executions.answers(run_id)
            broken: StoreError | None = None
            if any(answer.kind == "cancel" for answer in given):
                # It only ends: any agent will do.
                broken = await unreadable(executions, current)
            else:
                await check_fit(executions, current, self.agent, prepare)
            after = await began_after(executions, current) if broken is None else None
            if current.status == "submitted":
                # Whoever sends the same message follows this run, and does not take it back.
                await executions.set_status(run_id, "running", current.fence)
            with self._lending.lent(services, after):
                if begun is not None and not begun.done():
                    begun.set_result(None)
                more = (prepare, keep_question, len(given), only_here, alone)
                turn = Turn(self.agent, current.submission, *more)
                if broken is not None:
                    performed = await end_unread(stores, run_id, broken)
                else:
                    performed = await self.backend.perform(turn)
                self._lending.leave(services, performed)

            async def commit(lease: SessionLease, snapshot: SessionSnapshot) -> SessionSnapshot:
                return await executions.end_with(
                    lease, snapshot, run_id, performed.fence, performed.result.status
                )

            services.commits, services.commit = True, commit
            return performed.result

        return drive

    async def aclose(self) -> None:
        """Brings a run under way to a pause, so that it can be resumed, and closes the agent; then
        what the runtime made itself: its backend, its pool of resources. Twice is fine."""
        self._closing = True
        if self._under_way is not None:
            await see_through(self._halt(self._under_way.performing))
        closes: list[Callable[[], Awaitable[object]]] = [self._tidied, self.agent.aclose]
        if self._owns_host and self._host is not None:
            closes.append(self._host.aclose)
        if self._owns_backend:
            closes.append(self.backend.aclose)
        await in_turn(*closes)

    async def __aenter__(self) -> AgentRuntime:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _taken(self, submission: Submission, wait: float) -> RunHandle | None:
        """Writes a message down and begins its run, or follows who did. One that is refused is
        taken back; None where somebody else who sent it did so, and was refused."""
        executions, run_id = executions_of(await self.backend.open()), submission.run_id
        try:
            execution = await see_through(executions.submit(submission))
            run_id = execution.submission.run_id
            if (here := self._handle_here(run_id)) is not None:
                return here
            if execution.status == "submitted":
                return await self._start(execution, wait)
        except (HarnessError, asyncio.CancelledError) as error:
            if (here := self._handle_here(run_id)) is not None:
                # It has begun, and nobody gets its handle.
                await see_through(self._stop(here))
                raise
            if await see_through(executions.withdraw(run_id)):
                raise
            known = await executions.find(run_id)
            if known is None and isinstance(error, NotFound):
                return None
            if known is None or not isinstance(error, SessionConflict):
                raise
            execution = known
        return RunHandle(await self.backend.open(), execution)

    async def _sessions(self) -> SessionStore:
        return (await self._hosted()).sessions

    async def _hosted(self) -> HarnessRuntime:
        if self._host is None:
            self._host = HarnessRuntime((await self.backend.open()).sessions)
        return self._host

    def _handle_here(self, run_id: str) -> RunHandle | None:
        under_way = self._under_way
        if under_way is None or under_way.execution.submission.run_id != run_id:
            return None
        return under_way.handle

    async def _start(self, execution: Execution, wait: float) -> RunHandle:
        """Has a run performed in a task of this runtime; returns once it has the session."""
        if self._closing:
            raise _closed()
        if self._claimed or self.agent.is_running:
            raise AgentBusy("This runtime has a run under way.", hint="One run at a time.")
        self._claimed = True
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            stores, host = await self.backend.open(), await self._hosted()
            if self._closing:
                raise _closed()
            submission = execution.submission
            performing = asyncio.get_running_loop().create_task(
                host.run(
                    submission.identity,
                    submission.session_id,
                    self.driver(execution, begun=begun),
                    wait=wait,
                )
            )
        except BaseException:
            self._claimed = False
            raise
        handle = RunHandle(stores, execution, performing)
        self._under_way = _UnderWay(execution, performing, handle)
        performing.add_done_callback(partial(self._ended, stores))
        try:
            either: set[asyncio.Future[Any]] = {performing, begun}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not begun.done():
                performing.cancel()
                await see_through(ended(performing))
            raise
        if not begun.done():
            if performing.cancelled():
                raise _closed()
            performing.result()
        return handle

    def _ended(self, stores: Stores, performing: Performing) -> None:
        under_way, self._under_way, self._claimed = self._under_way, None, False
        # Whoever has a handle is told what went wrong; nobody need have one.
        if performing.cancelled() or performing.exception() is not None or under_way is None:
            return
        run_id = under_way.execution.submission.run_id
        tidying = asyncio.get_running_loop().create_task(_tidy(stores, run_id))
        self._tidying.add(tidying)
        tidying.add_done_callback(self._tidying.discard)

    async def _tidied(self) -> None:
        await asyncio.gather(*self._tidying)

    async def _halt(self, performing: Performing) -> None:
        if self.agent.is_running:
            self.agent.pause()
            await asyncio.wait({performing}, timeout=self.pause_seconds)
        performing.cancel()
        await ended(performing)

    async def _stop(self, handle: RunHandle) -> None:
        """Cancels a run of this runtime, wherever it is performed, and waits for its end."""
        under_way = self._under_way
        if under_way is not None and under_way.handle is handle:
            with suppress(NotFound):
                await self.cancel(run_id=handle.run_id)
            await ended(under_way.performing)


def _closed() -> AgentClosed:
    return AgentClosed("This runtime was closed.", hint="Make a new one.")


async def _tidy(stores: Stores, run_id: str) -> None:
    """The events of a run that has ended take less room."""
    try:
        await stores.events.close(run_id)
    except StoreError as error:
        log.warning("The events of a run take more room than they need: %s", error.message)
