"""Brings chats up to a durable event log: from the start when they are loaded, then as it grows.

Events of a run may be heard before, or after, the journal says that it began: they take effect in
the order of the journal, so that the page is the same here, after a restart, and on another server.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from web.chats.chat import Chat
from web.chats.journal import (
    AnswerGiven,
    Attached,
    Entry,
    InputGiven,
    Request,
    SpentBefore,
    StopAsked,
    TurnBegun,
    TurnTakenBack,
    entry_from_event,
    is_journal,
    journal_of,
)
from web.chats.left_over import LeftOver
from web.chats.run_output import UNFINISHED
from web.chats.spending import Spending
from web.chats.tasks import TaskOwner
from web.chats.turns import Turns
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import StoreError
from web.harness.values.events import ApprovalRequired, Event, RunResult, innermost
from web.harness.values.json_form import JsonRefused
from web.harness.values.messages import AttachedBlock

log = logging.getLogger(__name__)

AT_ONCE = 20
"""Events that are folded before others have the event loop."""

RESUME_SECONDS = 1.0
"""After a run of another server has ended, what waits is that server's first for so long."""


class FollowedLog(EventLog, Protocol):
    """An event log that other servers write too."""

    async def follow(self, run_id: str, after: int = 0) -> None: ...

    def unfollow(self, run_id: str) -> None: ...


@dataclass(slots=True, eq=False)
class _Heard:
    """How far a chat is: the run that is shown now, what waits for its end, what came early."""

    chat: Chat
    current: TurnBegun | None = None
    waiting: deque[Entry] = field(default_factory=deque)
    early: dict[str, list[Event]] = field(default_factory=dict)
    cursor: int = 0
    """Of the run that is shown now, while it is loaded."""
    loaded: bool = False
    blocks: dict[str, AttachedBlock] = field(default_factory=dict)


