"""Turns whose runs are written down: they are performed, gone on with, and left to others."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from web.chats.chat import Chat, Turn
from web.chats.journal.journal import TurnBegun, TurnTakenBack
from web.chats.journal.picture_bytes import turn_with_bytes
from web.chats.parts.halted_kinds import HaltedWhy
from web.chats.runs.abandoning import Abandoning
from web.chats.runs.driver import Driver, leave
from web.chats.runs.durability import (
    AGAIN_SECONDS,
    LEASE_WAIT_SECONDS,
    Durability,
    is_taken_back,
)
from web.chats.runs.run_messages import without_run
from web.chats.runs.run_output import INTERNAL, UNFINISHED
from web.chats.runs.taking_back import TakingBack
from web.harness.agent.pausing import RunPaused
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.taking_up import UNREADABLE
from web.harness.values.errors import (
    ConfigurationError,
    HarnessError,
    SessionConflict,
    StoreError,
)
from web.harness.values.events import ErrorReport, EventBody, Note, RunResult

log = logging.getLogger(__name__)

STANDING = ("runtime_differs", "run_interrupted")
"""Codes of what a person can mend, or wait out: the run can go on then."""

HEARD_SECONDS = 5.0
"""For the last events of a run to be heard of here, too."""


@dataclass(slots=True, eq=False)
class _Attempt:
    """One performance of a run, as far as this process has it."""

    chat: Chat
    begun: TurnBegun
    is_new: bool
    """Nothing says yet that it began."""
    goes_on: asyncio.Future[None] | None = None
    """Set once a run that was cut off is certain to go on."""
    note: str = ""
    """What the page is told when it goes on."""
    result: RunResult | None = None
    by_another: bool = False
    """Another server ran it."""

    @property
    def run_id(self) -> str:
        return self.begun.turn.run_id


@dataclass(frozen=True, slots=True)
class _Stands:
    """Why a run stands still, or, without a `why`, that somebody else has it."""

    why: HaltedWhy | None = None
    words: str = ""


class DurableTurns(TakingBack):
    """The part of `Turns` that performs runs by a backend. Without one it has nothing to do."""

    _driver: Driver
    _runtime: HarnessRuntime
    _now: Callable[[], float]
    _ending: dict[str, asyncio.Event]
    abandoning: Abandoning

    def __init__(self) -> None:
        super().__init__()
        self.left_standing: Callable[[Chat, TurnBegun], None] = lambda chat, begun: None
        """Called with a run that this process does not perform any more, and that has no end."""
        self.stopped: Callable[[str], None] = lambda run_id: None
        """Called once it is written down that a run is to stop."""
        self._grants: dict[str, tuple[str, ...]] = {}
        self._told: dict[str, asyncio.Event] = {}
        """By run of this process: set once the page has its result."""

    @property
    def durable(self) -> Durability | None:
        return self._durable

    @property
    @abstractmethod
    def running(self) -> int: ...

    @abstractmethod
    def _check_room(self) -> None: ...

    @abstractmethod
    async def _was_run(self, chat: Chat, run_id: str, services: ExecutionServices) -> bool: ...

    def go_on(self, chat: Chat, begun: TurnBegun, *, note: str) -> asyncio.Future[None]:
        """Goes on with a run that nobody performs. What it gives is done once that is certain.

        Raises SessionConflict while something runs here, LimitExceeded; what it gives raises
        SessionConflict, HarnessError (`runtime_differs`), RunPaused and StoreError.
        """
        if chat.turn is not None:
            raise SessionConflict("This chat is at work already.")
        self._check_room()
        certain: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Nobody need wait for it.
        certain.add_done_callback(lambda each: each.cancelled() or each.exception())
        turn = begun.turn
        chat.turn, chat.elsewhere, chat.failed = turn, None, None
        self._own.add(turn.run_id)
        attempt = _Attempt(chat, begun, is_new=False, goes_on=certain, note=note)
        self._running[turn.run_id] = self._tasks.create_task(self._perform(attempt))
        return certain

    async def cut_off(self) -> None:
        """Stops performing all runs that are written down; they go on in another process."""
        if self._durable is None:
            return
        running = set(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def counts(self, run_id: str) -> bool:
        """Whether what a run of this process uses is counted where it says so, and not as it is
        heard of."""
        return self._durable is None and run_id in self._own

    def hear(self, chat: Chat, run_id: str, last: EventBody) -> None:
        """Events of a run of this process were written; this is the newest."""
        if isinstance(last, RunResult):
            self.to_stop.discard(run_id)
        if self._durable is None or run_id not in self._running:
            return
        if isinstance(last, RunResult):
            self._ending.setdefault(run_id, asyncio.Event())
            if (told := self._told.get(run_id)) is not None:
                told.set()
        if chat.agent is not None and self._grants.get(run_id) != (now := tuple(chat.grants)):
            self._grants[run_id] = now
            chat.show_grants()
            self._changed(chat)

    async def _stop_durably(self, chat: Chat, run_id: str, durable: Durability) -> None:
        """Stops a run wherever it is performed; one that nobody performs is ended as it is."""
        self.to_stop.add(run_id)
        if not await durable.stop(run_id) and chat.agent is not None:
            chat.agent.cancel()
        self.stopped(run_id)

    async def _run_durably(self, chat: Chat, turn: Turn, instead_of: str | None) -> None:
        await self._perform(_Attempt(chat, TurnBegun(turn, 0.0, instead_of or ""), is_new=True))

    async def _perform(self, attempt: _Attempt) -> None:
        """Brings a run to its end, or to where it stands still or is another's."""
        chat, turn = attempt.chat, attempt.begun.turn
        stands: _Stands | None = None
        try:
            stands = await self._stand(attempt)
            if attempt.goes_on is not None and not attempt.goes_on.done():
                attempt.goes_on.set_result(None)  # Another server had brought it to its end.
        finally:
            if attempt.goes_on is not None and not attempt.goes_on.done():
                attempt.goes_on.cancel()
            del self._running[turn.run_id]
            self._grants.pop(turn.run_id, None)
            self._told.pop(turn.run_id, None)
            chat.turn = None
            unfinished = attempt.result is None or attempt.result.status in UNFINISHED
            if stands is not None and attempt.is_new:
                self._wait_again(chat, turn)
            elif stands is not None:
                self._own.discard(turn.run_id)
                chat.elsewhere = turn
            elif not attempt.by_another:
                chat.failed = turn if unfinished else None
                self.to_stop.discard(turn.run_id)
            self._stopping.discard(turn.run_id)
            if (ending := self._ending.pop(turn.run_id, None)) is not None:
                ending.set()
        if stands is None:
            await self._go_on(chat, turn)
        elif not attempt.is_new:
            if stands.why is not None:
                chat.transcript.halt(turn.run_id, stands.why, stands.words)
            self._changed(chat)
            self.left_standing(chat, attempt.begun)

    async def _stand(self, attempt: _Attempt) -> _Stands | None:
        """None once the run has its end; a store that fails is tried again, however often."""
        failures = 0
        while True:
            try:
                await self._once_stored(
                    attempt.chat,
                    attempt.run_id,
                    lambda services: self._drive(attempt, services),
                    lambda: attempt.is_new,
                )
                return None
            except RunPaused as error:
                _refuse(attempt, error)
                return _Stands("paused")
            except SessionConflict as error:
                _refuse(attempt, error)
                return _Stands()
            except StoreError as error:
                if attempt.is_new:
                    return await self._failed(attempt, error)
                _refuse(attempt, error)
                if error.code in UNREADABLE:
                    return _Stands("differs", error.message)  # No waiting mends that.
                if attempt.run_id in self._stopping:
                    return _Stands()  # It is ended once the store works.
                log.warning("A run waits for the store: %s", error.message)
                await asyncio.sleep(AGAIN_SECONDS[min(failures, len(AGAIN_SECONDS) - 1)])
                failures += 1
            except HarnessError as error:
                stands = error.code in STANDING or isinstance(error, ConfigurationError)
                if attempt.is_new or not stands:
                    return await self._failed(attempt, error)
                _refuse(attempt, error)
                return _Stands("differs", error.message)
            except Exception as error:
                return await self._failed(attempt, error)

    async def _once_stored(
        self,
        chat: Chat,
        run_id: str,
        drive: Callable[[ExecutionServices], Awaitable[None]],
        is_new: Callable[[], bool],
    ) -> None:
        """Has a run driven under the lease of its session. A message was taken, so until its run
        has begun it waits for a store that fails, however long, and those behind it do, too.

        Raises what `drive` raises, and SessionConflict for a message to put back into the queue.
        """
        failures = 0
        while True:
            try:
                return await self._runtime.run(
                    chat.identity, chat.id, drive, wait=LEASE_WAIT_SECONDS
                )
            except StoreError as error:
                is_refused = error.code == StoreError.code and not error.transient
                if not is_new() or is_refused or error.code in UNREADABLE:
                    raise  # No waiting mends what a store refuses.
                if run_id in self._stopping:
                    # Whoever stops it need not wait; it is ended once the store works.
                    self.to_stop.add(run_id)
                    raise SessionConflict("It cannot begin, and is not to.") from error
                log.warning("A message waits for the store: %s", error.message)
                await asyncio.sleep(AGAIN_SECONDS[min(failures, len(AGAIN_SECONDS) - 1)])
                failures += 1

    async def _drive(self, attempt: _Attempt, services: ExecutionServices) -> None:
        """Performs a run under the lease of its session."""
        services.commits = False
        chat, begun, durable = attempt.chat, attempt.begun, self._durable
        if durable is None:
            raise RuntimeError("Only runs that are written down are performed here.")
        turn, run_id = begun.turn, attempt.run_id
        if attempt.is_new:
            # Under the lease: whoever finds a run begun, and the lease free, knows it is cut off.
            if await self._was_run(chat, run_id, services):
                attempt.by_another, chat.history = True, services.history
                return
            if await durable.unfinished(chat):
                raise SessionConflict("Another answer of this chat is not settled yet.")
            # Of a message that another server took, only the names of its pictures are known here.
            turn = await turn_with_bytes(chat, turn)
            begun = attempt.begun = replace(begun, turn=turn)
        else:
            durable.check_model(turn)
        if begun.instead_of:
            services.history = without_run(services.history, begun.instead_of)
        async with self._driver.equipped(chat, turn, services) as (agent, prepare):
            execution = await durable.submit(chat, turn, agent, begun.instead_of)
            if execution.status == "ended" or is_taken_back(execution):
                # By another server, or here, and the store could not say so.
                if is_taken_back(execution):
                    chat.taken_back[run_id] = turn
                    self._journal.write(chat, TurnTakenBack(run_id))
                attempt.by_another, chat.history = True, services.history
                return
            if attempt.is_new:
                attempt.is_new = False
                self._begin(chat, turn, begun.instead_of or None, self._now())
            if run_id in self._stopping or run_id in self.to_stop:
                await durable.stop(run_id)
            runtime = AgentRuntime(
                agent, backend=durable.backend, identity=chat.identity, keeps_state=False
            )
            told = self._told[run_id] = asyncio.Event()
            certain: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            certain.add_done_callback(lambda done: self._certain(attempt, done))
            attempt.result = await runtime.driver(
                execution,
                prepare=prepare,
                keep_question=chat.asked.keep,
                begun=certain,
                only_here=self._driver.equipment.only_here(chat),
                alone=lambda missing: chat.transcript.stand_alone(run_id, missing),
            )(services)
            # What was spent is known when the page has all of it.
            if chat.transcript.is_open(run_id):
                with suppress(TimeoutError):
                    await asyncio.wait_for(told.wait(), HEARD_SECONDS)
            leave(chat, agent, services)

    def _certain(self, attempt: _Attempt, done: asyncio.Future[None]) -> None:
        if done.cancelled():
            return
        goes_on = attempt.goes_on
        if goes_on is not None and not goes_on.done():
            goes_on.set_result(None)
        attempt.chat.transcript.go_on(attempt.run_id)
        note, attempt.note = attempt.note, ""
        if note:
            self._events.append(attempt.run_id, [Note(note)])

    async def _failed(self, attempt: _Attempt, error: Exception) -> _Stands | None:
        """Ends a run that cannot go on with what went wrong; where that cannot be done now, it
        stands still, and is looked after."""
        _refuse(attempt, error)
        if not isinstance(error, HarnessError):
            log.error("A turn broke in an unexpected way", exc_info=error)
            error = INTERNAL
        chat, turn = attempt.chat, attempt.begun.turn
        report = ErrorReport(error.code, error.message, error.hint)
        attempt.result = RunResult("failed", "", reason=error.code)
        if attempt.is_new:
            attempt.is_new = False
            self._begin(chat, turn, attempt.begun.instead_of or None, self._now())
            self._events.append(turn.run_id, [report, attempt.result])
            return None
        try:
            await self.abandoning.abandon(chat, attempt.begun, [report, attempt.result])
        except HarnessError as failed:
            log.error("A run that broke has no end yet: %s", failed.message)
            return _Stands()
        return None


def _refuse(attempt: _Attempt, error: Exception) -> None:
    if attempt.goes_on is not None and not attempt.goes_on.done():
        attempt.goes_on.set_exception(error)
