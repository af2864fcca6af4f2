"""Brings chats up to a durable event log: from the start when they are loaded, then as it grows.

Events of a run may be heard before, or after, the journal says that it began: they take effect in
the order of the journal, so that the page is the same here, after a restart, and on another server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from web.chats.chat import Chat
from web.chats.journal.entries import is_void
from web.chats.journal.journal import (
    AnswerGiven,
    Attached,
    Entry,
    InputGiven,
    Request,
    SpentBefore,
    StopAsked,
    TurnBegun,
    TurnSent,
    TurnTakenBack,
    entry_from_event,
    is_journal,
    journal_of,
)
from web.chats.runs.interrupted_runs import PATIENCE_SECONDS, InterruptedRuns
from web.chats.runs.run_messages import has_run
from web.chats.runs.run_output import UNFINISHED
from web.chats.runs.supervisor import Supervisor
from web.chats.runs.turns import Turns
from web.chats.storage.log_progress import FollowedLog, Progress
from web.chats.tasks import TaskOwner
from web.chats.transcript.run_words import INTERRUPTED
from web.chats.transcript.spending import Spending
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import StoreError
from web.harness.values.events import ApprovalRequired, Event, RunResult, innermost
from web.harness.values.json_form import JsonRefused
from web.harness.values.messages import AttachedBlock, Message

log = logging.getLogger(__name__)

AT_ONCE = 20
"""Events that are folded before others have the event loop."""

RUNS_AT_ONCE = 200
"""That are read from the log together while a chat is loaded."""

RESUME_SECONDS = 1.0
"""After a server died or a chat was loaded, what waits is others' first for so long."""

SENT_SECONDS = 2.0
"""Between two looks at a message that another server took; one that waits in both is sent here."""


KNOWN_SECONDS = 4.0
"""Who asks for a run that another server took waits no longer for what comes before it."""