class Hearing:
    """The listener of a durable log, and what loads chats from it."""

    def __init__(
        self, turns: Turns, events: FollowedLog, sessions: SessionStore, tasks: TaskOwner
    ) -> None:
        self._turns = turns
        self._events = events
        self._tasks = tasks
        self._left_over = LeftOver(events, sessions)
        self._heard: dict[str, _Heard] = {}
        self.requests: Callable[[Chat, Request], None] = lambda chat, request: None
        """Called with what a person asked on a page of another server."""

    def __call__(self, run_id: str, events: Sequence[Event]) -> None:
        """Takes the newest events of a run or of a journal."""
        if is_journal(run_id):
            heard = self._heard.get(run_id)
            if heard is not None:
                for event in events:
                    entry = _entry(event)
                    if isinstance(entry, StopAsked | AnswerGiven | InputGiven):
                        self.requests(heard.chat, entry)
                    elif entry is not None:
                        heard.waiting.append(entry)
                self._go_on(heard)
            return
        chat = self._turns.find(run_id)
        heard = self._heard.get(journal_of(chat.id)) if chat is not None else None
        if heard is None:
            return
        if heard.current is not None and heard.current.turn.run_id == run_id:
            self._take(heard, events)
            self._go_on(heard)
        elif run_id not in heard.chat.runs:
            heard.early.setdefault(run_id, []).extend(events)

    async def begin(self, chat: Chat) -> None:
        """Listens to a new chat."""
        self._heard[journal_of(chat.id)] = _Heard(chat, loaded=True)
        await self._follow(journal_of(chat.id), 0)

    async def load(self, chat: Chat) -> dict[str, AttachedBlock]:
        """Shows all that the log knows of a chat, and listens to it from then on. Returns what was
        ever attached, by its id. Raises StoreError."""
        heard = _Heard(chat)
        cursor = 0
        async for events in self._pages(journal_of(chat.id)):
            cursor = events[-1].number
            for event in events:
                entry = _entry(event)
                if entry is not None:
                    await self._load(heard, entry)
        heard.loaded = True
        self._heard[journal_of(chat.id)] = heard
        await self._settle(heard)
        await self._follow(journal_of(chat.id), cursor)
        return heard.blocks

    def attached(self, chat: Chat) -> dict[str, AttachedBlock]:
        """What was attached in a chat since it was loaded, and before, by its id."""
        heard = self._heard.get(journal_of(chat.id))
        return heard.blocks if heard is not None else {}

    def resume(self, chat: Chat) -> None:
        """Has what waits in a chat that was loaded sent, unless another server does."""
        if chat.queue and not chat.is_busy:
            self._tasks.create_task(self._after_another(chat))

    def close(self, chat: Chat) -> None:
        """Forgets a chat."""
        if self._heard.pop(journal_of(chat.id), None) is not None:
            self._events.unfollow(journal_of(chat.id))

    # From the start.

    async def _load(self, heard: _Heard, entry: Entry) -> None:
        chat = heard.chat
        match entry:
            case Attached():
                heard.blocks[entry.id] = entry.block
            case SpentBefore():
                chat.spending = Spending.from_json(entry.spent)
            case TurnBegun():
                if heard.current is not None:
                    # It has no end, and yet another one began: its server was killed.
                    ended = await self._left_over.interrupted(heard.current.turn.run_id)
                    self._take(heard, ended)
                await self._load_run(heard, entry)
            case _:
                self._turns.take(chat, entry)

    async def _load_run(self, heard: _Heard, begun: TurnBegun) -> None:
        self._turns.take(heard.chat, begun)
        heard.current, heard.cursor = begun, 0
        async for events in self._pages(begun.turn.run_id):
            for start in range(0, len(events), AT_ONCE):
                self._take(heard, events[start : start + AT_ONCE])
                await asyncio.sleep(0)
            heard.cursor = events[-1].number
        # Run by run: all texts together would take everybody's time at once.
        left = True
        while left:
            await asyncio.sleep(0)
            left = heard.chat.transcript.settle()

    async def _settle(self, heard: _Heard) -> None:
        """Reads the conversation; a run without an end goes on elsewhere, or is ended here."""
        chat, open_run = heard.chat, heard.current
        if open_run is None:
            chat.history = await self._left_over.history(chat)
            return
        run_id = open_run.turn.run_id
        chat.elsewhere = open_run.turn
        ended = await self._left_over.end(chat, run_id)
        await self._follow(run_id, heard.cursor)
        if not ended:
            self._tasks.create_task(self._left_over.end_later(chat, run_id))

    async def _pages(self, run_id: str) -> AsyncIterator[Sequence[Event]]:
        after = 0
        while events := (await self._events.read(run_id, after)).events:
            yield events
            if isinstance(events[-1].body, RunResult):
                return
            after = events[-1].number

    async def _follow(self, run_id: str, after: int) -> None:
        try:
            await self._events.follow(run_id, after)
        except StoreError as error:
            log.warning("What others write is not followed yet: %s", error.message)

    # As it grows.

    def _go_on(self, heard: _Heard) -> None:
        while heard.waiting:
            entry = heard.waiting[0]
            if isinstance(entry, TurnBegun) and heard.current is not None:
                return
            heard.waiting.popleft()
            self._turns.take(heard.chat, entry)
            if isinstance(entry, Attached):
                heard.blocks[entry.id] = entry.block
            if isinstance(entry, TurnTakenBack):
                heard.early.pop(entry.run_id, None)
            if isinstance(entry, TurnBegun):
                self._begun(heard, entry)

    def _begun(self, heard: _Heard, begun: TurnBegun) -> None:
        run_id = begun.turn.run_id
        heard.current = begun
        if not self._turns.is_own(run_id):
            heard.chat.elsewhere = begun.turn
            self._tasks.create_task(self._follow(run_id, 0))
            self._tasks.create_task(self._left_over.end_later(heard.chat, run_id))
        early = heard.early.pop(run_id, [])
        if early:
            self._take(heard, early)

    def _take(self, heard: _Heard, events: Sequence[Event]) -> None:
        """Folds events of the run that is shown now."""
        begun, chat = heard.current, heard.chat
        if begun is None or not events:
            return
        run_id = begun.turn.run_id
        chat.transcript.fold(run_id, events)
        if not self._turns.is_own(run_id):
            for event in events:
                body = innermost(event.body)
                if isinstance(body, ApprovalRequired):
                    chat.asked.keep_shown(body)
            if not begun.retold and chat.spending.take(event.body for event in events):
                chat.spending.show(chat.channel)
        last = events[-1].body
        if isinstance(last, RunResult):
            self._ended(heard, begun, last)

    def _ended(self, heard: _Heard, begun: TurnBegun, result: RunResult) -> None:
        chat = heard.chat
        heard.current = None
        if begun.retold:
            # Nobody knows how long it took and what it cost.
            chat.channel.remove(f"e-{begun.turn.run_id}")
        if self._turns.is_own(begun.turn.run_id):
            return
        chat.elsewhere = None
        chat.failed = begun.turn if result.status in UNFINISHED else None
        if heard.loaded:
            self._tasks.create_task(self._after_another(chat))

    async def _after_another(self, chat: Chat) -> None:
        """After a run of another server: the conversation is read, and what waits may be sent."""
        try:
            chat.history = await self._left_over.history(chat, wait=5)
        except StoreError as error:
            log.warning("A conversation could not be read: %s", error.message)
        await asyncio.sleep(RESUME_SECONDS)
        if chat.turn is None and chat.elsewhere is None and not chat.is_deleted:
            self._turns.resume_loaded(chat)


def _entry(event: Event) -> Entry | None:
    try:
        return entry_from_event(event.body)
    except JsonRefused as error:
        # One that cannot be read costs no other.
        log.error("An entry of a journal cannot be read: %s", error.message)
        return None
