"""What a run shows of an outcome and what it writes down of it are handed over in one piece.

Otherwise a process that ends between the two leaves something shown of which nobody knows.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.harness.agent.lives import Lives, Person, World
from tests.harness.agent.test_resumed_inputs import Shop, lives_of
from web.harness.agent.agent import Agent
from web.harness.sessions.journal import Step
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.events import (
    EventBody,
    InputAnswered,
    RecoveryAnswered,
    RecoveryRequired,
    Resolution,
    ToolCallStart,
    ToolResult,
)

pytestmark = pytest.mark.anyio

OUTCOMES = (ToolCallStart, ToolResult, RecoveryRequired, RecoveryAnswered, InputAnswered)


def watched(lives: Lives) -> list[EventBody]:
    """Those that were shown while the event loop went on before a step was written."""
    torn: list[EventBody] = []

    def look(agent: Agent, entry: EventBody | Step) -> None:
        if not isinstance(entry, OUTCOMES):
            return
        written, at = lives.written, len(lives.written.entries)

        def next_turn() -> None:
            if not any("step" in each for each in written.entries[at:]):
                torn.append(entry)

        asyncio.get_running_loop().call_soon(next_turn)

    lives.before = look
    return torn


@pytest.mark.parametrize("policy", ["safe", "manual"])
async def test_a_result_is_shown_with_its_step(policy: ReplayPolicy) -> None:
    lives = Lives(World(policy))
    torn = watched(lives)
    result = await lives.live()
    assert result is not None
    assert result.status == "completed"
    assert len(lives.written.of(ToolResult)) == 3
    assert torn == []


@pytest.mark.parametrize("how", ["result", "retry", "abort"])
async def test_what_became_of_a_call_is_shown_with_its_step(how: Resolution) -> None:
    lives = Lives(World("manual"), person=Person(how=how))
    lives.ends_after("calls_started")
    assert await lives.live() is None
    torn = watched(lives)
    assert await lives.live() is not None
    assert [each.how for each in lives.written.of(RecoveryAnswered)] == [how]
    assert torn == []


async def test_a_result_by_hand_whose_step_was_the_last_is_shown_by_the_next_process() -> None:
    lives = Lives(World("manual"))
    lives.ends_after("calls_started")
    assert await lives.live() is None
    lives.ends_after("resolved")
    assert await lives.live() is None
    assert len(lives.written.of(ToolResult)) < 2
    torn = watched(lives)
    result = await lives.live()
    assert result is not None
    assert result.status == "completed"
    by_hand = [each for each in lives.written.of(ToolResult) if "by hand" in each.text]
    assert len(by_hand) == 1
    assert torn == []


@pytest.mark.parametrize("lasting", [True, False])
async def test_what_a_person_gave_is_shown_with_its_step(lasting: bool) -> None:
    lives = lives_of(Shop(lasting=lasting))
    torn = watched(lives)
    result = await lives.live()
    assert result is not None
    assert [each.action for each in lives.written.of(InputAnswered)] == ["accept", "accept"]
    assert torn == []


async def test_what_a_person_gave_to_the_next_process_is_shown_with_its_step() -> None:
    lives = lives_of(Shop())
    person, lives.person = lives.person, None
    lives.ends_after("input_asked")
    assert await lives.live() is None
    lives.person = person
    torn = watched(lives)
    assert await lives.live() is not None
    assert [each.action for each in lives.written.of(InputAnswered)] == ["accept", "accept"]
    assert torn == []
