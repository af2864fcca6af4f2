"""A database of every earlier version opens, and what it held is there."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.postgres import new_database
from tests.support.stores import SqlPlace
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Record
from web.harness.sessions.sql.migrations import VERSION
from web.harness.values.events import RunResult, TextDelta
from web.harness.values.messages import ImageBlock, Message, TextBlock

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")
FROZEN = Path(__file__).parent / "frozen"
VERSIONS = range(1, VERSION + 1)


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=VERSIONS)
async def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
async def place(kind: str, version: int, tmp_path: Path) -> AsyncIterator[SqlPlace]:
    """A database as that version left it. A new schema needs a frozen one of its own."""
    dump = (FROZEN / f"{kind}-{version}.sql").read_text()
    if kind == "sqlite":
        path = tmp_path / "chats.sqlite3"
        with sqlite3.connect(path) as file:
            file.executescript(dump)
        file.close()
        address = f"sqlite:///{path}"
    else:
        address = await new_database()
        connection = await asyncpg.connect(address)
        await connection.execute(dump)
        await connection.close()
    place = SqlPlace(address)
    yield place
    for database in place.databases:
        await database.aclose()


async def test_a_database_of_that_version_opens_with_all_that_it_held(
    place: SqlPlace, version: int
) -> None:
    store = await place.sessions()
    assert await store.list(ANN) == ["s"]
    async with await store.acquire(ANN, "s") as lease:
        snapshot = await lease.read()
        user, assistant, tool = snapshot.history
        picture = user.content[1]
        assert isinstance(picture, ImageBlock)
        assert (user.text, picture.data) == ("hello 日", b"picture")
        assert assistant.tool_uses[0].arguments == {"x": [1]}
        assert tool.role == "tool"
        assert snapshot.conversations == {
            "sub": (Message("x", "user", (TextBlock("inner"),)),),
        }
        assert (snapshot.state, snapshot.revision, snapshot.replayable) == ({"n": 1}, 1, False)
        assert (await lease.commit(snapshot)).revision == 2

    log = await place.events()
    events = [event.body for event in (await log.read("r")).events]
    assert events == ([TextDelta("ab", "m"), RunResult("completed", "ab")] if version >= 2 else [])
    if version >= 2:
        assert (await log.read("r", 1)).events[0].body == TextDelta("b", "m")
    await log.aclose()

    records = await place.records()
    expected = [Record("s", 1.5, {"title": "Hello"})] if version >= 3 else []
    assert await records.list(ANN) == expected
    blobs = await place.blobs()
    kept = await blobs.get(ANN, "s", picture.sha256)
    assert (kept.data if kept else None) == (b"picture" if version >= 3 else None)


async def test_an_opened_database_has_the_tables_of_a_new_one(
    place: SqlPlace, kind: str, tmp_path: Path
) -> None:
    new = SqlPlace(
        f"sqlite:///{tmp_path / 'new.sqlite3'}" if kind == "sqlite" else await new_database()
    )
    await (await place.open()).aclose()
    await (await new.open()).aclose()
    statement = (
        "SELECT name, sql FROM sqlite_master ORDER BY name"
        if kind == "sqlite"
        else "SELECT table_name, column_name, data_type, is_nullable "
        "FROM information_schema.columns WHERE table_schema = 'public' "
        "ORDER BY table_name, column_name"
    )
    assert list(await place.run(statement)) == list(await new.run(statement))
