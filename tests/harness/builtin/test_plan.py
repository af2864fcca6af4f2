"""The tool `update_plan`."""

from __future__ import annotations

from typing import Any

import pytest

from web.harness.builtin.plan import MAX_STEP_CHARS, MAX_STEPS, plan_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ToolContext, ToolOutput
from web.harness.values.events import PlanStep

pytestmark = pytest.mark.anyio


async def update(steps: Any) -> ToolOutput:
    tools = ToolRegistry([plan_tool()])
    return await tools.run("update_plan", {"steps": steps}, ToolContext("c"), None, 60_000)


async def test_a_plan_is_in_the_output_and_its_words_say_how_far_it_is() -> None:
    output = await update(
        [
            {"text": "read", "status": "completed"},
            {"text": "add  up\nall of it", "status": "in_progress"},
            {"text": "write"},
        ]
    )
    assert output.plan == (
        PlanStep("read", "completed"),
        PlanStep("add up all of it", "in_progress"),
        PlanStep("write", "pending"),
    )
    assert output.text == "The plan is shown: 1 of 3 steps are done. Now: add up all of it."


async def test_a_plan_that_is_done_says_so() -> None:
    output = await update([{"text": "read", "status": "completed"}])
    assert output.text == "The plan is shown: all of it is done."


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([], "1 to 50 steps, not 0"),
        ([{"text": "x"}] * (MAX_STEPS + 1), "not 51"),
        ([{"text": " \n "}], "needs a text"),
        ([{"text": "x", "status": "finished"}], "completed"),
        ([{"status": "pending"}], "text"),
        ("read it", "steps"),
    ],
)
async def test_what_is_no_plan_is_refused_in_words_for_the_model(steps: Any, words: str) -> None:
    output = await update(steps)
    assert output.is_error
    assert words in output.text
    assert output.plan == ()


async def test_a_long_step_is_shortened() -> None:
    output = await update([{"text": "x" * 1_000}])
    assert len(output.plan[0].text) == MAX_STEP_CHARS


def test_the_model_is_told_the_shape_of_a_step() -> None:
    (spec,) = ToolRegistry([plan_tool()]).specs()
    schema = str(spec.input_schema)
    for word in ("text", "status", "pending", "in_progress", "completed"):
        assert word in schema
