"""What other processes commit to a file is heard of, and what this one commits costs no look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from tests.support.stores import SqlPlace
from web.harness.sessions.sql.database import Database, Transaction, Work
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.sqlite import SqliteDatabase
from web.harness.values.events import RunResult, TextDelta

pytestmark = pytest.mark.anyio

T = TypeVar("T")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[SqlPlace]:
    place = SqlPlace(f"sqlite:///{tmp_path / 'chats.sqlite3'}")
    yield place
    await place.aclose()


async def opened(place: SqlPlace) -> SqliteDatabase:
    database = await place.open()
    assert isinstance(database, SqliteDatabase)
    return database


async def test_what_another_process_commits_is_told_of_and_what_this_one_does_is_not(
    place: SqlPlace,
) -> None:
    database = await opened(place)
    told: list[str | None] = []
    database.signals.listen("any", told.append)

    async def write(transaction: Transaction) -> None:
        await transaction.do("UPDATE harness_leases SET fence = 0")
        await transaction.do(
            "INSERT INTO harness_runs (run_id, last, ended, joined, gap_before, token) "
            "VALUES (:run, 0, 0, 0, 0, '')",
            {"run": f"r{len(written)}"},
        )

    written: list[int] = []
    await database.hear()
    before = len(told)
    for way in (database.write, database.write_at_once) * 3:
        await way(write)
        written.append(1)
        await database.hear()
    assert len(told) == before
    await place.run("UPDATE harness_runs SET last = 1")
    await database.hear()
    assert len(told) > before
    rows = await database.read(lambda each: each.rows("SELECT last FROM harness_runs"))
    assert [row[0] for row in rows] == [1] * 6


class Counted:
    """A database that counts what is read from it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reads = 0
        self.has_read = asyncio.Event()

    async def read(self, work: Work[T]) -> T:
        self.reads += 1
        self.has_read.set()
        return await self._database.read(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def test_of_many_runs_that_are_followed_or_waited_for_only_those_are_read_that_changed(
    place: SqlPlace,
) -> None:
    told = asyncio.Queue[str]()
    database = await opened(place)
    counted = Counted(database)
    here = SqlEventLog(cast(Database, counted), lambda: 1.0, lambda run, _: told.put_nowait(run))
    there = await place.events()
    async with asyncio.TaskGroup() as tasks:
        for number in range(30):
            await here.follow(f"followed-{number}")
            tasks.create_task(here.wait(f"waited-{number}", 0))
        await database.hear()
        there.append("followed-7", [TextDelta("a", "m")])
        await there.flush("followed-7")
        before = counted.reads
        await database.hear()
        assert await asyncio.wait_for(told.get(), 10) == "followed-7"
        # One look at all, and one or two readings of the run.
        assert counted.reads - before < 10
        for number in range(30):
            there.append(f"waited-{number}", [RunResult("completed", "")])
        await there.flush("waited-29")
        await database.hear()
    await here.aclose()


@pytest.mark.full
async def test_an_event_that_nobody_can_read_is_told_of_once(
    place: SqlPlace, caplog: pytest.LogCaptureFixture
) -> None:
    counted = Counted(await opened(place))
    here, there = SqlEventLog(cast(Database, counted), lambda: 1.0), await place.events()
    there.append("r", [TextDelta("a", "m")])
    await there.flush("r")
    await place.run("UPDATE harness_events SET body = '{'")
    await here.follow("r")
    for _ in range(2):
        counted.has_read.clear()
        await asyncio.wait_for(counted.has_read.wait(), 10)
    assert caplog.text.count("Event 1 of a run cannot be read") == 1
    await here.aclose()
