"""What goes wrong with a file is told in clear words, loses nothing, ends with its cause."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.steps import saying
from tests.support.stores import SqlPlace
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.opening import open_stores
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.database import Transaction
from web.harness.sessions.sql.engine import SLOW_SECONDS
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.sqlite import FILE_NAME, SqliteDatabase, open_sqlite
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.errors import ConfigurationError, StoreError
from web.harness.values.events import RunResult, TextDelta
from web.harness.values.messages import Message

pytestmark = pytest.mark.anyio

PAGE = 4_096


@asynccontextmanager
async def opened(path: Path, **options: object) -> AsyncIterator[SqlSessionStore]:
    database = await open_sqlite(path, **options)  # type: ignore[arg-type]
    try:
        yield SqlSessionStore(database)
    finally:
        await database.aclose()


async def commit(store: SqlSessionStore, *texts: str) -> None:
    async with await store.acquire(LOCAL_IDENTITY, "s") as lease:
        await lease.commit(SessionSnapshot(saying(*texts)))


async def read(store: SqlSessionStore) -> tuple[Message, ...]:
    async with await store.acquire(LOCAL_IDENTITY, "s") as lease:
        return (await lease.read()).history


async def refused(act: Callable[[], Awaitable[object]]) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await act()
    assert caught.value.message
    assert caught.value.hint
    return caught.value


async def test_a_full_disk_refuses_a_commit_and_takes_the_next_that_fits(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
    # Some pages for the lease itself, and not enough for the message.
    pages = path.stat().st_size // PAGE + 4
    async with opened(path, max_pages=pages) as store:
        lease = await store.acquire(LOCAL_IDENTITY, "s")
        before = await lease.read()
        error = await refused(
            lambda: lease.commit(SessionSnapshot((*before.history, *saying("x" * 200_000)[:1])))
        )
        assert error.code == "store_full"
        assert await lease.read() == before
        await lease.commit(SessionSnapshot(saying("kept", "small")))
        await lease.release()
        assert await read(store) == saying("kept", "small")
    async with opened(path) as store:
        await commit(store, "kept", "small", "x" * 200_000)
        assert len(await read(store)) == 3


async def test_events_wait_while_the_disk_is_full_and_lose_neither_order_nor_number(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chats.sqlite3"
    database = await open_sqlite(path, max_pages=90)
    log = SqlEventLog(database, lambda: 1.0)
    log.append("large", [TextDelta("x" * 150_000, "m")])
    log.append("r", [TextDelta("a", "m")])
    await log.flush("r")
    log.append("r", [TextDelta("x" * 150_000, "m")])
    error = await refused(lambda: log.flush("r"))
    assert error.code == "store_full"
    assert log.failure is error
    assert [event.number for event in (await log.read("r")).events] == [1]
    log.append("r", [RunResult("completed", "")])
    await log.forget("large")  # There is room again.
    await log.flush("r")
    assert [event.number for event in (await log.read("r")).events] == [1, 2, 3]
    assert log.failure is None
    await log.aclose()
    await database.aclose()


async def test_a_locked_database_is_told_and_works_when_it_is_unlocked(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path, busy_seconds=0.05) as store:
        await commit(store, "kept")
        lease = await store.acquire(LOCAL_IDENTITY, "s")
        async with SqlPlace(f"sqlite:///{path}").locked():
            error = await refused(lambda: lease.commit(SessionSnapshot(saying("kept", "more"))))
            assert error.code == "store_locked"
            # Reading goes on meanwhile.
            assert (await lease.read()).history == saying("kept")
        await lease.commit(SessionSnapshot(saying("kept", "more")))
        await lease.release()
        assert await read(store) == saying("kept", "more")


async def test_another_program_gets_the_database_when_a_transaction_ends_that_awaits(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chats.sqlite3"
    database = await open_sqlite(path)
    begun, wanted = asyncio.Event(), asyncio.Event()

    async def awaits(transaction: Transaction) -> None:
        await transaction.do("UPDATE harness_leases SET expires_at = 0")
        begun.set()
        await wanted.wait()

    async def other_program() -> None:
        await begun.wait()
        asyncio.get_running_loop().call_later(0.05, wanted.set)
        async with SqlPlace(f"sqlite:///{path}").locked():
            assert wanted.is_set()

    try:
        async with asyncio.timeout(3), asyncio.TaskGroup() as tasks:
            tasks.create_task(database.write(awaits))
            tasks.create_task(other_program())
    finally:
        await database.aclose()


async def test_a_session_whose_release_could_not_be_written_is_free_for_its_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path, busy_seconds=0.05) as store:
        lease = await store.acquire(LOCAL_IDENTITY, "s")
        await lease.commit(SessionSnapshot(saying("kept")))
        async with SqlPlace(f"sqlite:///{path}").locked():
            await lease.release()
        assert await read(store) == saying("kept")


async def test_a_file_that_can_only_be_read_lists_its_sessions_and_refuses_the_rest(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
    stores = await open_stores(f"sqlite:///{path}?mode=ro", now=lambda: 1.0)
    try:
        assert await stores.sessions.list(LOCAL_IDENTITY) == ["s"]
        error = await refused(lambda: stores.sessions.acquire(LOCAL_IDENTITY, "s"))
        assert error.code == "store_read_only"
    finally:
        await stores.aclose()
    async with opened(path) as store:
        assert await read(store) == saying("kept")


async def test_a_file_that_could_only_be_read_is_written_once_it_may_be(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
    # SQLite wants a file of this name to write, and to read where others do.
    in_the_way = path.with_name(f"{path.name}-shm")
    in_the_way.mkdir()
    async with opened(path, busy_seconds=0.05) as store:
        database = store._database
        assert isinstance(database, SqliteDatabase)
        assert (await refused(lambda: commit(store, "kept", "more"))).code == "store_read_only"
        await database.look()
        assert database.failure is not None
        assert (await store.peek(LOCAL_IDENTITY, "s")).history == saying("kept")
        in_the_way.rmdir()
        await database.look()
        assert database.failure is None
        await commit(store, "kept", "more")
        assert await read(store) == saying("kept", "more")
    async with opened(path) as store:
        assert await read(store) == saying("kept", "more")


async def test_a_file_that_was_asked_to_be_read_only_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
    async with opened(path, read_only=True) as store:
        database = store._database
        assert isinstance(database, SqliteDatabase)
        await database.look()
        assert (await refused(lambda: commit(store, "more"))).code == "store_read_only"


async def test_what_is_too_large_for_a_full_disk_is_in_no_other_runs_way(tmp_path: Path) -> None:
    database = await open_sqlite(tmp_path / "chats.sqlite3", max_pages=90)
    log = SqlEventLog(database, lambda: 1.0)
    log.append("filler", [TextDelta("x" * 150_000, "m")])
    await log.flush("filler")
    # One batch: of the run with the large one, what came before it is written, too.
    log.append("large", [TextDelta("a", "m"), TextDelta("x" * 150_000, "m"), TextDelta("c", "m")])
    log.append("small", [TextDelta("b", "m")])
    log.append("small", [RunResult("completed", "")])
    await log.flush("small")
    assert [event.number for event in (await log.read("small")).events] == [1, 2]
    assert (await refused(lambda: log.flush("large"))).code == "store_full"
    assert [event.number for event in (await log.read("large")).events] == [1]
    assert log.failure is not None
    # Whoever waits for what is written already, or comes next, is not told of the large one.
    await log.flush("small")
    log.append("next", [TextDelta("d", "m")])
    await log.flush("next")
    await log.forget("filler")
    await log.flush("large")
    assert [event.number for event in (await log.read("large")).events] == [1, 2, 3]
    assert log.failure is None
    await log.aclose()
    await database.aclose()


async def test_a_schema_of_a_later_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
    other = sqlite3.connect(path)
    with other:
        other.execute("INSERT INTO harness_schema VALUES (999, 1.0)")
    before = list(other.iterdump())
    error = await refused(lambda: open_sqlite(path))
    assert error.code == "from_the_future"
    assert "999" in error.message
    assert list(other.iterdump()) == before
    with other:
        other.execute("DELETE FROM harness_schema WHERE version = 999")
    other.close()
    async with opened(path) as store:
        assert await read(store) == saying("kept")


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    path.write_bytes(b"no database at all, " * 500)
    error = await refused(lambda: open_sqlite(path))
    assert error.code == "store_corrupt"
    assert path.read_bytes() == b"no database at all, " * 500


async def test_a_damaged_page_costs_the_sessions_in_it_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, *("x" * 3_000 for _ in range(40)))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    pages = path.stat().st_size // PAGE
    damaged = bytearray(path.read_bytes())
    damaged[(pages - 10) * PAGE : (pages - 2) * PAGE] = b"\xff" * PAGE * 8
    path.write_bytes(damaged)
    async with opened(path) as store:
        error = await refused(lambda: read(store))
        assert error.code == "store_corrupt"
        assert await store.list(LOCAL_IDENTITY) == ["s"]


async def test_a_row_that_is_no_message_is_told_and_costs_no_other_session(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
        async with await store.acquire(LOCAL_IDENTITY, "other") as lease:
            await lease.commit(SessionSnapshot(saying("other")))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE harness_messages SET body = '{\"v\": 1' WHERE session = 1")
    connection.close()
    async with opened(path) as store:
        error = await refused(lambda: read(store))
        assert error.code == "store_corrupt"
        async with await store.acquire(LOCAL_IDENTITY, "other") as lease:
            assert (await lease.read()).history == saying("other")


async def test_a_message_of_a_later_version_says_so(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
    with sqlite3.connect(path) as connection:
        connection.execute('UPDATE harness_messages SET body = \'{"v": 9, "id": "x"}\'')
    connection.close()
    async with opened(path) as store:
        assert (await refused(lambda: read(store))).code == "from_the_future"


async def test_a_path_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    error = await refused(lambda: open_sqlite(tmp_path / "file" / "chats.sqlite3"))
    assert error.code == "store_unavailable"
    assert "file" in error.message


async def test_a_folder_is_made_and_its_file_is_for_this_user_alone(tmp_path: Path) -> None:
    stores = await open_stores(f"sqlite:///{tmp_path / 'deep' / 'chats'}", now=lambda: 1.0)
    await stores.aclose()
    file = tmp_path / "deep" / "chats" / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_name_with_odd_characters_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a b#ä%41?.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
    assert path.stat().st_size > 0
    async with opened(path) as store:
        assert await read(store) == saying("kept")


@pytest.mark.parametrize(
    "address",
    [
        *("", "sqlite://x", "sqlite:///", "mysql://user:secret@host/x", "postgresql"),
        *(f"sqlite:///x{end}" for end in ("?y=1", "?mode=", "#y", "?mode=ro#y")),
    ],
)
async def test_another_address_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await open_stores(address, now=lambda: 1.0)
    assert "secret" not in caught.value.message + caught.value.hint
    assert "postgresql://" in caught.value.hint


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    stores = await open_stores(f"sqlite:///{tmp_path / 'chats'}", now=lambda: 1.0)
    await stores.aclose()
    with pytest.raises(StoreError) as caught:
        await stores.sessions.acquire(LOCAL_IDENTITY, "s")
    assert caught.value.code == "store_closed"


async def test_a_file_that_was_moved_away_takes_nothing_until_it_is_back(tmp_path: Path) -> None:
    path, away = tmp_path / "chats.sqlite3", tmp_path / "away.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
        path.rename(away)
        error = await refused(lambda: commit(store, "kept", "more"))
        assert error.code == "store_unavailable"
        assert "moved or deleted" in error.message
        assert not path.exists()
        away.rename(path)
        await commit(store, "kept", "more")
    async with opened(path) as store:
        assert await read(store) == saying("kept", "more")


async def test_a_file_whose_log_was_deleted_takes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    async with opened(path) as store:
        await commit(store, "kept")
        path.with_name(f"{path.name}-wal").unlink()
        error = await refused(lambda: commit(store, "kept", "more"))
        assert error.code == "store_unavailable"


async def test_a_file_that_was_replaced_by_another_takes_nothing_and_a_copy_of_it_goes_on(
    tmp_path: Path,
) -> None:
    path, away, other = (tmp_path / f"{name}.sqlite3" for name in ("chats", "away", "other"))
    for each, text in ((path, "kept"), (other, "another")):
        async with opened(each) as store:
            await commit(store, text)
    async with opened(path) as store:
        database = store._database
        assert isinstance(database, SqliteDatabase)
        path.rename(away)
        other.rename(path)
        before = path.read_bytes()
        await database.look()
        assert database.failure is not None
        error = await refused(lambda: commit(store, "kept", "more"))
        assert "replaced by another" in error.message
        assert path.read_bytes() == before
        path.unlink()
        shutil.copy(away, path)
        await database.look()
        assert database.failure is None
        await commit(store, "kept", "more")
    async with opened(path) as store:
        assert await read(store) == saying("kept", "more")


async def test_a_write_that_takes_long_is_told_of_while_it_waits(tmp_path: Path) -> None:
    database = await open_sqlite(tmp_path / "chats.sqlite3")
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def work(transaction: object) -> None:
        begun.set()
        await go_on.wait()

    writing = asyncio.ensure_future(database.write(work))
    await asyncio.wait_for(begun.wait(), 5)
    assert database.failure is None
    for mark in database._writing:
        database._writing[mark] -= SLOW_SECONDS
    assert database.failure is not None
    assert database.failure.code == "store_busy"
    go_on.set()
    await writing
    assert database.failure is None
    await database.aclose()
