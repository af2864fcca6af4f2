"""The event log: what happened in each run, numbered, readable after a cursor."""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from web.harness.sessions.deltas import find_seams, join_deltas, rest_of, told_twice
from web.harness.values.errors import HarnessError
from web.harness.values.events import Event, EventBody, RunResult

JOINED_AT_ONCE = 100
"""Events of one run; more are joined in a thread."""


MOST = 2**63
"""No run has as many events, and no database counts so far."""

LATE_EVENTS = "%d events came after the end of their run and were left out"

logger = logging.getLogger(__name__)


class EventPage(NamedTuple):
    """Events after a cursor. `gap` is True where events after it are no longer kept."""

    events: Sequence[Event]
    gap: bool


Listener = Callable[[str, Sequence[Event]], None]
"""Called with a run id and its newest events as soon as readers may see them."""


class EventLog(Protocol):
    """Events by run, numbered from 1 without gaps; outside the lease of the session.

    `append` hands bodies over in order and never waits; their numbers exist, and readers and the
    listener see them, at once in memory, with the next commit in a durable log. A run ends with its
    `RunResult`: what comes after it is left out, which is logged.
    """

    def append(self, run_id: str, bodies: Iterable[EventBody]) -> None: ...

    async def flush(self, run_id: str) -> None:
        """Returns when all that was appended to the run can be read by everybody."""
        ...

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> EventPage:
        """The next events after a cursor, at most `limit`; empty for an unknown run.

        Of a joined delta that the cursor lies in, only the rest. A cursor below 0 is 0. Raises
        HarnessError (`invalid_request`) for what is no number of an event, or of events.
        """
        ...

    async def wait(self, run_id: str, after: int) -> None:
        """Returns when the run has an event after the cursor, or will never have one."""
        ...

    async def close(self, run_id: str) -> None:
        """Joins the deltas of a run that has ended; a joined one has the last number it holds."""
        ...

    async def fold(self, run_id: str) -> None:
        """Keeps of a run that has ended what a record of it needs: its deltas joined, and of the
        arguments of a call not those that the model wrote, where the call itself has them. Readers
        from before what is dropped see a gap.
        """
        ...

    async def forget(self, run_id: str) -> None:
        """Drops a run altogether."""
        ...

    async def aclose(self) -> None:
        """Writes what was appended, as far as that can be done, and takes no more."""
        ...


@dataclass(slots=True)
class _Run:
    events: list[Event]
    last: int
    waiters: list[asyncio.Future[None]]
    ended: bool = False
    joined: bool = False
    gap_before: int = 0
    seams: dict[int, array[int]] = field(default_factory=dict)


class InMemoryEventLog:
    """The `EventLog` of this process: an event is shown at once.

    `now` returns seconds since the epoch; `listener` folds events for the page.
    """

    def __init__(self, now: Callable[[], float], listener: Listener | None = None) -> None:
        self._now = now
        self._listener = listener
        self._runs: dict[str, _Run] = {}

    def append(self, run_id: str, bodies: Iterable[EventBody]) -> None:
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = _Run([], 0, [])
        at = self._now()
        taken, late = until_end(bodies, ended=run.ended)
        if late:
            logger.warning(LATE_EVENTS, late)
        new = [Event(number, at, body) for number, body in enumerate(taken, run.last + 1)]
        if not new:
            return
        run.last = new[-1].number
        run.events += new
        run.ended = isinstance(new[-1].body, RunResult)
        if self._listener is not None:
            self._listener(run_id, new)
        waiters, run.waiters = run.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def flush(self, run_id: str) -> None:
        """Nothing to wait for: memory shows an event at once."""

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> EventPage:
        after = checked_cursor(after, limit)
        run = self._runs.get(run_id)
        if run is None:
            return EventPage((), False)
        # Until the deltas are joined, the event numbered n stands at n - 1.
        start = _first_after(run.events, after) if run.joined else after
        events = run.events[start : start + limit]
        if events and events[0].number in run.seams:
            events[0] = rest_of(events[0], run.seams[events[0].number], after)
        return EventPage(events, after < run.gap_before)

    async def wait(self, run_id: str, after: int) -> None:
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = _Run([], 0, [])
        while run.last <= after and not run.ended:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            run.waiters.append(waiter)
            await waiter

    async def close(self, run_id: str) -> None:
        run = self._runs.get(run_id)
        if run is None or not run.ended or run.joined:
            return
        if len(run.events) <= JOINED_AT_ONCE:
            joined, seams = _join(run.events)
        else:
            # In a thread: a long answer has tens of thousands of deltas, and others would wait.
            joined, seams = await asyncio.to_thread(_join, run.events)
        if not run.joined:
            run.events, run.seams, run.joined = joined, seams, True

    async def fold(self, run_id: str) -> None:
        await self.close(run_id)
        run = self._runs.get(run_id)
        if run is None or not run.joined:
            return
        dropped = {event.number for event in told_twice(run.events)}
        if dropped:
            run.events = [event for event in run.events if event.number not in dropped]
            run.seams = {
                number: ends for number, ends in run.seams.items() if number not in dropped
            }
            run.gap_before = max(dropped)

    async def forget(self, run_id: str) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        run.ended = True  # Nothing more can come: nobody waits on.
        for waiter in run.waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def aclose(self) -> None:
        """Memory has nothing to write."""


def checked_cursor(after: int, limit: int) -> int:
    """The cursor that counts. Raises HarnessError (`invalid_request`); see `EventLog.read`."""
    for what, value, least in (("The cursor", after, -MOST), ("The limit", limit, 0)):
        if type(value) is not int or not least <= value < MOST:
            raise HarnessError(
                f"{what} is no number of events.",
                hint="Give a whole number from 0 on, such as that of the last event you have.",
                code="invalid_request",
            )
    return max(after, 0)


def until_end(bodies: Iterable[EventBody], *, ended: bool) -> tuple[list[EventBody], int]:
    """Those up to the end of their run, and how many came after it."""
    taken: list[EventBody] = []
    late = 0
    for body in bodies:
        if ended:
            late += 1
        else:
            taken.append(body)
            ended = isinstance(body, RunResult)
    return taken, late


def _join(events: list[Event]) -> tuple[list[Event], dict[int, array[int]]]:
    joined = join_deltas(events)
    return joined, find_seams(events, joined)


def _first_after(events: Sequence[Event], cursor: int) -> int:
    """Index of the first event numbered above the cursor; events are in rising order."""
    low, high = 0, len(events)
    while low < high:
        middle = (low + high) // 2
        if events[middle].number <= cursor:
            low = middle + 1
        else:
            high = middle
    return low
