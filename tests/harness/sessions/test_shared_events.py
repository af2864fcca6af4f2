"""What one server appends is read, waited for and followed by another, and written once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import pytest

from tests.support.steps import texts
from tests.support.stores import SqlPlace, on
from web.harness.sessions.sql.batches import Part, write_batch
from web.harness.sessions.sql.database import Database, Transaction, Work
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.event_rows import TOPIC, piece_of
from web.harness.values.events import Event, EventBody, Note, RunResult, ToolCallStart

pytestmark = pytest.mark.anyio

END = RunResult("completed", "")

T = TypeVar("T")


async def test_a_reader_at_another_server_waits_for_what_is_appended_here(place: SqlPlace) -> None:
    here, there = await place.events(), await place.events()
    await place.heard_by_all()
    waiting = asyncio.ensure_future(there.wait("r", 0))
    await there.read("r")  # By now it waits.
    here.append("r", texts("a"))
    await here.flush("r")
    await asyncio.wait_for(waiting, 10)
    assert [event.number for event in (await there.read("r")).events] == [1]


async def test_a_followed_run_is_told_whole_once_and_in_order(place: SqlPlace) -> None:
    seen: list[tuple[int, str]] = []
    ended = asyncio.Event()

    def listener(_: str, events: Sequence[Event]) -> None:
        seen.extend((event.number, getattr(event.body, "text", "")) for event in events)
        if isinstance(events[-1].body, RunResult):
            ended.set()

    here, there = await place.events(), await place.events(listener)
    await place.heard_by_all()
    here.append("r", texts("a", "b"))
    await here.flush("r")
    await there.follow("r", 1)
    assert seen == [(2, "b")]
    for piece in "cdef":
        here.append("r", texts(piece))
        await here.flush("r")
    here.append("r", [END])
    await asyncio.wait_for(ended.wait(), 10)
    assert seen == [(2, "b"), (3, "c"), (4, "d"), (5, "e"), (6, "f"), (7, "")]


async def test_a_run_that_another_server_went_on_with_is_numbered_on(place: SqlPlace) -> None:
    here, there = await place.events(), await place.events()
    here.append("r", texts("a", "b"))
    await here.flush("r")
    there.append("r", [*texts("c"), END])
    await there.flush("r")
    assert [event.number for event in (await here.read("r")).events] == [1, 2, 3, 4]


async def test_a_run_that_another_server_ended_takes_nothing_more_and_its_end_is_told_here(
    place: SqlPlace,
) -> None:
    told: list[EventBody] = []
    ended = asyncio.Event()

    def listener(_: str, events: Sequence[Event]) -> None:
        told.extend(event.body for event in events)
        if isinstance(events[-1].body, RunResult):
            ended.set()

    here, there = await place.events(listener), await place.events()
    here.append("r", texts("a"))
    await here.flush("r")
    there.append("r", [END])
    await there.flush("r")
    here.append("r", texts("b"))
    here.append("s", texts("c"))
    await here.flush("s")
    await asyncio.wait_for(ended.wait(), 10)
    here.append("r", [RunResult("failed", "")])
    await here.flush("r")
    expected = [*texts("a"), END]
    assert [event.body for event in (await there.read("r")).events] == expected
    assert [event.body for event in (await here.read("s")).events] == texts("c")
    assert [body for body in told if body not in texts("c")] == expected


async def test_a_batch_whose_commit_was_not_heard_of_is_not_written_twice(place: SqlPlace) -> None:
    log = await place.events()
    log.append("r", texts("before"))
    await log.flush("r")
    database = place.databases[0]
    batch = {
        run: Part(None, [piece_of(1.0, body) for body in texts("a", "b")]) for run in ("r", "s")
    }

    async def work(transaction: Transaction) -> Mapping[str, int]:
        return (await write_batch(transaction, database, batch, "token")).first

    assert await database.write(work) == {"r": 2, "s": 1}
    assert await database.write(work) == {"r": 2, "s": 1}
    assert [event.number for event in (await log.read("r")).events] == [1, 2, 3]
    assert [event.number for event in (await log.read("s")).events] == [1, 2]


async def test_events_of_many_runs_are_committed_together(place: SqlPlace) -> None:
    told: list[str] = []
    log = await place.events(lambda run, events: told.extend(run for _ in events))
    for at in range(200):
        log.append(f"r{at % 20}", texts(str(at)))
    await log.flush("r19")
    rows = await place.run("SELECT count(*), count(DISTINCT token) FROM harness_runs")
    assert tuple(rows[0]) == (20, 1)
    assert len(told) == 200


async def test_an_event_that_json_cannot_hold_is_told_as_a_note_and_stops_nothing(
    place: SqlPlace,
) -> None:
    log = await place.events()
    log.append("r", [ToolCallStart("c", "t", {"x": object()}, "m"), END])
    await log.flush("r")
    first, last = (await log.read("r")).events
    assert isinstance(first.body, Note)
    assert "object" in first.body.detail
    assert last.body == END


async def test_where_the_database_falls_behind_deltas_are_joined_and_no_text_is_lost(
    place: SqlPlace,
) -> None:
    told: dict[str, list[Event]] = {}
    log = await place.events(lambda run, events: told.setdefault(run, []).extend(events))
    log.append("first", texts("x"))
    await log.flush("first")
    for at in range(12_000):
        log.append(f"r{at % 2}", texts(f"{at} "))
    log.append("r0", [END])
    await log.flush("r0")
    page = await log.read("r0", limit=5_000)
    assert page.events == told["r0"]
    assert [event.number for event in page.events] == list(range(1, len(page.events) + 1))
    assert len(page.events) < 50
    written = "".join(getattr(event.body, "text", "") for event in page.events)
    assert written == "".join(f"{at} " for at in range(0, 12_000, 2))


class Gate:
    """A database whose reads, once it is closed, give what they found only when it is opened."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open = asyncio.Event()
        self._open.set()
        self.read_something = asyncio.Event()

    def close(self) -> None:
        self._open.clear()
        self.read_something.clear()

    def open(self) -> None:
        self._open.set()

    async def read(self, work: Work[T]) -> T:
        found = await self._database.read(work)
        self.read_something.set()
        await asyncio.wait_for(self._open.wait(), 10)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def test_who_follows_while_a_reading_is_under_way_is_told_of_what_came_after_it(
    place: SqlPlace,
) -> None:
    seen: list[str] = []
    here, gate = await place.events(), Gate(await place.open())
    there = SqlEventLog(
        cast(Database, gate),
        lambda: 1.0,
        lambda _, events: seen.extend(getattr(each.body, "text", "") for each in events),
    )
    await there.follow("r")
    gate.close()
    first = asyncio.ensure_future(there.follow("r"))
    await asyncio.wait_for(gate.read_something.wait(), 10)
    # It found nothing, and does not know that yet.
    here.append("r", texts("a"))
    await here.flush("r")
    second = asyncio.ensure_future(there.follow("r"))
    await asyncio.sleep(0)
    gate.open()
    assert await asyncio.wait_for(second, 10)
    assert seen == ["a"]
    assert await first
    await there.aclose()


