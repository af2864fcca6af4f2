"""What a server that died left behind: a run without an end, which is ended once by whoever can."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from web.chats.chat import Chat
from web.chats.run_output import INTERRUPTED, INTERRUPTED_ASKING
from web.harness.agent.totals import Totals
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import SessionConflict, StoreError
from web.harness.values.events import (
    ApprovalRequired,
    Event,
    RunResult,
    ToolCallStart,
    ToolResult,
    innermost,
)
from web.harness.values.messages import Message

log = logging.getLogger(__name__)

WAIT_SECONDS = 30.0
"""For one attempt at the lease of a run that goes on elsewhere; then for another."""

LATE_SECONDS = 2.0
"""A run whose session was committed tells its result within so long, if its server lives."""

AGAIN_SECONDS = 5.0
"""After the store failed."""


class LeftOver:
    """Tells by the lease of a session whether somebody still runs it."""

    def __init__(self, events: EventLog, sessions: SessionStore) -> None:
        self._events = events
        self._sessions = sessions

    async def history(self, chat: Chat, *, wait: float = 0) -> list[Message]:
        """The conversation as it was committed; what is known of it while another holds it."""
        try:
            async with await self._sessions.acquire(chat.identity, chat.id, wait=wait) as lease:
                return list((await lease.read()).history)
        except SessionConflict:
            return chat.history

    async def end(self, chat: Chat, run_id: str, *, late: bool = False) -> bool:
        """Ends a run that nobody runs any more; False while somebody does. Raises StoreError.

        A run whose session was committed may be about to tell its result, unless it is `late`.
        """
        try:
            lease = await self._sessions.acquire(chat.identity, chat.id)
        except SessionConflict:
            return False
        async with lease:
            snapshot = await lease.read()
            chat.history = list(snapshot.history)
            if await self._result(run_id) is not None:
                return True
            committed = any(each.id.startswith(f"{run_id}-") for each in snapshot.history)
            if committed and not late:
                return False
            if committed and snapshot.replayable:
                await self._completed(run_id, snapshot)
                return True
            await self.interrupted(run_id)
            if snapshot.revision and snapshot.replayable:
                await lease.commit(replace(snapshot, replayable=False))
            return True

    async def end_later(self, chat: Chat, run_id: str) -> None:
        """The same as soon as it can be done; returns when the run has ended."""
        while True:
            try:
                if await self._result(run_id) is not None:
                    return
                await self._free(chat)
                # Nobody waits here with the lease: its server has a next turn, perhaps.
                await asyncio.sleep(LATE_SECONDS)
                if await self.end(chat, run_id, late=True):
                    return
            except StoreError as error:
                log.warning("It is not known whether a run goes on: %s", error.message)
                await asyncio.sleep(AGAIN_SECONDS)

    async def _free(self, chat: Chat) -> None:
        """Returns when nobody has the session, or after a while."""
        with suppress(SessionConflict):
            lease = await self._sessions.acquire(chat.identity, chat.id, wait=WAIT_SECONDS)
            await lease.release()

    async def interrupted(self, run_id: str) -> Sequence[Event]:
        """Writes that a run was cut off; returns the events that say so."""
        totals = Totals()
        before = await self._all(run_id)
        for event in before:
            totals.take(event.body)
        told = INTERRUPTED_ASKING if _only_asked(before) else INTERRUPTED
        result = RunResult("failed", "", totals.usage, totals.cost, reason=INTERRUPTED.code)
        self._events.append(run_id, [told, result])
        await self._events.flush(run_id)
        return (await self._events.read(run_id, before[-1].number if before else 0)).events

    async def _completed(self, run_id: str, snapshot: SessionSnapshot) -> None:
        totals = Totals()
        for event in await self._all(run_id):
            totals.take(event.body)
        text = next((each.text for each in reversed(snapshot.history)), "")
        self._events.append(run_id, [RunResult("completed", text, totals.usage, totals.cost)])
        await self._events.flush(run_id)

    async def _result(self, run_id: str) -> Event | None:
        events = await self._all(run_id)
        last = events[-1] if events else None
        return last if last is not None and isinstance(last.body, RunResult) else None

    async def _all(self, run_id: str) -> list[Event]:
        events: list[Event] = []
        while page := (await self._events.read(run_id, events[-1].number if events else 0)).events:
            events += page
        return events


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
