"""`SqlEventLog`: the events of runs in SQLite or PostgreSQL, written in batches."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from web.harness.loop.state import RunState
from web.harness.sessions.event_log import LATE_EVENTS, EventPage, Listener, checked_cursor
from web.harness.sessions.journal import Step
from web.harness.sessions.sql import batches, ended_runs, event_rows
from web.harness.sessions.sql.batches import Entry, Fence, Item, Part, Parts, Written
from web.harness.sessions.sql.database import Database, Row, Transaction
from web.harness.sessions.sql.event_rows import Piece, Run, piece_of
from web.harness.sessions.sql.flushes import Flushes
from web.harness.sessions.sql.followers import Followers
from web.harness.sessions.sql.pace import Pace
from web.harness.values.errors import StoreError
from web.harness.values.events import Event, EventBody, RunResult

INTERVAL_SECONDS = 0.05
"""From one batch to the next. The first after a pause comes after a tenth of it, or when somebody
waits: a tool's result, the model's answer to it and the start of the next tool go together."""

MAX_BATCH = 5_000
"""Events in one transaction."""

JOIN_ABOVE = 10_000
"""Where more wait, the database falls behind: all go at once, their neighbouring deltas joined."""

RUNS_AT_ONCE = 50
"""That are told of before the event loop has its turn."""

FULL = "store_full"
"""The code of a database that has no room for what is to be written, and perhaps for less."""

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)

CLOSE_SECONDS = 5.0
"""How long the end waits for what is still to be written."""

INLINE_ROWS = 100
"""Beyond so many, a thread turns rows into events."""

WHOLE_ROWS = 2_000
"""Of several runs that are read at once."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is written together, under its token: all up to the place `upto`, or `only` of a run."""

    token: str
    upto: int
    parts: Parts
    only: str | None = None