class Late:
    """A database whose transactions are committed some time before those who wrote them know."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.committed = asyncio.Event()
        self.is_known = asyncio.Event()

    async def write_at_once(self, work: Work[T]) -> T:
        found = await self._database.write_at_once(work)
        self.committed.set()
        await asyncio.wait_for(self.is_known.wait(), 10)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@on("postgresql")
async def test_what_another_server_adds_while_a_commit_is_not_known_of_is_told(
    place: SqlPlace,
) -> None:
    seen: list[str] = []
    both, heard = asyncio.Event(), asyncio.Event()

    def listener(_: str, events: Sequence[Event]) -> None:
        seen.extend(getattr(each.body, "text", "") for each in events)
        if len(seen) == 2:
            both.set()

    there, late = await place.events(), Late(await place.open())
    here = SqlEventLog(cast(Database, late), lambda: 1.0, listener)
    await place.heard_by_all()
    await here.follow("r")
    here.append("r", texts("a"))
    await asyncio.wait_for(late.committed.wait(), 10)
    stop = late.signals.listen(TOPIC, lambda _: heard.set())
    there.append("r", texts("b"))
    await there.flush("r")
    await asyncio.wait_for(heard.wait(), 10)
    late.is_known.set()
    await asyncio.wait_for(both.wait(), 10)
    assert seen == ["a", "b"]
    stop()
    await here.aclose()


async def test_what_waits_to_be_written_can_still_say_something_else(place: SqlPlace) -> None:
    told: list[EventBody] = []
    log = await place.events(lambda _, events: told.extend(each.body for each in events))
    log.append("r", [Note("a"), Note("b"), Note("c")])
    log.append("other", [Note("b")])
    log.replace_waiting("r", Note("b"), Note("instead"))
    await log.flush("other")
    log.replace_waiting("r", Note("a"), Note("too late"))
    read = [each.body for each in (await log.read("r")).events]
    assert read == [Note("a"), Note("instead"), Note("c")]
    assert told == [*read, Note("b")]
