"""What a tool asks a person for, over the end of its process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.agent.lives import Lives, Person
from tests.support.scripted_provider import calls, says
from tests.support.written_run import WrittenRun
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ReplayPolicy, Tool, ToolContext, ToolOutput
from web.harness.values.events import (
    InputAnswered,
    InputRequired,
    RecoveryRequired,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import JsonObject
from web.harness.values.model import ModelRequest

pytestmark = pytest.mark.anyio

FORM: JsonObject = {
    "mode": "form",
    "server": "shop",
    "message": "How many?",
    "schema": {"type": "object", "properties": {"count": {"type": "integer"}}},
}


def script(request: ModelRequest) -> list[Any]:
    if any(block.type == "tool_result" for block in request.messages[-1].content):
        return says("Ordered.")
    return calls(("order", {}))


class Shop:
    """A tool that asks twice; with `lasting`, both questions outlive its process."""

    def __init__(self, replay: ReplayPolicy = "manual", *, lasting: bool = True) -> None:
        self.replay: ReplayPolicy = replay
        self.lasting = lasting
        self.began: list[str] = []

    def tools(self, written: WrittenRun) -> ToolRegistry:
        async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
            counts: list[Any] = []
            if (continued := context.continued) is not None:
                content = continued.answer.content or {}
                counts = [*continued.state["counts"], content.get("count")]
            self.began.append(f"{context.call_id} from {len(counts)}")
            while len(counts) < 2:
                state = {"counts": list(counts)} if self.lasting else None
                answer = await context.ask(FORM, state=state)
                counts.append((answer.content or {}).get("count"))
            return ToolOutput.of(f"ordered {counts}")

        allowed = PermissionLevel.ALLOW
        return ToolRegistry(
            [Tool("order", "Orders.", {"type": "object"}, handle, allowed, replay=self.replay)]
        )


def lives_of(shop: Shop) -> Lives:
    return Lives(script=script, tools=shop.tools, person=Person(content={"count": 3}))


async def unanswered(shop: Shop, kind: Any = "input_asked", times: int = 1) -> Lives:
    """A run that ended while its first question was open."""
    lives = lives_of(shop)
    if kind == "input_asked" and times == 1:
        person, lives.person = lives.person, None
    else:
        person = lives.person
    lives.ends_after(kind, times)
    assert await lives.live() is None
    lives.person = person
    return lives


def told(lives: Lives) -> str:
    (result,) = lives.written.of(ToolResult)
    return result.text


def actions(lives: Lives) -> list[tuple[str, str]]:
    return [(each.key, each.action) for each in lives.written.of(InputAnswered)]


async def test_a_question_with_a_state_is_answered_in_the_next_process() -> None:
    shop = Shop()
    lives = await unanswered(shop)
    assert await lives.live() is not None
    assert told(lives) == "ordered [3, 3]"
    assert shop.began == ["r-1-0 from 0", "r-1-0 from 1"]
    asked = [each.key for each in lives.written.of(InputRequired)]
    assert asked == ["r-1-0-in1", "r-1-0-r2-in1"]
    assert actions(lives) == [(key, "accept") for key in asked]
    assert not lives.written.of(RecoveryRequired)
    assert len(lives.written.of(ToolCallStart)) == 2


async def test_the_second_question_of_a_call_goes_on_from_the_second_state() -> None:
    shop = Shop()
    lives = await unanswered(shop, times=2)
    assert await lives.live() is not None
    assert told(lives) == "ordered [3, 3]"
    assert shop.began[-1] == "r-1-0 from 2"


async def test_a_question_that_was_answered_leaves_a_manual_tool_uncertain() -> None:
    shop = Shop()
    lives = await unanswered(shop, "input_answered")
    assert isinstance(lives.person, Person)
    lives.person.how = "retry"
    assert await lives.live() is not None
    assert len(lives.written.of(RecoveryRequired)) == 1
    # Run again, it has the answer that was given.
    assert shop.began == ["r-1-0 from 0", "r-1-0 from 1"]
    assert told(lives) == "ordered [3, 3]"


async def test_an_answer_that_was_given_to_the_next_process_is_not_asked_for_again() -> None:
    shop = Shop("idempotent")
    lives = await unanswered(shop)
    lives.ends_after("input_answered")
    assert await lives.live() is None
    assert await lives.live() is not None
    assert told(lives) == "ordered [3, 3]"
    assert shop.began == ["r-1-0 from 0", "r-1-0 from 1"]


@pytest.mark.parametrize("replay", ["safe", "manual"])
async def test_a_question_without_a_state_ends_with_its_process(replay: ReplayPolicy) -> None:
    shop = Shop(replay, lasting=False)
    lives = await unanswered(shop)
    assert await lives.live() is not None
    assert actions(lives)[0] == ("r-1-0-in1", "withdrawn")
    assert len(lives.written.of(RecoveryRequired)) == (replay == "manual")
    if replay == "safe":
        assert told(lives) == "ordered [3, 3]"
        assert shop.began == ["r-1-0 from 0", "r-1-0 from 0"]


async def test_stopping_withdraws_a_question_that_outlived_its_process() -> None:
    lives = await unanswered(Shop())
    lives.person = None
    lives.before = stop_at("resumed")
    result = await lives.live()
    assert result is not None
    assert result.status == "cancelled"
    assert actions(lives) == [("r-1-0-in1", "withdrawn")]
    assert told(lives) == "Stopped by the person before it ended."


async def test_a_run_with_an_open_question_that_lasts_can_be_paused() -> None:
    shop = Shop()
    lives = lives_of(shop)
    person, lives.person = lives.person, None
    lives.before = pause_at("input_asked")
    assert await lives.live() is None
    assert lives.written.kinds[-1] == "paused"
    assert not actions(lives)
    lives.person, lives.before = person, lambda agent, entry: None
    assert await lives.live() is not None
    assert told(lives) == "ordered [3, 3]"


async def test_a_state_that_cannot_be_written_down_is_the_tools_own_error() -> None:
    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        await context.ask(FORM, state={"when": object()})
        return ToolOutput.of("asked")

    def tools(written: WrittenRun) -> ToolRegistry:
        allowed = PermissionLevel.ALLOW
        return ToolRegistry([Tool("order", "Orders.", {"type": "object"}, handle, allowed)])

    lives = Lives(script=script, tools=tools)
    result = await lives.live()
    assert result is not None
    assert result.text == "Ordered."
    assert "JSON" in told(lives)
    assert not lives.written.of(InputRequired)


def stop_at(kind: str) -> Callable[..., None]:
    return lambda agent, entry: agent.cancel() if getattr(entry, "kind", "") == kind else None


def pause_at(kind: str) -> Callable[..., None]:
    return lambda agent, entry: agent.pause() if getattr(entry, "kind", "") == kind else None
