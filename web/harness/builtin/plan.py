"""`update_plan`: an agent writes down what it will do, and how far it is."""

from __future__ import annotations

from typing import Annotated

from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel, Tool, ToolOutput
from web.harness.tools.words import shorten
from web.harness.values.errors import ToolError
from web.harness.values.events import PlanStep

MAX_STEPS = 50
MAX_STEP_CHARS = 300


def plan_tool() -> Tool:
    """The tool `update_plan`. It keeps nothing: the newest plan stands in its result."""

    async def update_plan(
        steps: Annotated[
            list[PlanStep],
            "All steps in their order, each with its text and how far it is: pending, "
            "in_progress or completed.",
        ],
    ) -> ToolOutput:
        """Shows the person your plan as a list of steps, in place of the plan before.

        Use it for work of three steps or more: once before you begin, and again whenever a step is
        begun or done. Send all steps each time, the ones that are done too.
        """
        if not 1 <= len(steps) <= MAX_STEPS:
            raise ToolError(f"A plan has 1 to {MAX_STEPS} steps, not {len(steps)}.")
        plan = tuple(PlanStep(_line(step.text), step.status) for step in steps)
        if not all(step.text for step in plan):
            raise ToolError("Each step needs a text that says what is to be done.")
        return ToolOutput(ToolOutput.of(_words(plan)).content, plan=plan)

    return function_tool(
        update_plan, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )


def _line(text: str) -> str:
    return shorten(" ".join(text.split()), MAX_STEP_CHARS)


def _words(plan: tuple[PlanStep, ...]) -> str:
    done = sum(step.status == "completed" for step in plan)
    if done == len(plan):
        return "The plan is shown: all of it is done."
    now = [step.text for step in plan if step.status == "in_progress"]
    doing = f" Now: {'; '.join(now)}." if now else ""
    return f"The plan is shown: {done} of {len(plan)} steps are done.{doing}"
