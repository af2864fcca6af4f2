"""What a long run leaves behind is written while the event loop goes on."""

from __future__ import annotations

import pytest

from tests.support.loop_holds import loop_holds
from tests.support.steps import ANN, runs_of, submission
from tests.support.stores import SqlPlace
from web.harness.sessions.opening import Stores
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.events import (
    EventBody,
    RunResult,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock

pytestmark = [pytest.mark.anyio, pytest.mark.full]

ROUNDS = 10_000

DOUBLED = 11
"""So often the runs that have not ended."""

MOST_SECONDS = 0.05
"""Of the CPU of this machine; it was three to five times as much."""


def messages() -> tuple[Message, ...]:
    made: list[Message] = []
    for at in range(ROUNDS):
        use = ToolUseBlock(f"c{at}", "look", {"number": at, "list": [at, {"a": at}]})
        answer = Message(f"a{at}", "assistant", (TextBlock("I look."), use), f"t{at - 1}")
        result = ToolResultBlock(use.id, (TextBlock("found " * 30),))
        made += answer, Message(f"t{at}", "tool", (result,), answer.id)
    return tuple(made)


def events(at: int) -> list[EventBody]:
    told = [TextDelta(word, f"a{at}") for word in ("I ", "look.")]
    return [
        *told,
        ToolCallDelta(f"c{at}", "look", "{}", f"a{at}"),
        ToolCallStart(f"c{at}", "look", {}, f"a{at}"),
        ToolResult(f"c{at}", "look", "x"),
    ]


async def test_a_session_of_a_long_run_is_committed(place: SqlPlace) -> None:
    snapshot = SessionSnapshot(messages())
    store = await place.sessions()
    async with await store.acquire(ANN, "s") as lease:
        async with loop_holds() as holds:
            await lease.commit(snapshot)
        assert len((await lease.read()).history) == 2 * ROUNDS
    assert holds.longest < MOST_SECONDS


async def test_the_events_of_a_long_run_are_joined_and_folded(place: SqlPlace) -> None:
    log = await place.events()
    for at in range(ROUNDS // 2):
        log.append("r", events(at))
        if at % 100 == 0:
            await log.flush("r")
    log.append("r", [RunResult("completed", "")])
    await log.flush("r")
    async with loop_holds() as holds:
        await log.close("r")
        await log.fold("r")
    kept = (await log.read("r", limit=50_000)).events
    texts = [each.body.text for each in kept if isinstance(each.body, TextDelta)]
    assert len(texts) <= ROUNDS // 2 + 5
    assert "".join(texts) == "I look." * (ROUNDS // 2)
    assert len([each for each in kept if isinstance(each.body, ToolResult)]) == ROUNDS // 2
    assert not [each for each in kept if isinstance(each.body, ToolCallDelta)]
    for after in (4_999, 5_000, 5_001):
        (first, *_) = (await log.read("r", after, limit=1)).events
        assert first.number > after
    assert holds.longest < MOST_SECONDS


async def test_many_runs_that_have_not_ended_are_found(place: SqlPlace, here: Stores) -> None:
    runs = runs_of(here)
    await runs.submit(submission())
    for at in range(DOUBLED):
        await place.run(
            f"INSERT INTO harness_executions SELECT run_id || '{at}', tenant_id, user_id, "
            f"session_id, request_id || '{at}', digest, body, status, fence, state, steps, "
            "replaced, answered, result_status, created_at, changed_at FROM harness_executions"
        )
    async with loop_holds() as holds:
        found = await runs.unfinished()
    assert len(found) == 2**DOUBLED
    assert holds.longest < MOST_SECONDS
