"""Looks after runs that this process does not perform: once nobody does, they go on here, or are
shown to stand still until a person says how they go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from web.chats.chat import Chat, Turn
from web.chats.journal.journal import TurnBegun
from web.chats.parts.halted_kinds import HaltedWhy
from web.chats.runs.abandoning import Abandoning
from web.chats.runs.durability import Durability
from web.chats.runs.equipment import Equipment
from web.chats.runs.interrupted_runs import InterruptedRuns
from web.chats.runs.turns import Turns
from web.chats.tasks import TaskOwner
from web.chats.transcript.run_words import LEFT, RESUMED, UNPAUSED
from web.harness.runtime.fitting import needed_tools
from web.harness.runtime.taking_up import UNREADABLE
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import CallRecord, Execution, Recorded
from web.harness.values.errors import HarnessError, LimitExceeded, SessionConflict, StoreError
from web.harness.values.events import EventBody, RunResult

log = logging.getLogger(__name__)

FREE_SECONDS = 30.0
"""For one attempt at the lease of a run that goes on elsewhere; then for another."""

AGAIN_SECONDS = 2.0
"""Between two looks at a run that stands still, and after a store failed."""

CONNECTED_SECONDS = 1.0
"""Between two looks whether what an open call needs is connected."""

SURVEY_SECONDS = 3.0
"""Between two looks at runs whose chats nobody has loaded here."""

_Key = tuple[HarnessIdentity, str]


@dataclass(slots=True, eq=False)
class _Watched:
    chat: Chat
    begun: TurnBegun
    wanted: bool = False
    """A person said that it is to go on."""
    nudge: asyncio.Event = field(default_factory=asyncio.Event)


class Supervisor:
    """Takes over runs whose process died: each goes on in one place, as the lease of its session
    is taken first."""

    def __init__(
        self,
        durable: Durability,
        turns: Turns,
        interrupted_runs: InterruptedRuns,
        abandoning: Abandoning,
        tasks: TaskOwner,
        *,
        again_seconds: float = AGAIN_SECONDS,
        survey_seconds: float = SURVEY_SECONDS,
    ) -> None:
        self._again_seconds = again_seconds
        self._survey_seconds = survey_seconds
        self._durable = durable
        self._turns = turns
        self._interrupted_runs = interrupted_runs
        self._abandoning = abandoning
        self._tasks = tasks
        self._watched: dict[str, _Watched] = {}
        turns.stopped = self._nudge

    def watch(self, chat: Chat, begun: TurnBegun) -> None:
        """From now on a run that others have, or had, is looked after, until it has its end."""
        run_id, watched = begun.turn.run_id, _Watched(chat, begun)
        if run_id not in self._watched and self._is_standing(watched):
            self._watched[run_id] = watched
            self._tasks.create_task(self._look_after(watched))

    async def survey(
        self,
        is_here: Callable[[_Key], bool],
        load: Callable[[HarnessIdentity, str], Awaitable[None]],
    ) -> None:
        """Has the chats loaded whose runs were cut off, here or on other servers, as long as it is
        awaited. Once loaded they are looked after."""
        while True:
            try:
                await self._survey(is_here, load)
            except StoreError as error:
                log.warning("It is not known which runs were cut off: %s", error.message)
            except Exception as error:
                # Without this task nobody would ever look again.
                log.error("Runs that were cut off could not be looked for", exc_info=error)
            await asyncio.sleep(self._survey_seconds)

    async def _survey(
        self,
        is_here: Callable[[_Key], bool],
        load: Callable[[HarnessIdentity, str], Awaitable[None]],
    ) -> None:
        executions = await self._durable.executions()
        # Others may keep runs in this database, too.
        ours = [each for each in await executions.unfinished() if "model" in each.submission.about]
        for each in ours:
            await self._settle_over(each)
        found = [each.submission for each in ours if each.steps and each.status != "paused"]
        for key in dict.fromkeys((each.identity, each.session_id) for each in found):
            # Whoever performs a run is alive, and has the lease.
            if not is_here(key) and await self._interrupted_runs.is_free_session(*key):
                await load(*key)

    async def resume(self, chat: Chat, run_id: str) -> None:
        """See `RunControl.resume`."""
        if chat.turn is not None and chat.turn.run_id == run_id:
            return
        watched = self._standing(chat, run_id)
        watched.wanted = True
        execution = await (await self._durable.executions()).find(run_id)
        if execution is None or execution.status == "ended":
            raise ended()
        if await self._missing(chat, execution):
            self._nudge(run_id)
            return
        note = await self._note(execution)
        if self._is_standing(watched):
            await self._go_on(watched, note)

    async def answered(self, chat: Chat, run_id: str) -> None:
        """Who answers what a run waits for wants it to go on, should nobody perform it: that may
        not be known yet."""
        if run_id in chat.transcript.halted:
            await self.resume(chat, run_id)
        elif (watched := self._watched.get(run_id)) is not None:
            watched.wanted = True
            watched.nudge.set()

    async def leave(self, chat: Chat, run_id: str) -> None:
        """See `RunControl.leave`."""
        await self._end(self._standing(chat, run_id))

    def _standing(self, chat: Chat, run_id: str) -> _Watched:
        watched = self._watched.get(run_id)
        if watched is None or not self._is_standing(watched):
            if chat.turn is not None and chat.turn.run_id == run_id:
                raise SessionConflict("This answer goes on now.", hint="Stop it to end it.")
            raise ended()
        return watched

    def _nudge(self, run_id: str) -> None:
        if (watched := self._watched.get(run_id)) is not None:
            watched.nudge.set()

    def _is_standing(self, watched: _Watched) -> bool:
        chat, run_id = watched.chat, watched.begun.turn.run_id
        elsewhere = chat.elsewhere is not None and chat.elsewhere.run_id == run_id
        return elsewhere and self._turns.find(run_id) is chat

    async def _look_after(self, watched: _Watched) -> None:
        run_id = watched.begun.turn.run_id
        try:
            while self._is_standing(watched):
                try:
                    await self._look(watched)
                except (LimitExceeded, SessionConflict):
                    await asyncio.sleep(self._again_seconds)
                except HarnessError as error:
                    log.warning("It is not known whether a run goes on: %s", error.message)
                    await self._say_why(watched, error)
                    await asyncio.sleep(self._again_seconds)
                except Exception as error:
                    # Without this task nobody would ever look again.
                    log.error("A run could not be looked after", exc_info=error)
                    await asyncio.sleep(self._again_seconds)
        finally:
            del self._watched[run_id]

    async def _say_why(self, watched: _Watched, error: HarnessError) -> None:
        """Says what waiting does not mend: where nothing can be written, a run that nobody performs
        goes on with nobody here."""
        with suppress(StoreError):
            if error.code in UNREADABLE:
                watched.wanted = False
                self._show(watched, "differs", error.message)
            if error.code == "store_read_only" and await self._interrupted_runs.is_left(
                watched.chat
            ):
                self._show(watched, "stopped")

    async def _look(self, watched: _Watched) -> None:
        chat, begun, run_id = watched.chat, watched.begun, watched.begun.turn.run_id
        if chat.is_deleted:
            await self._rest(watched)
            return
        executions = await self._durable.executions()
        if await executions.find(run_id) is None:
            # By a server that writes no runs down.
            await self._interrupted_runs.end_later(chat, begun)
            return
        if not await self._interrupted_runs.is_free(
            chat, 0 if self._shows(watched) else FREE_SECONDS
        ):
            # Somebody performs it: an answer was for them.
            watched.wanted = False
            await self._rest(watched)
            return
        execution = await executions.find(run_id)
        if execution is None or execution.status == "ended" or not self._is_standing(watched):
            await self._rest(watched)
            return
        if run_id in self._turns.to_stop or await self._durable.is_stopped(run_id):
            await self._end(watched)
            return
        is_settled = execution.state is not None and execution.state.ending is not None
        if not is_settled and not chat.transcript.is_open(run_id):
            await self._settle(chat, begun)
            chat.elsewhere = None
            if not chat.is_busy:
                self._turns.resume_loaded(chat)
            return
        if is_settled or await self._may_go_on(watched, execution):
            note = await self._note(execution)
            if self._is_standing(watched):
                self._go_on(watched, note)
        else:
            await self._rest(watched)

    def _go_on(self, watched: _Watched, note: str) -> asyncio.Future[None]:
        watched.wanted = False
        return self._turns.go_on(watched.chat, watched.begun, note=note)

    async def _note(self, execution: Execution) -> str:
        """What the page is told when a run goes on; '' where it only waits for its person, or has
        its result."""
        if execution.status == "paused":
            return UNPAUSED
        executions, run_id = await self._durable.executions(), execution.submission.run_id
        recorded = await executions.recorded(run_id, newest=True)
        return "" if recorded is not None and _only_waits(recorded) else RESUMED

    async def _may_go_on(self, watched: _Watched, execution: Execution) -> bool:
        """Whether a run goes on now; else the page says what it stands still for."""
        if not watched.wanted:
            if watched.chat.transcript.halted.get(execution.submission.run_id) == "differs":
                return False
            if execution.status == "paused":
                self._show(watched, "paused")
                return False
            if self._durable.resume == "ask":
                self._show(watched, "stopped")
                return False
        if words := await self._missing(watched.chat, execution):
            self._show(watched, "waits", words)
            return False
        return True

    def _shows(self, watched: _Watched) -> bool:
        return watched.begun.turn.run_id in watched.chat.transcript.halted

    async def _settle_over(self, execution: Execution) -> None:
        """Settles a run that is over for a chat that is loaded here, and that nobody has."""
        run_id = execution.submission.run_id
        chat = self._turns.find(run_id)
        if chat is None or chat.is_busy or run_id not in chat.runs:
            return
        if not execution.fence or chat.transcript.is_open(run_id):
            return
        found = await (await self._durable.executions()).find(run_id)
        if found is not None:
            sent = found.submission
            model, instead_of = (str(sent.about.get(name, "")) for name in ("model", "instead_of"))
            turn = Turn(sent.run_id, sent.text, model, "", sent.attachments)
            with suppress(SessionConflict):
                await self._settle(chat, TurnBegun(turn, execution.created_at, instead_of))

    async def _settle(self, chat: Chat, begun: TurnBegun) -> None:
        """Ends a run that has its result on the page, and not where runs are written down: nothing
        could go on before. Raises SessionConflict while somebody has the chat, and StoreError."""
        last = await self._interrupted_runs.result(begun.turn.run_id)
        if last is not None:
            await self._abandoning.abandon(chat, begun, [last.body])

    def _show(self, watched: _Watched, why: HaltedWhy, words: str = "") -> None:
        run_id = watched.begun.turn.run_id
        if watched.chat.transcript.halted.get(run_id) != why:
            watched.chat.transcript.halt(run_id, why, words)

    async def _rest(self, watched: _Watched) -> None:
        """Until something may have changed, or somebody says so."""
        waits = watched.chat.transcript.halted.get(watched.begun.turn.run_id) == "waits"
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECTED_SECONDS if waits else self._again_seconds):
                await watched.nudge.wait()
        watched.nudge.clear()

    async def _missing(self, chat: Chat, execution: Execution) -> str:
        """What a person has to connect before the open calls of a run can go on; '' for nothing."""
        executions, run_id = await self._durable.executions(), execution.submission.run_id
        recorded = await executions.recorded(run_id, newest=True)
        needed = needed_tools(recorded.state, recorded.calls) if recorded is not None else ()
        if not needed:
            return ""
        equipment: Equipment = self._turns.equipment
        there = {tool.name for tool in equipment.tools(chat)}
        if equipment.connected is not None and not there.issuperset(needed):
            there |= {tool.name for tool in (await equipment.connected(chat)).tools}
        missing = [name for name in needed if name not in there]
        return f"Connect {_servers(missing)}, then it goes on." if missing else ""

    async def _end(self, watched: _Watched) -> None:
        """Ends a run as it is: as stopped where a person said so before."""
        chat, begun = watched.chat, watched.begun
        run_id = begun.turn.run_id
        execution = await (await self._durable.executions()).find(run_id)
        report, result = await self._interrupted_runs.cut_off(run_id)
        told: list[EventBody] = [report, result]
        stopped = run_id in self._turns.to_stop or await self._durable.is_stopped(run_id)
        if stopped or (execution is not None and execution.status == "paused"):
            reason = "stopped" if stopped else LEFT
            told = [RunResult("cancelled", "", result.usage, result.cost, reason=reason)]
        await self._abandoning.abandon(chat, begun, told)
        self._turns.to_stop.discard(run_id)
        if not chat.is_busy and not chat.is_deleted:
            self._turns.resume_loaded(chat)
        self._nudge(run_id)


def ended() -> HarnessError:
    return HarnessError(
        "This answer has ended.", hint="What it did is kept. Send a new message.", code="run_ended"
    )


def _only_waits(recorded: Recorded) -> bool:
    """Whether a run does nothing but wait for a person, or to be committed."""
    state = recorded.state
    if state.ending is not None or state.phase != "tools":
        return state.ending is not None
    return all(
        call.status in ("asking", "waiting", "uncertain", "settled")
        or (call.status == "running" and _is_manual(recorded.calls.get(call.id)))
        for call in state.calls
    )


def _is_manual(record: CallRecord | None) -> bool:
    """Whether a person is asked about a call that had started."""
    return record is None or record.replay == "manual"


def _servers(names: list[str]) -> str:
    """The servers that these tools are of, as far as their names say it."""
    return ", ".join(dict.fromkeys(name.partition("__")[0] for name in names))
