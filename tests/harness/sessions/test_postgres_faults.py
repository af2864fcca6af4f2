"""A PostgreSQL server that is cut off, restarted or not there loses no acknowledged commit."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.postgres import empty_database, give_back, new_database, new_server
from tests.support.postgres_proxy import Cut, PostgresProxy
from tests.support.steps import saying
from tests.support.stores import SqlPlace
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.database import Transaction
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.postgres import PostgresDatabase, open_postgres
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.errors import SessionConflict, StoreError
from web.harness.values.events import RunResult, TextDelta
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

AT_ONCE = (0.0, 0.05, 0.1)
"""Pauses before further tries."""


@pytest.fixture
async def address() -> AsyncIterator[str]:
    address = await empty_database()
    yield address
    await give_back(address)


@asynccontextmanager
async def opened(address: str, **options: Any) -> AsyncIterator[PostgresDatabase]:
    database = await open_postgres(address, **{"pauses": AT_ONCE, **options})
    try:
        yield database
    finally:
        await database.aclose()


async def refused(act: Callable[[], Awaitable[object]]) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await act()
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("cut", ["before commit", "after commit"])
async def test_a_commit_that_is_cut_off_is_written_once(address: str, cut: Cut) -> None:
    async with PostgresProxy(address) as proxy, opened(proxy.address) as database:
        store = SqlSessionStore(database)
        async with await store.acquire(LOCAL_IDENTITY, "s") as lease:
            await lease.commit(SessionSnapshot(saying("a")))
            proxy.cut = cut
            kept = await lease.commit(SessionSnapshot(saying("a", "b"), state={"n": 1}))
            assert proxy.cuts == 1
            assert kept.revision == 2
            expected = SessionSnapshot(saying("a", "b"), state={"n": 1}, revision=2)
            assert await lease.read() == expected
            await lease.commit(SessionSnapshot(saying("a", "b", "c")))
        async with (
            opened(address) as other,
            await SqlSessionStore(other).acquire(LOCAL_IDENTITY, "s") as lease,
        ):
            assert (await lease.read()).history == saying("a", "b", "c")


@pytest.mark.parametrize("cut", ["before commit", "after commit"])
async def test_events_that_are_cut_off_are_written_once(address: str, cut: Cut) -> None:
    told: list[int] = []
    async with PostgresProxy(address) as proxy, opened(proxy.address) as database:
        log = SqlEventLog(
            database, lambda: 1.0, lambda _, events: told.extend(each.number for each in events)
        )
        log.append("r", [TextDelta("a", "m")])
        await log.flush("r")
        proxy.cut = cut
        log.append("r", [TextDelta("b", "m"), TextDelta("c", "m")])
        await log.flush("r")
        log.append("r", [RunResult("completed", "")])
        await log.flush("r")
        assert proxy.cuts == 1
        page = await log.read("r")
        assert [getattr(event.body, "text", "") for event in page.events] == ["a", "b", "c", ""]
        assert told == [1, 2, 3, 4]
        await log.aclose()


@pytest.mark.full
async def test_a_run_is_followed_at_once_and_caught_up_with_when_the_database_answers(
    address: str,
) -> None:
    told = asyncio.Event()
    async with opened(address) as there, PostgresProxy(address) as proxy:
        theirs = SqlEventLog(there, lambda: 1.0)
        theirs.append("r", [TextDelta("a", "m")])
        await theirs.flush("r")
        async with opened(proxy.address) as database:
            log = SqlEventLog(database, lambda: 1.0, lambda run_id, events: told.set())
            proxy.cut = "silent"
            await asyncio.wait_for(log.follow("r"), 10)
            assert not told.is_set()
            proxy.mend()
            proxy.end_all()
            await asyncio.wait_for(told.wait(), 10)
            await log.aclose()
        await theirs.aclose()


@pytest.mark.parametrize("cut", ["before commit", "after commit"])
async def test_an_acquisition_that_is_cut_off_holds_once(address: str, cut: Cut) -> None:
    async with PostgresProxy(address) as proxy, opened(proxy.address) as database:
        store = SqlSessionStore(database)
        proxy.cut = cut
        async with await store.acquire(LOCAL_IDENTITY, "s") as lease:
            await lease.commit(SessionSnapshot(saying("a")))
            async with opened(address) as other:
                with pytest.raises(SessionConflict):
                    await SqlSessionStore(other).acquire(LOCAL_IDENTITY, "s")
        assert proxy.cuts == 1


async def test_a_server_that_does_not_answer_is_told_and_nothing_is_lost(address: str) -> None:
    async with (
        PostgresProxy(address) as proxy,
        opened(proxy.address, command_seconds=0.3, pauses=()) as database,
    ):
        store = SqlSessionStore(database)
        lease = await store.acquire(LOCAL_IDENTITY, "s")
        await lease.commit(SessionSnapshot(saying("a")))
        proxy.cut = "silent"
        error = await refused(lambda: lease.commit(SessionSnapshot(saying("a", "b"))))
        assert error.code == "store_unavailable"
        proxy.end_all()
        proxy.mend()
        kept = await lease.commit(SessionSnapshot(saying("a", "b")))
        assert kept.history == saying("a", "b")
        assert (await lease.read()).history == saying("a", "b")
        await lease.release()


@pytest.mark.full
async def test_a_server_that_does_not_answer_is_not_waited_for_at_the_end(address: str) -> None:
    async with PostgresProxy(address) as proxy:
        database = await open_postgres(proxy.address)
        together = asyncio.Barrier(6)

        async def work(transaction: Transaction) -> None:
            await transaction.row("SELECT 1")
            await together.wait()

        await asyncio.gather(
            *(database.read(work) for _ in range(3)),
            *(database.write_at_once(work) for _ in range(3)),
        )
        proxy.cut = "gone"
        await asyncio.wait_for(database.aclose(), 15)
        proxy.end_all()


# The driver's own connection, of which only half is there.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_who_listens_hears_again_after_an_error_that_nobody_foresaw(address: str) -> None:
    async with PostgresProxy(address) as proxy, opened(proxy.address) as database:
        await asyncio.wait_for(database.listening.wait(), 10)
        told = asyncio.Event()
        stop = database.signals.listen("anything", lambda _: told.set())
        proxy.cut = "odd"
        proxy.end_all()
        await asyncio.wait_for(told.wait(), 10)
        assert proxy.cuts == 1
        stop()


async def test_who_listens_hears_again_after_the_connection_was_cut(address: str) -> None:
    async with PostgresProxy(address) as proxy, opened(proxy.address) as database:
        log = SqlEventLog(database, lambda: 1.0)
        await asyncio.wait_for(database.listening.wait(), 10)
        waiting = asyncio.ensure_future(log.wait("r", 0))
        await log.read("r")
        proxy.end_all()
        async with opened(address) as other:
            # Nobody listens at this moment.
            theirs = SqlEventLog(other, lambda: 1.0)
            theirs.append("r", [TextDelta("a", "m")])
            await theirs.flush("r")
            await asyncio.wait_for(waiting, 10)
            await theirs.aclose()
        await log.aclose()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("/harness_", "/nothing_"), "store_refused"),
        (("postgres:@", "nobody:secret@"), "store_refused"),
        (("postgresql://", "postgresql://[::x"), "store_refused"),
        (("host=", "host=/nowhere&x="), "store_unavailable"),
    ],
)
async def test_an_address_that_leads_nowhere_is_told_without_its_password(
    address: str, change: tuple[str, str], code: str
) -> None:
    wrong = address.replace(*change)
    error = await refused(lambda: open_postgres(wrong, pauses=()))
    assert error.code == code
    assert "secret" not in error.message + error.hint
    if code == "store_unavailable":
        assert error.message == "PostgreSQL cannot be reached at the start."
        assert "not known" not in error.hint


async def test_a_server_that_takes_no_more_connections_says_so_at_the_start(address: str) -> None:
    place, few = SqlPlace(address), f"few_{uuid.uuid4().hex}"
    await place.run(f"CREATE ROLE {few} LOGIN CONNECTION LIMIT 0")
    try:
        limited = address.replace("postgres:@", f"{few}:@")
        error = await refused(lambda: open_postgres(limited, pauses=()))
    finally:
        await place.run(f"DROP ROLE {few}")
    assert error.message == "The database takes no more connections."
    assert "max_connections" in error.hint


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_value_that_cannot_be_kept_is_no_connection_that_was_lost(
    address: str, at_once: bool
) -> None:
    async with opened(address) as database:
        write = database.write_at_once if at_once else database.write
        values = {"last": 2**70}
        error = await refused(
            lambda: write(lambda each: each.do("UPDATE harness_runs SET last = :last", values))
        )
        assert error.message == "A value cannot be kept in PostgreSQL."
        assert not error.transient


async def test_a_schema_of_a_later_version_is_refused() -> None:
    place = SqlPlace(await new_database())
    await (await place.open()).aclose()
    await place.run("INSERT INTO harness_schema VALUES (999, 1.0)")
    error = await refused(lambda: open_postgres(place.address))
    assert error.code == "from_the_future"


async def commits_go_on(address: str, count: int, harm: Callable[[], Awaitable[None]]) -> None:
    """Commits again and again, does harm in the middle of it, and expects every commit once."""
    async with opened(address, pauses=(0.0, *([0.1] * 300))) as database:
        store = SqlSessionStore(database, lease_seconds=120)
        lease = await store.acquire(LOCAL_IDENTITY, "s")
        messages: tuple[Message, ...] = ()
        acknowledged = asyncio.Event()

        async def commit_on() -> None:
            nonlocal messages
            for at in range(count):
                more = (*messages, Message(f"m{at}", "user", (TextBlock(str(at)),)))
                kept = await lease.commit(SessionSnapshot(more))
                assert kept.revision == at + 1
                messages = kept.history
                acknowledged.set()

        committing = asyncio.ensure_future(commit_on())
        await asyncio.wait_for(acknowledged.wait(), 10)
        await harm()
        await asyncio.wait_for(committing, 60)
        assert (await lease.read()).history == messages
        assert len(messages) == count
        await lease.release()


async def test_commits_go_on_when_the_server_ends_every_connection(address: str) -> None:
    place = SqlPlace(address)

    async def harm() -> None:
        for _ in range(5):
            await place.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    await commits_go_on(address, 60, harm)


@pytest.mark.full
async def test_commits_go_on_over_a_restart_and_none_that_was_acknowledged_is_lost() -> None:
    server = await asyncio.to_thread(new_server)
    address = await new_database(server)

    async def harm() -> None:
        for _ in range(3):
            await asyncio.to_thread(_restart_at_once, server)

    await commits_go_on(address, 2_000, harm)


def _restart_at_once(server: Any) -> None:
    """Without a clean end: it recovers from its log, as after a crash."""
    process = psutil.Process(server.get_pid())
    os.kill(process.pid, signal.SIGQUIT)
    process.wait(20)
    server.ensure_postgres_running()
