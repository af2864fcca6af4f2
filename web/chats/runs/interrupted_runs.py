"""What a server that died left behind: a run without an end, which is ended once by whoever can."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from web.chats.chat import Chat
from web.chats.journal.journal import TurnBegun
from web.chats.journal.picture_bytes import turn_with_bytes
from web.chats.runs.rebuilt_messages import rebuilt
from web.chats.runs.run_messages import has_run, without_run
from web.chats.transcript.run_words import INTERRUPTED, INTERRUPTED_ASKING
from web.harness.agent.totals import Totals
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import SessionConflict, StoreError
from web.harness.values.events import (
    ApprovalRequired,
    ErrorReport,
    Event,
    EventBody,
    RunResult,
    ToolCallStart,
    ToolResult,
    innermost,
)
from web.harness.values.messages import Message

log = logging.getLogger(__name__)

WAIT_SECONDS = 30.0
"""For one attempt at the lease of a run that goes on elsewhere; then for another."""

PATIENCE_SECONDS = 2.0
"""A chat that is opened waits no longer for a store that cannot be written."""

LATE_SECONDS = 2.0
"""A run whose session was committed tells its result within so long, if its server lives."""

AGAIN_SECONDS = 5.0
"""After the store failed."""


class InterruptedRuns:
    """Tells by the lease of a session whether somebody still runs it."""

    def __init__(self, events: EventLog, sessions: SessionStore) -> None:
        self._events = events
        self._sessions = sessions

    async def history(self, chat: Chat, *, wait: float = 0) -> list[Message]:
        """The conversation as it was committed, after whoever runs it within `wait` seconds.

        While another holds the lease, and where nothing can be written, as a lease is, it is read
        without one.
        """
        try:
            async with asyncio.timeout(wait + PATIENCE_SECONDS):
                lease = await self._sessions.acquire(chat.identity, chat.id, wait=wait)
            async with lease:
                return list((await lease.read()).history)
        except (SessionConflict, StoreError, TimeoutError):
            return await self.seen(chat)

    async def seen(self, chat: Chat) -> list[Message]:
        """The conversation as it was committed, whoever has the lease. Raises StoreError."""
        peek = getattr(self._sessions, "peek", None)
        return list((await peek(chat.identity, chat.id)).history) if peek else chat.history

    async def messages(self, chat: Chat, begun: TurnBegun) -> list[Message]:
        """What was committed, and what is known by now of the run that another server has. Raises
        StoreError."""
        history = await self.seen(chat)
        return await self.with_run(chat, history, begun)

    async def end(self, chat: Chat, begun: TurnBegun, *, late: bool = False) -> bool:
        """Ends a run that nobody runs any more; False while somebody does. Raises StoreError.

        What was written of it goes into the conversation. A run whose session was committed may be
        about to tell its result, unless it is `late`.
        """
        run_id = begun.turn.run_id
        try:
            lease = await self._sessions.acquire(chat.identity, chat.id)
        except SessionConflict:
            chat.history = await self.seen(chat)
            return False
        async with lease:
            snapshot = await lease.read()
            chat.history = list(snapshot.history)
            if await self.result(run_id) is not None:
                return True
            committed = has_run(snapshot.history, run_id)
            if committed and not late:
                return False
            if committed and snapshot.replayable:
                await self._completed(run_id, snapshot)
                return True
            # First what is kept: who reads the end relies on it.
            history = await self.with_run(chat, snapshot.history, begun)
            if snapshot.replayable or not committed:
                left = replace(snapshot, history=tuple(history), replayable=False)
                snapshot = await lease.commit(left)
                chat.history = list(snapshot.history)
            await self.interrupted(run_id)
            return True

    async def with_run(
        self, chat: Chat, history: Sequence[Message], begun: TurnBegun
    ) -> list[Message]:
        """A conversation and what the events of a run add to it."""
        turn = begun.turn
        if begun.retold or has_run(history, turn.run_id) or _went_on(chat, history, turn.run_id):
            return list(history)
        kept = without_run(history, begun.instead_of)
        last_id = kept[-1].id if kept else None
        turn = await turn_with_bytes(chat, turn)
        return kept + rebuilt(turn, await self._all(turn.run_id), last_id)

    async def end_later(self, chat: Chat, begun: TurnBegun) -> None:
        """The same as soon as it can be done; returns when the run has ended."""
        said = ""
        while True:
            try:
                if await self.result(begun.turn.run_id) is not None:
                    return
                await self.is_free(chat)
                # Nobody waits here with the lease: its server has a next turn, perhaps.
                await asyncio.sleep(LATE_SECONDS)
                if await self.end(chat, begun, late=True):
                    return
            except StoreError as error:
                if error.message != said:  # A file may be there to be read only, for good.
                    said = error.message
                    log.warning("It is not known whether a run goes on: %s", said)
                await asyncio.sleep(AGAIN_SECONDS)

    async def is_free(self, chat: Chat, wait: float = WAIT_SECONDS) -> bool:
        """Whether nobody has the session, or who has it lets it go within so many seconds."""
        return await self.is_free_session(chat.identity, chat.id, wait)

    async def is_free_session(
        self, identity: HarnessIdentity, session_id: str, wait: float = 0
    ) -> bool:
        """Where nobody waits, and the store can tell, nothing is written for that."""
        is_held = getattr(self._sessions, "is_held", None)
        if is_held is not None and not wait:
            return not await is_held(identity, session_id)
        try:
            lease = await self._sessions.acquire(identity, session_id, wait=wait)
        except SessionConflict:
            return False
        await lease.release()
        return True

    async def is_left(self, chat: Chat) -> bool:
        """Whether nobody has the session, as far as that can be told without writing anything.
        Raises StoreError."""
        is_held = getattr(self._sessions, "is_held", None)
        return is_held is not None and not await is_held(chat.identity, chat.id)

    async def cut_off(self, run_id: str) -> tuple[ErrorReport, RunResult]:
        """What is told of a run that was cut off, with what it had used until then."""
        return _cut_off(await self._all(run_id))

    async def interrupted(self, run_id: str) -> Sequence[Event]:
        """Writes that a run was cut off; returns the events that say so."""
        before = await self._all(run_id)
        told, result = _cut_off(before)
        self._events.append(run_id, [told, result])
        last = before[-1].number if before else 0
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._events.flush(run_id)
        except (StoreError, TimeoutError):
            # It is written later; what is to be seen of it does not wait for that.
            return _after(before, told, result)
        return (await self._events.read(run_id, last)).events

    async def as_interrupted(self, run_id: str) -> Sequence[Event]:
        """The events that say that a run was cut off, where nothing can be written."""
        before = await self._all(run_id)
        return _after(before, *_cut_off(before))

    async def _completed(self, run_id: str, snapshot: SessionSnapshot) -> None:
        totals = Totals()
        for event in await self._all(run_id):
            totals.take(event.body)
        text = next((each.text for each in reversed(snapshot.history)), "")
        self._events.append(run_id, [RunResult("completed", text, totals.usage, totals.cost)])
        await self._events.flush(run_id)

    async def result(self, run_id: str) -> Event | None:
        """The last event of a run that has ended. Raises StoreError."""
        events = await self._all(run_id)
        last = events[-1] if events else None
        return last if last is not None and isinstance(last.body, RunResult) else None

    async def _all(self, run_id: str) -> list[Event]:
        events: list[Event] = []
        while page := (await self._events.read(run_id, events[-1].number if events else 0)).events:
            events += page
        return events


def _cut_off(before: Sequence[Event]) -> tuple[ErrorReport, RunResult]:
    totals = Totals()
    for event in before:
        totals.take(event.body)
    told = INTERRUPTED_ASKING if _only_asked(before) else INTERRUPTED
    return told, RunResult("failed", "", totals.usage, totals.cost, reason=INTERRUPTED.code)


def _after(before: Sequence[Event], *bodies: EventBody) -> list[Event]:
    last, at = (before[-1].number, before[-1].at) if before else (0, 0.0)
    return [Event(number, at, body) for number, body in enumerate(bodies, last + 1)]


def _went_on(chat: Chat, history: Sequence[Message], run_id: str) -> bool:
    """Whether a conversation has gone on without a run that could not be written in time."""
    later = chat.runs[chat.runs.index(run_id) + 1 :] if run_id in chat.runs else ()
    return any(has_run(history, each) for each in later)


def _only_asked(events: Sequence[Event]) -> bool:
    """Whether a run waits for a person's answer, and for nothing else."""
    asked: set[str] = set()
    running: set[str] = set()
    for event in events:
        match innermost(event.body):
            case ApprovalRequired(call_id=call_id):
                asked.add(call_id)
            case ToolCallStart(call_id=call_id):
                asked.discard(call_id)
                running.add(call_id)
            case ToolResult(call_id=call_id):
                asked.discard(call_id)
                running.discard(call_id)
    return bool(asked) and not running
