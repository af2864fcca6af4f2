"""How the demo model works along a plan that it was given: `plan: first; second; third`."""

from __future__ import annotations

import json
import re

PLAN_TOOL = "update_plan"

MOST_STEPS = 20

_PLAN = re.compile(r"^\s*(?:please\s+)?(?:make\s+a\s+)?plan\s*:\s*(?P<steps>\S.*)$", re.I | re.S)
_BETWEEN = re.compile(r"\s*[;\n]\s*")
_MARK = re.compile(r"^(?:[-*]|\d+[.)])\s+")


def planned_steps(prompt: str) -> list[str]:
    """The steps of a plan that a message asks for; none where it asks for none."""
    match = _PLAN.match(prompt)
    if match is None:
        return []
    steps = [_MARK.sub("", step).strip(" .") for step in _BETWEEN.split(match["steps"])]
    return [step for step in steps if step][:MOST_STEPS]


def plan_arguments(steps: list[str], done: int) -> str:
    """The plan as JSON text for `update_plan`: `done` steps are done, the next is under way."""

    def status(number: int) -> str:
        if number < done:
            return "completed"
        return "in_progress" if number == done else "pending"

    told = [{"text": step, "status": status(number)} for number, step in enumerate(steps)]
    return json.dumps({"steps": told}, ensure_ascii=False)
