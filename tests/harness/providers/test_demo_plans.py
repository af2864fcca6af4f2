"""The demo model works along a plan, and hands tasks to a sub-agent."""

from __future__ import annotations

import pytest

from web.harness.agent.agent import Agent
from web.harness.builtin.calculator import calculator_tool
from web.harness.builtin.plan import plan_tool
from web.harness.providers.demo.lengths import Lengths
from web.harness.providers.demo.planning import MOST_STEPS, planned_steps
from web.harness.providers.demo.provider import DemoProvider
from web.harness.subagents import delegate_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.values.events import EventBody, ToolResult, innermost
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio


async def bodies_of(message: str) -> list[EventBody]:
    tools = ToolRegistry([calculator_tool(), plan_tool(), delegate_tool()])
    async with (
        Agent(provider=DemoProvider(pace=0), tools=tools) as agent,
        agent.run_stream(message) as events,
    ):
        return [event.body async for event in events]


async def test_a_plan_is_shown_step_by_step_and_the_calls_of_its_steps_are_made() -> None:
    bodies = await bodies_of("plan: calculate 6*7; say it aloud; calculate 1+1")
    results = [body for body in bodies if isinstance(body, ToolResult)]
    assert [body.name for body in results] == [
        *("update_plan", "calculate", "update_plan", "update_plan", "calculate", "update_plan")
    ]
    plans = ["".join(step.status[0] for step in body.plan) for body in results if body.plan]
    assert plans == ["ipp", "cip", "cci", "ccc"]
    end = bodies[-1]
    assert "All 3 steps of the plan are done." in getattr(end, "text", "")
    assert "`42`" in getattr(end, "text", "")


@pytest.mark.parametrize(
    ("prompt", "steps"),
    [
        ("plan: a; b", ["a", "b"]),
        ("Please plan:\n1. read it.\n2. write it\n- check", ["read it", "write it", "check"]),
        ("Make a plan: go", ["go"]),
        ("plan a trip; to Rome", []),
        ("plan:", []),
        ("what is the plan: a?", []),
        (f"plan: {'x; ' * 100}", ["x"] * MOST_STEPS),
    ],
)
def test_a_plan_is_what_follows_the_word_and_a_colon(prompt: str, steps: list[str]) -> None:
    assert planned_steps(prompt) == steps


@pytest.mark.parametrize(
    "message", ["delegate: calculate 6*7", "Please ask a sub-agent to calculate 6*7"]
)
async def test_a_task_is_handed_to_a_sub_agent_in_plain_words(message: str) -> None:
    bodies = await bodies_of(message)
    results = [body for body in map(innermost, bodies) if isinstance(body, ToolResult)]
    assert [body.name for body in results] == ["calculate", "delegate"]
    assert results[1].text.startswith("`calculate` returned `42`")


async def test_what_it_can_do_is_told_where_there_are_the_tools_for_it() -> None:
    bodies = await bodies_of("help")
    assert "`plan: " in getattr(bodies[-1], "text", "")


def test_the_length_of_a_conversation_is_right_however_it_changes() -> None:
    lengths = Lengths()
    messages: tuple[Message, ...] = ()
    assert lengths(messages) == 0
    for number in range(100):
        messages = (*messages, Message(f"m{number}", "user", (TextBlock("x" * number),)))
        assert lengths(messages) == sum(range(number + 1))
    shorter = tuple(
        Message(message.id, "user", (TextBlock("y"),)) if number < 50 else message
        for number, message in enumerate(messages)
    )
    assert lengths(shorter) == 50 + sum(range(50, 100))
    assert lengths(shorter[50:]) == sum(range(50, 100))
    assert lengths(messages[:1]) == 0