class LogFollower:
    """The listener of a durable log, and what loads chats from it."""

    def __init__(
        self, turns: Turns, events: FollowedLog, sessions: SessionStore, tasks: TaskOwner
    ) -> None:
        self._turns = turns
        self._events = events
        self._tasks = tasks
        self._interrupted_runs = InterruptedRuns(events, sessions)
        self._heard: dict[str, Progress] = {}
        self.supervisor: Supervisor | None = None
        """Where runs are written down: those that others have go on here once they cannot."""
        turns.left_standing = self._left_standing
        self.requests: Callable[[Chat, Request], None] = lambda chat, request: None
        """Called with what a person asked on a page of another server."""
        self.attached_to: Callable[[Chat], None] = lambda chat: None
        """Called where something was attached: the record of the chat may name it already."""

    def __call__(self, run_id: str, events: Sequence[Event]) -> None:
        """Takes the newest events of a run or of a journal."""
        if is_journal(run_id):
            heard = self._heard.get(run_id)
            if heard is not None:
                heard.journal = events[-1].number
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
        self._heard[journal_of(chat.id)] = Progress(chat, loaded=True)
        await self._follow(journal_of(chat.id), 0)

    async def load(self, chat: Chat) -> dict[str, AttachedBlock]:
        """Shows all that the log knows of a chat, and listens to it from then on. Returns what was
        ever attached, by its id. Raises StoreError."""
        heard = Progress(chat)
        cursor = 0
        async for events in self._pages(journal_of(chat.id)):
            cursor = events[-1].number
            entries = [each for each in map(_entry, events) if each is not None]
            for at, entry in enumerate(entries):
                if isinstance(entry, TurnBegun) and entry.turn.run_id not in heard.ahead:
                    heard.ahead = await self._read_ahead(entries[at:])
                await self._load(heard, entry)
        heard.ahead = {}
        heard.journal = cursor
        heard.loaded = True
        self._heard[journal_of(chat.id)] = heard
        await self._settle(heard)
        await self._follow(journal_of(chat.id), cursor)
        return heard.blocks

    def attached(self, chat: Chat) -> dict[str, AttachedBlock]:
        """What was attached in a chat since it was loaded, and before, by its id."""
        heard = self._heard.get(journal_of(chat.id))
        return heard.blocks if heard is not None else {}

    async def hear_of(self, chat: Chat, run_id: str) -> None:
        """Has a run known which another server took before, however little.

        Raises StoreError where it is not known whether there is one.
        """
        heard = self._heard.get(journal_of(chat.id))
        if heard is None or not heard.loaded or self._turns.find(run_id) is not None:
            return
        is_known = await self._events.follow(journal_of(chat.id), heard.journal)
        # What is written may wait here for the end of the run before, which is on its way.
        with suppress(TimeoutError):
            async with asyncio.timeout(KNOWN_SECONDS):
                while heard.expects(run_id):
                    await heard.moved.wait()
        if self._turns.find(run_id) is None and (not is_known or heard.expects(run_id)):
            raise StoreError(
                "What other servers do is not known here yet.",
                hint="Try again in a moment.",
                code="store_busy",
            )

    async def messages(self, chat: Chat) -> list[Message]:
        """The conversation; while another server or a worker runs it, with what is known of that
        run, as far as the store can be read."""
        heard = self._heard.get(journal_of(chat.id))
        if heard is None or heard.begun is None or _has_all(chat, heard):
            return chat.messages
        try:
            # Also once it has its result: that may be told before the conversation is committed.
            return await self._interrupted_runs.messages(chat, heard.begun)
        except StoreError as error:
            log.warning("What another server does is not read yet: %s", error.message)
            return chat.messages

    def resume(self, chat: Chat) -> None:
        """Has a chat that was loaded, or brought back, go on: with the run that was cut off, and
        with what waits, unless another server does."""
        heard = self._heard.get(journal_of(chat.id))
        if self.supervisor is not None and heard is not None and heard.begun is not None:
            self.supervisor.watch(chat, heard.begun)
        if not chat.queue or heard is None:
            return
        self._see_to(heard)
        if not chat.is_busy:
            self._tasks.create_task(self._after_another(chat, resumes=True))

    def close(self, chat: Chat) -> None:
        """Forgets a chat."""
        if self._heard.pop(journal_of(chat.id), None) is not None:
            self._events.unfollow(journal_of(chat.id))

    # From the start.

    async def _load(self, heard: Progress, entry: Entry) -> None:
        chat = heard.chat
        match entry:
            case Attached():
                heard.blocks[entry.id] = entry.block
            case SpentBefore():
                chat.spending = Spending.from_json(entry.spent)
            case TurnBegun() if not is_void(chat, entry):
                if heard.current is not None:
                    # It has no end, and yet another one began: its server was killed.
                    ended = await self._interrupted_runs.interrupted(heard.current.turn.run_id)
                    self._take(heard, ended)
                await self._load_run(heard, entry)
            case _:
                self._turns.take(chat, entry)

    async def _read_ahead(self, entries: Sequence[Entry]) -> dict[str, list[Event]]:
        """The events of the next runs, so that a long chat is not read run by run."""
        begun = [each.turn.run_id for each in entries if isinstance(each, TurnBegun)]
        return await self._events.read_whole(begun[:RUNS_AT_ONCE])

    async def _load_run(self, heard: Progress, begun: TurnBegun) -> None:
        self._turns.take(heard.chat, begun)
        heard.current, heard.cursor = begun, 0
        heard.begun = begun
        async for events in self._pages(begun.turn.run_id, heard.ahead.pop(begun.turn.run_id, [])):
            for start in range(0, len(events), AT_ONCE):
                self._take(heard, events[start : start + AT_ONCE])
                await asyncio.sleep(0)
            heard.cursor = events[-1].number
        # Run by run: all texts together would take everybody's time at once.
        left = True
        while left:
            await asyncio.sleep(0)
            left = heard.chat.transcript.settle()

    async def _settle(self, heard: Progress) -> None:
        """Reads the conversation; a run without an end goes on elsewhere, or is ended here."""
        chat, open_run = heard.chat, heard.current
        if await self._settle_written(heard):
            return
        if open_run is None:
            chat.history = await self._interrupted_runs.history(chat)
            return
        run_id = open_run.turn.run_id
        chat.elsewhere = open_run.turn
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                ended = await self._interrupted_runs.end(chat, open_run)
        except (StoreError, TimeoutError) as error:
            # What is stored can be read, and the rest waits until something can be written.
            ended, chat.history = False, await self._interrupted_runs.seen(chat)
            only_read = isinstance(error, StoreError) and error.code == "store_read_only"
            if only_read and await self._interrupted_runs.is_left(chat):
                self._take(heard, await self._interrupted_runs.as_interrupted(run_id))
                # It is written once that can be done.
                self._tasks.create_task(self._interrupted_runs.end_later(chat, open_run))
                return
        await self._follow(run_id, heard.cursor)
        if not ended:
            self._tasks.create_task(self._interrupted_runs.end_later(chat, open_run))

    async def _settle_written(self, heard: Progress) -> bool:
        """Has the last run of a chat looked after, if it is written down and not settled."""
        chat, begun, durable = heard.chat, heard.begun, self._turns.durable
        if durable is None or self.supervisor is None or begun is None:
            return False
        run_id = begun.turn.run_id
        if all(each.submission.run_id != run_id for each in await durable.all_unfinished(chat)):
            return False
        chat.elsewhere = begun.turn
        chat.history = await self._interrupted_runs.seen(chat)
        await self._follow(run_id, heard.cursor)
        return True

    async def _pages(
        self, run_id: str, ahead: Sequence[Event] = ()
    ) -> AsyncIterator[Sequence[Event]]:
        after = 0
        while events := ahead or (await self._events.read(run_id, after)).events:
            ahead = ()
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

    def _go_on(self, heard: Progress) -> None:
        while heard.waiting:
            entry = heard.waiting[0]
            begins = isinstance(entry, TurnBegun) and not is_void(heard.chat, entry)
            if begins and heard.current is not None:
                return
            heard.waiting.popleft()
            self._turns.take(heard.chat, entry)
            heard.moved.set()
            heard.moved = asyncio.Event()
            if isinstance(entry, Attached):
                heard.blocks[entry.id] = entry.block
                self.attached_to(heard.chat)
            if isinstance(entry, TurnSent | TurnTakenBack):
                self._waits(heard)
            if isinstance(entry, TurnTakenBack):
                heard.early.pop(entry.run_id, None)
            if isinstance(entry, TurnBegun) and begins:
                self._begun(heard, entry)

    def _left_standing(self, chat: Chat, begun: TurnBegun) -> None:
        """A run is not performed here any more: what others do with it is heard, and looked at."""
        heard = self._heard.get(journal_of(chat.id))
        if heard is not None and self.supervisor is not None:
            self._tasks.create_task(self._follow(begun.turn.run_id, heard.cursor))
            self.supervisor.watch(chat, begun)

    def _waits(self, heard: Progress) -> None:
        """What waits has changed. Whoever took a message may die before it begins with it: then
        those who heard of it send it."""
        if heard.chat.transcript.state_changed is not None:
            heard.chat.transcript.state_changed()
        self._see_to(heard)

    def _see_to(self, heard: Progress) -> None:
        if heard.chat.queue and not heard.watched:
            heard.watched = True
            self._tasks.create_task(self._see_it_sent(heard))

    async def _see_it_sent(self, heard: Progress) -> None:
        chat, waited = heard.chat, ""
        try:
            while chat.queue and self._heard.get(journal_of(chat.id)) is heard:
                await asyncio.sleep(SENT_SECONDS)
                first = chat.queue[0].run_id if chat.queue and not chat.is_busy else ""
                # Whoever took it comes first: it may be connected to what nobody else is.
                if first and first == waited and not chat.is_deleted:
                    self._turns.resume_loaded(chat)
                waited = first
        finally:
            heard.watched = False

    def _begun(self, heard: Progress, begun: TurnBegun) -> None:
        run_id = begun.turn.run_id
        heard.current, heard.begun, heard.cursor = begun, begun, 0
        if not self._turns.is_own(run_id):
            heard.chat.elsewhere = begun.turn
            self._tasks.create_task(self._follow(run_id, 0))
            if self.supervisor is not None:
                self.supervisor.watch(heard.chat, begun)
            else:
                self._tasks.create_task(self._interrupted_runs.end_later(heard.chat, begun))
        early = heard.early.pop(run_id, [])
        if early:
            self._take(heard, early)

    def _take(self, heard: Progress, events: Sequence[Event]) -> None:
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
        counted = begun.retold or self._turns.counts(run_id)
        if not counted and chat.spending.take(event.body for event in events):
            chat.spending.show(chat.channel)
        heard.cursor = events[-1].number
        last = events[-1].body
        self._turns.hear(chat, run_id, last)
        if isinstance(last, RunResult):
            self._ended(heard, begun, last)

    def _ended(self, heard: Progress, begun: TurnBegun, result: RunResult) -> None:
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
            # Of a server that died, nobody sends what waits.
            died = result.reason == INTERRUPTED.code
            heard.behind = True
            self._tasks.create_task(self._after_another(chat, resumes=died))

    async def _after_another(self, chat: Chat, *, resumes: bool) -> None:
        """After a run of another server the conversation is read; what waits may be sent."""
        try:
            chat.history = await self._interrupted_runs.history(chat, wait=5)
            if (heard := self._heard.get(journal_of(chat.id))) is not None:
                heard.behind = False
        except StoreError as error:
            log.warning("A conversation could not be read: %s", error.message)
        if not resumes:
            return
        await asyncio.sleep(RESUME_SECONDS)
        if chat.turn is None and chat.elsewhere is None and not chat.is_deleted:
            self._turns.resume_loaded(chat)


def _has_all(chat: Chat, heard: Progress) -> bool:
    """Whether this process has the whole conversation in its memory."""
    if chat.elsewhere is not None:
        return False
    if chat.turn is None:
        return not heard.behind
    # The agent of a run that a worker performs has what was said before it.
    return has_run(chat.messages, chat.turn.run_id)


def _entry(event: Event) -> Entry | None:
    try:
        return entry_from_event(event.body)
    except JsonRefused as error:
        # One that cannot be read costs no other.
        log.error("An entry of a journal cannot be read: %s", error.message)
        return None
