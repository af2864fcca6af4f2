"""Many runs are read at once: each is whole, or it is left to be read by itself."""

from __future__ import annotations

import pytest

from tests.support.stores import SqlPlace
from web.harness.sessions.sql.event_log import WHOLE_ROWS
from web.harness.values.events import EventBody, Note, RunResult, TextDelta

pytestmark = pytest.mark.anyio


async def test_runs_that_are_read_at_once_are_as_each_by_itself(place: SqlPlace) -> None:
    log = await place.events()
    runs = [f"r{number}" for number in range(9)]
    for run in runs:
        bodies: list[EventBody] = [TextDelta("a", "m"), TextDelta("b", "m")]
        log.append(run, [*bodies, RunResult("completed", run)])
        await log.flush(run)
    await log.close("r3")
    found = await log.read_whole([*runs, "unknown"])
    assert sorted(found) == runs
    for run in runs:
        assert found[run] == list((await log.read(run)).events)


async def test_a_run_that_is_too_long_to_be_read_with_others_is_left_out(place: SqlPlace) -> None:
    log = await place.events()
    log.append("a", [RunResult("completed", "")])
    notes = [Note(f"note {number}") for number in range(WHOLE_ROWS)]
    log.append("b", [*notes, RunResult("completed", "")])
    log.append("c", [RunResult("completed", "")])
    for run in "abc":
        await log.flush(run)
    assert list(await log.read_whole(["a", "b", "c"])) == ["a"]
    assert list(await log.read_whole(["b"])) == []
