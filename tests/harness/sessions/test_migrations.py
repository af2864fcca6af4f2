"""A database of every earlier version opens, and what it held is there."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.postgres import new_database
from tests.support.steps import round_of_calls, state, submission
from tests.support.stores import SqlPlace
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import GivenAnswer
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
    await place.close()


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


async def test_the_runs_of_a_database_are_there_and_can_be_gone_on_with(
    place: SqlPlace, version: int
) -> None:
    executions = (await place.backend()).executions
    assert executions is not None
    if version >= 4:
        (listed,) = await executions.unfinished(ANN, "s")
        assert listed.submission.run_id == "going"
        going = await executions.find("going")
        assert going is not None
        assert (going.submission, going.state) == (submission("going", "q"), state(4))
        written = [each.step for each in await executions.steps("going")]
        assert written[1:] == list(round_of_calls(1))
        assert await executions.answers("going") == [
            GivenAnswer("decision", "k", {"decision": "allow"})
        ]
        recorded = await executions.recorded("going")
        assert recorded is not None
        assert [each.id for each in recorded.messages] == ["u", "a1", "t1"]
        ended = await executions.find("ended")
        assert ended is not None
        assert (ended.status, ended.result_status) == ("ended", "completed")
    else:
        assert await executions.unfinished() == []
    await executions.submit(submission("new", "new"))
    _, journal = await executions.begin("new")
    journal.write(round_of_calls(1)[0], state(0))
    await journal.settled()
    assert len(await executions.steps("new")) == 1


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
