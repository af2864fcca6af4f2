"""A server that dies or is stopped while it writes runs down: what is left, who goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.session_processes import SessionWriter
from tests.support.steps import STATE, runs_of
from tests.support.stores import SqlPlace
from web.harness.sessions.opening import Stores
from web.harness.values.events import TextDelta

pytestmark = pytest.mark.anyio

WRITER = "tests.support.journal_writer"


async def check_whole(stores: Stores, run_id: str = "r") -> int:
    """Numbers without gaps, each thing once, and the state that belongs to the last step."""
    events = (await stores.events.read(run_id, limit=100_000)).events
    steps = await runs_of(stores).steps(run_id, limit=100_000)
    found = await runs_of(stores).find(run_id)
    assert found is not None
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert found.steps == len(steps)
    if run_id == "r":
        assert [event.body for event in events] == [
            TextDelta(f"{at} ", "m") for at in range(len(events))
        ]
        # A step is there with the two events before it, or not at all.
        assert [step.cursor for step in steps] == [2 * step.number for step in steps]
        assert len(events) == 2 * len(steps)
        state = replace(STATE, iterations=len(steps))
    else:
        assert [step.cursor for step in steps] == [step.number for step in steps]
        state = STATE
    assert found.state == (state if steps else None)
    return len(steps)


async def kill_while_it_writes(place: SqlPlace, kills: int, settled: int) -> None:
    stores = await place.backend()
    acknowledged = 0
    for kill in range(1, kills + 1):
        async with SessionWriter(place.address, 1, WRITER) as writer:
            begun, fence, steps = (await writer.ask("begin")).split()
            assert (begun, int(fence)) == ("begun", kill)
            assert int(steps) >= acknowledged
            writer.say("run")
            said = [await writer.answer() for _ in range(settled)]
            said += await writer.kill()
        # A last line may be cut off where the process ended.
        acknowledged = int(next(line for line in reversed(said[:-1]) if line)[8:])
        assert await check_whole(stores) >= acknowledged
        for at in range(10):
            await check_whole(stores, f"r{at}")


async def test_a_server_that_is_killed_while_it_writes_runs_down_loses_nothing_that_was_settled(
    place: SqlPlace,
) -> None:
    await kill_while_it_writes(place, kills=1, settled=15)


@pytest.mark.full
async def test_many_kills_leave_no_gap_and_nothing_twice(place: SqlPlace) -> None:
    await kill_while_it_writes(place, kills=20, settled=40)


async def test_a_stopped_server_that_wakes_late_writes_neither_events_nor_steps(
    place: SqlPlace,
) -> None:
    stores = await place.backend()
    async with SessionWriter(place.address, 1, WRITER) as writer:
        assert await writer.ask("begin") == "begun 1 0"
        assert await writer.ask("write") == "settled"
        writer.stop()
        writer.say("write")
        execution, journal = await runs_of(stores).begin("r")
        assert (execution.fence, execution.steps) == (2, 1)
        writer.go_on()
        assert await writer.answer() == "lease_lost"
        assert await check_whole(stores) == 1
        # It may go on with the run, as anybody may; then nobody else does.
        assert await writer.ask("begin") == "begun 3 1"
        assert await writer.ask("write") == "settled"
        assert await check_whole(stores) == 2
    await journal.settled()
