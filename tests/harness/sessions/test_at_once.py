"""Transactions that go straight through the driver: whole or not at all, and as few as can be."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.support.steps import STATE, round_of_calls, submission
from tests.support.stores import SqlPlace, on
from web.harness.sessions.opening import Stores
from web.harness.sessions.sql.database import Database, Transaction
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.executions import SqlExecutions
from web.harness.sessions.sql.sqlite import GLANCE_SECONDS, GLANCES, SqliteDatabase
from web.harness.sessions.sql.statements import numbered, with_lists
from web.harness.values.errors import NotFound, StoreError
from web.harness.values.events import TextDelta, ToolCallStart, ToolResult

pytestmark = pytest.mark.anyio

STEPS = 10

WHOLE_LOOK_SECONDS = GLANCE_SECONDS * GLANCES

INSERT = (
    "INSERT INTO harness_runs (run_id, last, ended, joined, gap_before, token) "
    "VALUES (:run, :last, 0, 0, 0, '')"
)


def database(stores: Stores) -> Database:
    assert stores.database is not None
    return stores.database


async def runs(where: Database) -> list[tuple[str, int]]:
    rows = await where.read(
        lambda each: each.rows(
            "SELECT run_id, last FROM harness_runs WHERE run_id IN :run_list ORDER BY run_id",
            {"run_list": ["a", "b", "c", "it's"]},
        )
    )
    return [(row[0], row[1]) for row in rows]


async def insert_runs(transaction: Transaction, run_ids: Sequence[str]) -> None:
    await transaction.do(INSERT, [{"run": each, "last": 1} for each in run_ids])


async def insert(transaction: Transaction, *run_ids: str) -> int:
    await insert_runs(transaction, run_ids)
    await transaction.do(INSERT, [])
    await transaction.do(
        "UPDATE harness_runs SET last = :last WHERE run_id = :run", {"run": "a", "last": 7}
    )
    await transaction.do("UPDATE harness_runs SET joined = 0")
    transaction.signal("test", "a")
    transaction.signal("test", "a")
    row = await transaction.row("SELECT count(*) FROM harness_runs")
    found = await transaction.rows(
        "SELECT run_id FROM harness_runs WHERE run_id IN :run_list", {"run_list": ["it's", "no"]}
    )
    assert [each[0] for each in found] == ["it's"]
    return int(row[0]) if row is not None else 0


async def test_work_is_committed_with_its_signals(here: Stores) -> None:
    where, told = database(here), list[str | None]()
    stop = where.signals.listen("test", told.append)
    count = await where.write_at_once(lambda each: insert(each, "a", "b", "it's"))
    stop()
    assert count == 3
    assert told[-1:] == ["a"]
    assert told.count("a") == 1
    assert await runs(where) == [("a", 7), ("b", 1), ("it's", 1)]


async def test_work_that_fails_leaves_nothing_and_the_next_is_done(here: Stores) -> None:
    where, told = database(here), list[str | None]()

    async def refused(transaction: Transaction) -> None:
        await insert(transaction, "a", "it's")
        raise NotFound("No.")

    async def broken(transaction: Transaction) -> None:
        await insert(transaction, "a", "it's")
        await transaction.do("SELECT nothing FROM nowhere")

    with pytest.raises(NotFound):
        await where.write_at_once(refused)
    with pytest.raises(StoreError):
        await where.write_at_once(broken)
    assert await runs(where) == []
    stop = where.signals.listen("test", told.append)
    assert await where.write_at_once(lambda each: insert(each, "a", "it's")) == 2
    stop()


@on("sqlite")
async def test_work_that_would_wait_for_more_is_refused_in_sqlite(place: SqlPlace) -> None:
    where = database(await place.backend())

    async def waits(transaction: Transaction) -> None:
        await insert(transaction, "a", "it's")
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for its transaction alone"):
        await where.write_at_once(waits)
    assert await runs(where) == []


async def test_many_at_once_are_all_done(here: Stores) -> None:
    where = database(here)

    async def one(number: int) -> None:
        run = {"run": f"run {number}", "last": number}
        await where.write_at_once(lambda each: each.do(INSERT, run))

    await asyncio.gather(*map(one, range(12)))
    row = await where.read(lambda each: each.row("SELECT count(*) FROM harness_runs"))
    assert row is not None
    assert row[0] == 12


async def test_a_run_of_tools_is_written_in_one_transaction_a_step(place: SqlPlace) -> None:
    where = await place.open()
    # So long that nothing is written but what somebody waits for.
    log = SqlEventLog(where, lambda: 1.0, interval=60)
    executions = SqlExecutions(where, log)
    await executions.submit(submission("r", "r"))
    journal = (await executions.begin("r"))[1]
    for at in range(STEPS):
        call, answered, started, settled = round_of_calls(at)
        journal.write(call, STATE)
        # A model that answers at once still lets others have their turn.
        await asyncio.sleep(0)
        journal.write(answered, STATE)
        log.append("r", [ToolCallStart(f"c{at}", "look", {}, f"a{at}")])
        await asyncio.sleep(0)
        journal.write(started, STATE)
        await journal.settled()
        log.append("r", [ToolResult(f"c{at}", "look", "found")])
        journal.write(settled, STATE)
    await journal.settled()
    assert log.batches <= STEPS + 1
    assert len(await executions.steps("r")) == 4 * STEPS
    await log.aclose()


@on("sqlite")
async def test_events_follow_a_file_that_a_copy_took_the_place_of(place: SqlPlace) -> None:
    stores = await place.backend()
    where = stores.database
    assert isinstance(where, SqliteDatabase)
    stores.events.append("r", [TextDelta("before", "m")])
    await stores.events.flush("r")
    copy = where.path.with_name("copy.sqlite3")
    copy_database(where.path, copy)
    for ending in ("-wal", "-shm"):
        where.path.with_name(f"{where.path.name}{ending}").unlink()
    copy.replace(where.path)
    await where.look()
    assert where.failure is None
    stores.events.append("r", [TextDelta("after", "m")])
    await stores.events.flush("r")
    assert count_events(where.path) == 2


@on("sqlite")
async def test_sqlite_notices_soon_what_others_write_and_its_own_writes_wake_nobody(
    place: SqlPlace,
) -> None:
    here, there = database(await place.backend()), database(await place.backend())
    told = asyncio.Queue[str | None]()
    stop = here.signals.listen("anything", told.put_nowait)
    async with asyncio.timeout(20):
        await told.get()  # Somebody listens now.
        waited = []
        for number in range(2):
            work = partial(insert_runs, run_ids=[f"run {number}"])
            began = time.monotonic()
            await there.write_at_once(work)
            await told.get()
            waited.append(time.monotonic() - began)
    assert min(waited) < WHOLE_LOOK_SECONDS / 2
    until = time.monotonic() + WHOLE_LOOK_SECONDS / 2
    while time.monotonic() < until:
        await here.write_at_once(lambda each: each.do("UPDATE harness_runs SET last = last + 1"))
    stop()
    assert told.qsize() <= 1


def copy_database(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def count_events(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM harness_events").fetchone()
    return int(count)


def test_statements_take_the_form_of_their_driver() -> None:
    sql = "SELECT a FROM t WHERE b = :b AND c IN :c_list AND d < :b AND e LIKE 'x:%'"
    assert with_lists(sql, "sqlite")[0].count("json_each(:c_list)") == 1
    sql, lists = with_lists(sql, "postgresql")
    assert lists == ("c_list",)
    assert numbered(sql) == (
        "SELECT a FROM t WHERE b = $1 AND c = ANY (CAST($2 AS text[])) AND d < $1 AND e LIKE 'x:%'",
        ("b", "c_list"),
    )
