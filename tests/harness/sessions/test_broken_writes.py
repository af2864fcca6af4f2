"""What no database takes, and what nobody foresaw, is told, and stops nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.sqlite import open_sqlite
from web.harness.values.errors import StoreError
from web.harness.values.events import TextDelta

pytestmark = pytest.mark.anyio


async def test_an_error_of_no_store_is_told_and_the_runs_of_others_are_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # A moment that the driver refuses with an error of its own kind.
    now: list[float] = [2**70]
    database = await open_sqlite(tmp_path / "chats.sqlite3")
    log = SqlEventLog(database, lambda: now[0])
    async with asyncio.timeout(10):
        log.append("odd", [TextDelta("a", "m")])
        now[0] = 1.0
        log.append("other", [TextDelta("b", "m")])
        await log.flush("other")
        with pytest.raises(StoreError) as told:
            await log.flush("odd")
        assert told.value.code == "store_failed"
        assert log.failure is told.value
        assert "OverflowError" in caplog.text
        log.append("next", [TextDelta("c", "m")])
        await log.flush("next")
        await log.forget("odd")
        log.append("next", [TextDelta("d", "m")])
        await log.flush("next")
        assert log.failure is None
        assert [event.number for event in (await log.read("next")).events] == [1, 2]
        await log.aclose()
    await database.aclose()
