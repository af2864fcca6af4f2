"""The event log: what happened in each run, numbered, readable after a cursor."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple, Protocol

from web.harness.values.events import (
    Event,
    EventBody,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)


class EventPage(NamedTuple):
    """Events after a cursor. `gap` is True where events after it are no longer kept."""

    events: Sequence[Event]
    gap: bool


Listener = Callable[[str, Sequence[Event]], None]
"""Called with a run id and its newest events as soon as readers may see them."""


class EventLog(Protocol):
    """Events by run, numbered from 1 without gaps; outside the lease of the session.

    `append` hands bodies over in order and never waits; their numbers exist, and readers and the
    listener see them, at once in memory, with the next commit in a durable log. A run whose last
    event is a `RunResult` is closed: its deltas may be joined, a joined one carrying the last
    number it holds.
    """

    def append(self, run_id: str, bodies: Iterable[EventBody]) -> None: ...

    async def flush(self, run_id: str) -> None:
        """Returns when all that was appended to the run can be read by everybody."""
        ...

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> EventPage:
        """The next events after a cursor, at most `limit`; empty for an unknown run.

        Of a joined delta that the cursor lies in, only the rest.
        """
        ...

    async def wait(self, run_id: str, after: int) -> None:
        """Returns when the run has an event after the cursor, or will never have one."""
        ...

    async def fold(self, run_id: str) -> None:
        """Keeps only the last event of a run that has ended; readers from before it see a gap."""
        ...

    async def forget(self, run_id: str) -> None:
        """Drops a run altogether."""
        ...


@dataclass(slots=True)
class _Run:
    events: list[Event]
    last: int
    waiters: list[asyncio.Future[None]]
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
        new = [Event(number, at, body) for number, body in enumerate(bodies, run.last + 1)]
        if not new:
            return
        run.last = new[-1].number
        run.events += new
        if isinstance(new[-1].body, RunResult):
            joined = join_deltas(run.events)
            run.seams = find_seams(run.events, joined)
            run.events, run.joined = joined, True
        if self._listener is not None:
            self._listener(run_id, new)
        waiters, run.waiters = run.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def flush(self, run_id: str) -> None:
        """Nothing to wait for: memory shows an event at once."""

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> EventPage:
        run = self._runs.get(run_id)
        if run is None:
            return EventPage((), False)
        # While a run is going on, the event numbered n stands at n - 1.
        start = _first_after(run.events, after) if run.joined else after
        events = run.events[start : start + limit]
        if events and events[0].number in run.seams:
            events[0] = _rest(events[0], run.seams[events[0].number], after)
        return EventPage(events, after < run.gap_before)

    async def wait(self, run_id: str, after: int) -> None:
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = _Run([], 0, [])
        while run.last <= after and not run.joined:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            run.waiters.append(waiter)
            await waiter

    async def fold(self, run_id: str) -> None:
        run = self._runs.get(run_id)
        if run is not None and run.joined:
            run.events = run.events[-1:]
            run.seams = {}
            run.gap_before = run.last - 1

    async def forget(self, run_id: str) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        run.joined = True  # Nothing more can come: nobody waits on.
        for waiter in run.waiters:
            if not waiter.done():
                waiter.set_result(None)


def join_deltas(events: Sequence[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one stream joined.

    A joined delta carries the number and time of the last one it holds.
    """
    joined: list[Event] = []
    pieces: list[str] = []
    for event in events:
        if joined and _continues(joined[-1].body, event.body):
            joined[-1] = event
        else:
            _close(joined, pieces)
            joined.append(event)
        pieces.append(_delta_text(event.body))
    _close(joined, pieces)
    return joined


def find_seams(events: Sequence[Event], joined: Iterable[Event]) -> dict[int, array[int]]:
    """Where the pieces of each joined delta end, in characters of its text, by its number.

    `events` are all of a run, `joined` the same as `join_deltas` gives them. A reader that has
    some of the pieces needs only the rest.
    """
    seams: dict[int, array[int]] = {}
    before = 0
    for event in joined:
        if event.number - before > 1:
            lengths = (len(_delta_text(piece.body)) for piece in events[before : event.number])
            seams[event.number] = array("I", accumulate(lengths))
        before = event.number
    return seams


def _rest(event: Event, ends: array[int], after: int) -> Event:
    """What a joined delta holds beyond the pieces up to the cursor."""
    known = after - (event.number - len(ends))
    if known <= 0:
        return event
    return _with_text(event, _delta_text(event.body)[ends[known - 1] :])


def _close(joined: list[Event], pieces: list[str]) -> None:
    """Gives the last joined event the text of all its pieces."""
    if len(pieces) > 1:
        joined[-1] = _with_text(joined[-1], "".join(pieces))
    pieces.clear()


def _with_text(event: Event, text: str) -> Event:
    match event.body:
        case ToolCallDelta():
            return event._replace(body=replace(event.body, arguments=text))
        case TextDelta() | ThinkingDelta():
            return event._replace(body=replace(event.body, text=text))
    return event


def _continues(earlier: EventBody, later: EventBody) -> bool:
    if isinstance(earlier, TextDelta | ThinkingDelta) and type(earlier) is type(later):
        return earlier.message_id == getattr(later, "message_id", None)
    if isinstance(earlier, ToolCallDelta) and isinstance(later, ToolCallDelta):
        return earlier.call_id == later.call_id
    return False


def _delta_text(body: EventBody) -> str:
    match body:
        case TextDelta() | ThinkingDelta():
            return body.text
        case ToolCallDelta():
            return body.arguments
    return ""


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
