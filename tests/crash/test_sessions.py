"""A server that dies or is stopped in the middle of its commits: what is left, who goes on."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.session_processes import SessionWriter
from tests.support.stores import SqlPlace, on
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.migrations import VERSION
from web.harness.sessions.sql.postgres import open_postgres
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.errors import SessionConflict
from web.harness.values.events import Note

pytestmark = pytest.mark.anyio


SQLITE = on("sqlite", full="postgresql")
POSTGRESQL = on("postgresql", full="sqlite")


async def left(place: SqlPlace, wait: float = 10) -> SessionSnapshot:
    """What another server reads, once nobody holds the session."""
    store = await place.sessions()
    async with await store.acquire(LOCAL_IDENTITY, "s", wait=wait) as lease:
        return await lease.read()


async def kill_while_it_commits(place: SqlPlace, kills: int, commits: int) -> None:
    acknowledged = 0
    for _ in range(kills):
        async with SessionWriter(place.address, 1) as writer:
            held, revision, messages = (await writer.ask("acquire")).split()
            assert held == "held"
            assert int(revision) == int(messages) >= acknowledged
            writer.say("run")
            said = [await writer.answer() for _ in range(commits)]
            said += await writer.kill()
        # A last line may be cut off where the process ended.
        acknowledged = int(next(line for line in reversed(said) if line.count(" ") == 1)[10:])
        snapshot = await left(place)
        assert snapshot.revision >= acknowledged
        assert snapshot.revision - acknowledged <= 1
        assert len(snapshot.history) == snapshot.revision
        assert snapshot.state == {"count": snapshot.revision}


@SQLITE
async def test_a_server_that_is_killed_while_it_commits_loses_no_acknowledged_commit(
    place: SqlPlace,
) -> None:
    await kill_while_it_commits(place, kills=2, commits=25)


@pytest.mark.full
async def test_ten_thousand_commits_and_many_kills_lose_no_acknowledged_commit(
    place: SqlPlace,
) -> None:
    await kill_while_it_commits(place, kills=25, commits=250)


async def test_a_server_that_is_killed_while_it_logs_loses_no_event_that_was_shown(
    place: SqlPlace,
) -> None:
    async with SessionWriter(place.address, 1) as writer:
        writer.say("events")
        said = [await writer.answer() for _ in range(30)]
        said += await writer.kill()
    shown = int(said[-1].split()[1]) if said[-1].count(" ") == 1 else 5 * len(said[:-1])
    log = await place.events()
    numbers = [event.number for event in (await log.read("r", limit=10_000)).events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= shown
    # The next number goes on where the log ended: none is used twice.
    log.append("r", [Note("next")])
    await log.flush("r")
    assert [event.number for event in (await log.read("r", len(numbers))).events] == [
        len(numbers) + 1
    ]


@POSTGRESQL
async def test_a_stopped_holder_loses_its_lease_and_writes_nothing_of_its_late_commit(
    place: SqlPlace,
) -> None:
    async with SessionWriter(place.address, 1) as writer:
        assert await writer.ask("acquire") == "held 0 0"
        assert await writer.ask("commit first") == "committed 1"
        writer.stop()
        store = await place.sessions()
        async with await store.acquire(LOCAL_IDENTITY, "s", wait=20) as lease:
            read = await lease.read()
            assert [message.text for message in read.history] == ["first"]
            assert (await lease.commit(SessionSnapshot(read.history, state={"n": 1}))).revision == 2
            writer.go_on()
            assert await writer.ask("commit late") == "lease_lost"
            assert await lease.read() == SessionSnapshot(read.history, state={"n": 1}, revision=2)
        # It may hold the session again, as anybody may.
        assert await writer.ask("acquire") == "held 2 1"
        assert await writer.ask("commit second") == "committed 3"


@pytest.mark.full
async def test_a_holder_that_lives_keeps_its_lease_beyond_its_time(place: SqlPlace) -> None:
    async with SessionWriter(place.address, 0.4) as writer:
        assert await writer.ask("acquire") == "held 0 0"
        store = await place.sessions()
        with pytest.raises(SessionConflict):
            await store.acquire(LOCAL_IDENTITY, "s", wait=1.2)
        assert await writer.ask("commit first") == "committed 1"


@SQLITE
async def test_the_sessions_of_a_killed_server_are_free_at_once_on_its_machine(
    place: SqlPlace,
) -> None:
    async with SessionWriter(place.address, 600) as writer:
        assert await writer.ask("acquire") == "held 0 0"
        assert await writer.ask("commit first") == "committed 1"
        await writer.kill()
    assert (await left(place, wait=0)).revision == 1


@pytest.mark.full
@on("postgresql")
async def test_the_sessions_of_a_server_that_died_on_another_machine_are_free_within_seconds(
    place: SqlPlace,
) -> None:
    """And not those of one that only stands still, or whose connection was not made yet."""
    database = await open_postgres(place.address, settled_seconds=0)
    young = await open_postgres(place.address, settled_seconds=1e6)
    place.databases += [database, young]
    await asyncio.wait_for(database.listening.wait(), 10)
    async with SessionWriter(place.address, 600) as writer:
        assert await writer.ask("acquire") == "held 0 0"
        assert await writer.ask("commit first") == "committed 1"
        writer.stop()
        # As if it ran elsewhere: nobody here can look at its process.
        await place.run("UPDATE harness_leases SET holder = 'elsewhere' || holder")
        store = SqlSessionStore(database)
        with pytest.raises(SessionConflict):
            await store.acquire(LOCAL_IDENTITY, "s", wait=1.2)
        await writer.kill()
    async with await store.acquire(LOCAL_IDENTITY, "s", wait=5) as lease:
        assert (await lease.read()).revision == 1
        # Those of a database server that was started just now may all be cut off.
        await place.run("UPDATE harness_leases SET holder = '|1|2|3|4', expires_at = 9e9")
        with pytest.raises(SessionConflict):
            await SqlSessionStore(young).acquire(LOCAL_IDENTITY, "s", wait=1.2)


async def test_servers_that_start_at_once_migrate_a_database_once(place: SqlPlace) -> None:
    if not place.address.startswith("sqlite"):
        await place.run("DROP SCHEMA public CASCADE")
        await place.run("CREATE SCHEMA public")
    await asyncio.gather(*(place.open() for _ in range(6)))
    rows = await place.run("SELECT version FROM harness_schema ORDER BY version")
    assert [row[0] for row in rows] == list(range(1, VERSION + 1))
    assert (await left(place)).revision == 0
