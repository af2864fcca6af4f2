"""How steps are written with the events of all runs: once, in order, and not too often."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

import pytest

from tests.support.steps import STATE, message, round_of_calls, state, submission
from tests.support.stores import SqlPlace
from web.harness.sessions.journal import Executions, Step
from web.harness.sessions.opening import Stores
from web.harness.sessions.sql.batches import (
    Entry,
    Fence,
    Item,
    Part,
    StepPiece,
    Written,
    make_texts,
    parts_of,
    step_piece,
    write_batch,
)
from web.harness.sessions.sql.database import Database
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.event_rows import Piece, piece_of
from web.harness.sessions.sql.executions import SqlExecutions
from web.harness.sessions.sql.pace import BURST, Pace
from web.harness.values.errors import StoreError
from web.harness.values.events import EventBody, RunResult, TextDelta
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import Message, TextBlock, ThinkingBlock

pytestmark = pytest.mark.anyio

END = RunResult("completed", "")


def parts(stores: Stores) -> tuple[Database, Executions]:
    assert stores.database is not None
    assert stores.executions is not None
    return stores.database, stores.executions


def event(text: str) -> Piece:
    return piece_of(1.0, TextDelta(text, "m"))


def step(at: int = 0) -> StepPiece:
    return step_piece(1.0, Step("model_call", about={"at": at}), state(at))


def batch(**runs: Part) -> dict[str, Part]:
    make_texts(runs, joined=False)
    return runs


async def begun(executions: Executions, *run_ids: str) -> None:
    for run_id in run_ids:
        await executions.submit(submission(run_id, run_id))
        await executions.begin(run_id)


async def write(database: Database, runs: dict[str, Part], token: str = "token") -> Written:
    return await database.write(lambda each: write_batch(each, database, runs, token))


async def test_steps_whose_commit_was_not_heard_of_are_not_written_twice(here: Stores) -> None:
    database, executions = parts(here)
    await begun(executions, "r", "s")
    runs = batch(
        r=Part(Fence(1), [event("a"), step(1), event("b")]),
        s=Part(Fence(1), [step(2), step(3)]),
        lost=Part(Fence(1), [event("x")]),
        plain=Part(None, [event("c")]),
    )
    for _ in range(2):
        written = await write(database, runs)
        assert written == Written({"plain": 1, "r": 1, "s": 1}, frozenset({"lost"}))
    assert [each.number for each in (await here.events.read("r")).events] == [1, 2]
    assert [each.cursor for each in await executions.steps("r")] == [1]
    assert [each.number for each in await executions.steps("s")] == [1, 2]
    found = await executions.find("s")
    assert found is not None
    assert (found.steps, found.state) == (2, state(3))


async def test_a_commit_that_was_not_heard_of_before_another_went_on_counts_as_lost(
    here: Stores,
) -> None:
    database, executions = parts(here)
    await begun(executions, "r", "s")
    runs = batch(r=Part(Fence(1), [event("a"), step(1)]), s=Part(Fence(1), [step(1)]))
    await write(database, runs)
    await executions.begin("r")
    await write(database, batch(r=Part(Fence(2), [event("b"), step(2)])), "another")
    written = await write(database, runs)
    assert written == Written({"s": 1}, frozenset({"r"}))
    assert [each.cursor for each in await executions.steps("r")] == [1, 2]
    assert len(await executions.steps("s")) == 1


def test_a_batch_ends_before_the_same_run_under_another_fence() -> None:
    old, new = Fence(1), Fence(2)
    queue = deque(
        [
            Entry(1, "r", event("a"), old),
            Entry(2, "s", event("b"), None),
            Entry(3, "r", step(), new),
            Entry(4, "s", event("c"), None),
        ]
    )
    runs, upto = parts_of(queue, 10)
    assert (upto, list(runs), runs["r"].fence) == (2, ["r", "s"], old)
    queue.popleft()
    runs, upto = parts_of(queue, 2)
    assert (upto, list(runs), runs["r"].fence) == (3, ["s", "r"], new)


def test_a_batch_does_not_part_an_event_from_its_step() -> None:
    fence = Fence(1)
    items: list[Item] = [event("a"), event("b"), step(), step(), event("c")]
    queue = [Entry(at, "r", each, fence) for at, each in enumerate(items, 1)]
    assert [parts_of(queue, size)[1] for size in (1, 2, 3, 4)] == [1, 3, 4, 4]


@pytest.mark.parametrize("characters", [1, 100_000])
def test_a_step_that_cannot_be_written_is_refused_when_it_is_handed_over(characters: int) -> None:
    odd = ThinkingBlock("x" * characters, math.nan)  # type: ignore[arg-type]
    made = Step("answered", messages=(Message("m", "assistant", (odd, TextBlock("a"))),))
    with pytest.raises(NotSerialisable):
        step_piece(1.0, made, STATE)


def test_events_after_the_end_are_left_out_and_steps_are_not() -> None:
    fence = Fence(1)
    items: list[Item] = [event("a"), piece_of(1.0, END), event("late"), step()]
    runs, upto = parts_of([Entry(at, "r", each, fence) for at, each in enumerate(items, 1)], 10)
    assert (upto, runs["r"].items) == (4, [items[0], items[1], items[3]])
    fence.ended = True
    runs, upto = parts_of([Entry(1, "r", event("later"), fence)], 10)
    assert (upto, runs) == (1, {})


def test_deltas_are_joined_where_the_database_falls_behind_but_not_across_a_step() -> None:
    part = Part(None, [event("a"), event("b"), step(), event("c"), event("d")])
    make_texts({"r": part}, joined=True)
    bodies: list[EventBody] = [each.body for each in part.pieces]
    assert bodies == [TextDelta("ab", "m"), TextDelta("cd", "m")]
    assert isinstance(part.items[1], StepPiece)


async def test_what_is_not_needed_to_go_on_is_not_read(place: SqlPlace, here: Stores) -> None:
    _, executions = parts(here)
    await executions.submit(submission())
    _, journal = await executions.begin("r")
    steps = [
        Step("begun", messages=(message("u"),)),
        *round_of_calls(1),
        Step("condensed", replaced=(message("sum"),)),
        *round_of_calls(2),
        *round_of_calls(3),
    ]
    for each in steps:
        journal.write(each, STATE)
    await journal.settled()
    whole = await executions.recorded("r")
    # Neither what came before the conversation was made shorter, nor what is about earlier answers.
    await place.run("UPDATE harness_steps SET added = 'broken' WHERE number < 6")
    await place.run("UPDATE harness_steps SET body = 'broken' WHERE number < 12")
    assert whole is not None
    assert await executions.recorded("r") == whole
    assert [each.id for each in whole.messages] == ["a2", "t2", "a3", "t3"]
    # For its calls alone, nothing of what was said before the newest answer.
    await place.run("UPDATE harness_steps SET added = 'broken' WHERE number < 12")
    newest = await executions.recorded("r", newest=True)
    assert newest is not None
    assert (newest.state, newest.calls) == (whole.state, whole.calls)
    assert [each.id for each in newest.messages] == ["a3", "t3"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("harness_steps SET body = 'broken'", "store_corrupt"),
        ("harness_steps SET added = '{\"messages\":1}'", "store_corrupt"),
        ("harness_steps SET body = '{\"v\":2}'", "from_the_future"),
        ("harness_executions SET state = '{}'", "store_corrupt"),
        ("harness_executions SET state = '{\"v\":2}'", "from_the_future"),
    ],
)
async def test_what_cannot_be_read_is_told_and_left_as_it_is(
    place: SqlPlace, here: Stores, change: str, code: str
) -> None:
    _, executions = parts(here)
    await executions.submit(submission())
    _, journal = await executions.begin("r")
    journal.write(round_of_calls(1)[1], STATE)
    await journal.settled()
    await place.run(f"UPDATE {change}")
    with pytest.raises(StoreError) as refused:
        await executions.recorded("r")
    assert refused.value.code == code
    assert "left as it is" in refused.value.hint


def test_a_burst_goes_at_once_and_then_one_in_each_interval() -> None:
    now = 100.0
    pace = Pace(0.05, lambda: now)
    assert [pace.next_in() for _ in range(BURST)] == [0.0] * BURST
    for _ in range(40):
        wait = pace.next_in()
        assert wait == pytest.approx(0.05)
        now += wait
    now += 10
    assert [pace.next_in() for _ in range(BURST)] == [0.0] * BURST
    assert pace.next_in() > 0


def test_a_pace_of_no_interval_lets_all_through() -> None:
    pace = Pace(0.0)
    assert {pace.next_in() for _ in range(1_000)} == {0.0}


async def test_who_waits_for_a_commit_does_not_wait_for_the_interval(place: SqlPlace) -> None:
    database = await place.open()
    log = SqlEventLog(database, lambda: 1.0, interval=60)
    executions = SqlExecutions(database, log)
    await executions.submit(submission())
    _, journal = await executions.begin("r")
    async with asyncio.timeout(30):
        for at in range(10):
            journal.write(Step("model_call"), state(at))
            await journal.settled()
    assert log.batches == 10
    await log.aclose()


@pytest.mark.full
async def test_a_hundred_runs_that_wait_for_each_step_share_some_twenty_transactions_a_second(
    here: Stores,
) -> None:
    _, executions = parts(here)

    async def run(run_id: str, until: float) -> None:
        await executions.submit(submission(run_id, run_id))
        _, journal = await executions.begin(run_id)
        while time.monotonic() < until:
            journal.write(Step("model_call"), STATE)
            await journal.settled()

    began = time.monotonic()
    await asyncio.gather(*(run(f"r{at}", began + 4.0) for at in range(100)))
    seconds = time.monotonic() - began
    assert isinstance(here.events, SqlEventLog)
    assert here.events.batches <= BURST + 20 * seconds + 5


@pytest.mark.full
async def test_a_run_of_ten_thousand_steps_is_read_in_under_a_second(here: Stores) -> None:
    _, executions = parts(here)
    await executions.submit(submission())
    _, journal = await executions.begin("r")
    for at in range(2_500):
        for each in round_of_calls(at):
            journal.write(each, STATE)
    await journal.settled()
    began = time.process_time()  # Others may have the processors too.
    recorded = await executions.recorded("r")
    took = time.process_time() - began
    assert recorded is not None
    assert len(recorded.messages) == 5_000
    assert took < 1.0