class SqlEventLog:
    """The `EventLog` in a database, which stays its owner's and has no other log in this process.

    An event gets its number in the commit and is shown after it, to the listener, to those who
    wait, and to other servers. One task writes the events and steps of all runs together, once in
    an interval of so many seconds, and sooner where somebody waits, as long as it did not do so
    often. While the database fails, they wait here in order, `failure` says why, and `flush` raises
    it. A run that another server has ended, or that it has begun after it was begun here, takes
    nothing more from here. `batches` counts the transactions.

    What another server appends to a run is read here as its own; the listener is told of it for
    runs that were given to `follow`.
    """

    def __init__(
        self,
        database: Database,
        now: Callable[[], float],
        listener: Listener | None = None,
        *,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self._database = database
        self._now = now
        self._listener = listener
        self._interval = interval
        self._pace = Pace(interval)
        # What is to be written, each with its place among all that was ever appended.
        self._queue: deque[Entry] = deque()
        self._appended = 0
        self._batch: _Batch | None = None
        # The right to write the runs that were begun here; others are written without one.
        self._fences: dict[str, Fence] = {}
        # Of each run that this log wrote and that goes on, its last number.
        self._numbers: dict[str, int] = {}
        self._flushes = Flushes()
        self._hurry = asyncio.Event()
        self._writing: asyncio.Lock = asyncio.Lock()
        self._runs = False
        self._closed = False
        self.failure: StoreError | None = None
        self.batches = 0
        self._followers = Followers(database, self._tell)

    def append(self, run_id: str, bodies: Iterable[EventBody]) -> None:
        at = self._now()
        self._put(run_id, self._fences.get(run_id), [piece_of(at, body) for body in bodies])

    def append_step(self, run_id: str, fence: Fence, step: Step, state: RunState) -> None:
        """Hands over a step, in order with the events of its run. Raises NotSerialisable."""
        self._put(run_id, fence, [batches.step_piece(self._now(), step, state)])

    def take(self, run_id: str, number: int, *, ended: bool) -> Fence:
        """From now on what is appended to a run is written under this fence; `ended` where it had
        its result before."""
        fence = self._fences[run_id] = Fence(number, ended=ended)
        return fence

    def let_go(self, run_id: str, number: int) -> None:
        """The run has ended under this fence."""
        fence = self._fences.get(run_id)
        if fence is not None and fence.number == number:
            del self._fences[run_id]

    def _put(self, run_id: str, fence: Fence | None, items: Sequence[Item]) -> None:
        if not items:
            return
        if self._closed:
            if fence is not None:
                fence.cut = True
            return
        if fence is not None and fence.lost:
            return
        for item in items:
            self._appended += 1
            self._queue.append(Entry(self._appended, run_id, item, fence))
        self._flushes.appended(run_id, self._appended)
        if not self._runs:
            self._runs = True
            self._database.spawn(self._write_all())

    def replace_waiting(self, run_id: str, body: EventBody, by: EventBody) -> None:
        """Has what waits to be written say something else. Where it is being written just now, or
        was and nobody heard of it, it is as it was."""
        parts = self._batch.parts if self._batch is not None else {}
        for at, entry in enumerate(self._queue):
            item = entry.item
            if entry.run_id == run_id and isinstance(item, Piece) and item.body == body:
                new = piece_of(item.at, by)
                self._queue[at] = entry._replace(item=new)
                if (part := parts.get(run_id)) is not None:
                    part.items = [new if each is item else each for each in part.items]

    async def flush(self, run_id: str) -> None:
        if (written := self._flushes.wait(run_id)) is not None:
            self._hurry.set()
            await written

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> EventPage:
        after = checked_cursor(after, limit)

        async def work(transaction: Transaction) -> tuple[Run, Sequence[Row]] | None:
            run = await event_rows.run_of(transaction, run_id)
            if run is None:
                return None
            return run, await event_rows.rows_after(transaction, run_id, after, limit)

        found = await self._database.read(work)
        if found is None:
            return EventPage((), False)
        run, rows = found
        if len(rows) > INLINE_ROWS:
            events = await asyncio.to_thread(event_rows.events_of, rows, after)
        else:
            events = event_rows.events_of(rows, after)
        return EventPage(events, after < run.gap_before)

    async def read_whole(self, run_ids: Sequence[str]) -> dict[str, list[Event]]:
        """All events of as many of these runs as are read at once; read others one by one."""
        rows = await self._database.read(
            lambda each: event_rows.rows_of_many(each, run_ids, WHOLE_ROWS)
        )
        return await asyncio.to_thread(event_rows.events_of_many, rows, WHOLE_ROWS)

    async def wait(self, run_id: str, after: int) -> None:
        await self._followers.wait(run_id, after)

    async def follow(self, run_id: str, after: int = 0) -> bool:
        """Tells the listener also of what other servers append to a run, after a cursor. Returns
        whether it was told of all that was written before the call; else that is read later."""
        return await self._followers.follow(run_id, after)

    def is_followed(self, run_id: str) -> bool:
        return self._followers.is_followed(run_id)

    def unfollow(self, run_id: str) -> None:
        self._followers.unfollow(run_id)

    async def close(self, run_id: str) -> None:
        await self.flush(run_id)
        run = await self._database.read(lambda each: event_rows.run_of(each, run_id))
        if run is None or not run.ended:
            return
        self._fences.pop(run_id, None)  # It takes no more events, whoever has it.
        if run.joined:
            return
        await ended_runs.join(self._database, run_id)

    async def fold(self, run_id: str) -> None:
        await self.close(run_id)
        await ended_runs.fold(self._database, run_id)

    async def forget(self, run_id: str) -> None:
        # Between two batches, so that none brings it back.
        async with self._writing:
            self._queue = deque(each for each in self._queue if each.run_id != run_id)
            if self._batch is not None:
                self._batch.parts.pop(run_id, None)
            self._flushes.forget(run_id)
            fence = self._fences.get(run_id)
            if fence is not None:
                fence.lost = True  # Whoever still performs it brings nothing of it back.
            self._numbers.pop(run_id, None)
            await self._database.write(lambda each: event_rows.forget(each, run_id))
        self._followers.forget(run_id)
        self._settle()

    async def aclose(self) -> None:
        self._closed = True
        self._followers.aclose()
        if (written := self._flushes.wait_for_all(self._appended)) is not None:
            self._hurry.set()
            try:
                await asyncio.wait_for(written, CLOSE_SECONDS)
            except (StoreError, TimeoutError):
                logger.error("%d events could not be written", len(self._queue))

    async def _write_all(self) -> None:
        """Writes batch after batch until there is nothing left."""
        failures = 0
        try:
            await self._pause(self._interval / 10)
            while self._queue:
                await asyncio.sleep(self._pace.next_in())
                began = time.monotonic()
                try:
                    await self._write_what_fits()
                    failures = 0
                    pause = self._interval - (time.monotonic() - began)
                except Exception as error:
                    # Whatever it is: without this task nobody would write, or be told.
                    self._fail(_fault_of(error))
                    pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                    failures += 1
                await self._pause(pause)
        finally:
            self._runs = False

    async def _pause(self, seconds: float) -> None:
        if self._flushes.wanted:
            return
        self._hurry.clear()
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._hurry.wait()

    async def _write_what_fits(self) -> None:
        """Writes a batch; where it cannot be written, of each run what can: what is too large for
        the disk stands in no other's way."""
        try:
            await self._write_batch()
        except Exception as error:
            if not _is_of_this_batch(error):
                raise
            for run_id in list(dict.fromkeys(entry.run_id for entry in self._queue)):
                await self._write_apart(run_id)
            if self._queue:
                raise

    async def _write_apart(self, run_id: str) -> None:
        most = MAX_BATCH
        while most := min(most, sum(entry.run_id == run_id for entry in self._queue)):
            try:
                await self._write_batch(run_id, most)
            except Exception as error:
                if not _is_of_this_batch(error):
                    raise
                most //= 2

    async def _write_batch(self, only: str | None = None, most: int = MAX_BATCH) -> None:
        async with self._writing:
            if not self._queue:
                return
            # The same batch under the same token until it is known to be written: the connection
            # may be lost after the commit, and no event may come twice.
            batch = self._batch = self._batch or await self._next_batch(only, most)
            try:
                written = await self._write(batch) if batch.parts else Written({})
            except Exception as error:
                if _is_of_this_batch(error):
                    self._batch = None  # Nothing of it was written, and less may be tried.
                raise
            self._batch = None
            self.failure = None
            self.batches += 1
            if batch.only is None:
                while self._queue and self._queue[0].place <= batch.upto:
                    self._queue.popleft()
            else:
                left = (e for e in self._queue if e.run_id != batch.only or e.place > batch.upto)
                self._queue = deque(left)
                self._flushes.wrote_apart(batch.only, batch.upto)
        for at, (run_id, part) in enumerate(batch.parts.items(), 1):
            self._tell_of(run_id, part, written)
            if at % RUNS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._settle()

    def _tell_of(self, run_id: str, part: Part, written: Written) -> None:
        pieces, first = part.pieces, written.first.get(run_id)
        if part.fence is not None and run_id in written.lost:
            part.fence.lost = True
        if first is None:
            self._refused(run_id, len(pieces))
            return
        if not pieces:
            return
        events = [Event(number, piece.at, piece.body) for number, piece in enumerate(pieces, first)]
        self._numbers[run_id] = events[-1].number
        if isinstance(events[-1].body, RunResult):
            del self._numbers[run_id]
            if part.fence is not None:
                part.fence.ended = True
        self._followers.wrote(run_id, events)

    def _refused(self, run_id: str, count: int) -> None:
        """Another server ended a run of ours, or goes on with it: what it does is told here too."""
        if count:
            logger.warning(LATE_EVENTS, count)
        last = self._numbers.pop(run_id, None)
        if last is not None and not self._followers.is_followed(run_id):
            self._database.spawn(self._follow_on(run_id, last))

    async def _follow_on(self, run_id: str, after: int) -> None:
        await self._followers.follow(run_id, after)

    async def _next_batch(self, only: str | None, most: int) -> _Batch:
        behind = only is None and len(self._queue) > JOIN_ABOVE
        size = len(self._queue) if behind else most
        queue = self._queue if only is None else [e for e in self._queue if e.run_id == only]
        parts, upto = batches.parts_of(queue, size)
        if behind or any(not step.body for part in parts.values() for step in part.steps):
            await asyncio.to_thread(batches.make_texts, parts, joined=behind)
        else:
            batches.make_texts(parts, joined=False)
        return _Batch(uuid.uuid4().hex, upto, parts, only)

    async def _write(self, batch: _Batch) -> Written:
        return await self._database.write_at_once(
            lambda each: batches.write_batch(each, self._database, batch.parts, batch.token)
        )

    def _settle(self) -> None:
        """Lets those go on whose events are all written, or forgotten."""
        upto = self._queue[0].place - 1 if self._queue else self._appended
        self._flushes.wrote(upto, is_all=not self._queue)

    def _fail(self, error: StoreError) -> None:
        """Nothing was written; what waits here is tried again."""
        logger.warning("%d events wait to be written: %s", len(self._queue), error.message)
        self.failure = error
        self._flushes.fail(error)

    def _tell(self, run_id: str, events: Sequence[Event]) -> None:
        if self._listener is None:
            return
        try:
            self._listener(run_id, events)
        except Exception:
            logger.exception("The listener to events failed")


def _is_of_this_batch(error: Exception) -> bool:
    """Whether another batch may be written though this one was not, and nothing of it."""
    return not isinstance(error, StoreError) or error.code == FULL


def _fault_of(error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return error
    logger.error("Events could not be written", exc_info=error)
    return StoreError(
        "What is new could not be written, for an unexpected reason.",
        hint="It waits in memory and is tried again. The log of the server says more.",
        code="store_failed",
    )
