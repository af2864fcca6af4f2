"""What of an agent has to be the same where a run goes on with another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.harness.runtime.runtimes import agent_for, tools
from tests.support.scripted_provider import ScriptedProvider, says
from web.harness.agent.agent import Agent
from web.harness.agent.extensions import BaseExtension
from web.harness.loop.state import CallState, RunLimits, start_run
from web.harness.runtime.fitting import check_fitting, fitting_of, needed_tools
from web.harness.sessions.journal import CallRecord
from web.harness.tools.functions import function_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Tool
from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.errors import HarnessError
from web.harness.values.json_form import json_copy
from web.harness.values.messages import ToolUseBlock


class Notes(BaseExtension):
    name = "notes"


class Clock(BaseExtension):
    name = "clock"


def with_tool(**changes: object) -> Agent:
    """An agent whose tool `save` is another in some way."""
    registry = tools()
    save = registry.get("save")
    assert save is not None
    registry.remove("save")
    registry.add(replace(save, **changes))  # type: ignore[arg-type]
    return agent_for(says("x"), tools=registry)


def other(name: str) -> Tool:
    def other() -> str:
        return ""

    return function_tool(other, name=name)


def differing(now: Agent, before: Agent | None = None) -> str:
    fitting = fitting_of(before or agent_for(says("x")))
    with pytest.raises(HarnessError) as refused:
        check_fitting(fitting, now)
    assert refused.value.code == "runtime_differs"
    assert "Nothing was done" in refused.value.hint
    return refused.value.message


def test_the_same_agent_fits_and_what_is_written_is_json() -> None:
    fitting = fitting_of(agent_for(says("x"), extensions=[Notes()]))
    assert json_copy(fitting, "fitting") == fitting
    check_fitting(fitting, agent_for(says("y"), extensions=[Notes()]))


def test_a_run_of_which_nothing_was_written_down_goes_on_with_any_agent() -> None:
    check_fitting({}, agent_for(says("x")))


def test_a_tool_that_is_new_and_another_prompt_do_no_harm() -> None:
    registry = tools()
    registry.add(other("more"))
    config = AgentConfig(system_prompt="Be brief.")
    agent = Agent(config, provider=ScriptedProvider(says("x")), tools=registry)
    check_fitting(fitting_of(agent_for(says("x"))), agent)


def test_it_is_said_what_differs() -> None:
    model = AgentConfig(model=ModelName.parse("openai:other"))
    agent = Agent(model, provider=ScriptedProvider(says("x")), tools=tools())
    assert "its model is openai:other, and was demo:" in differing(agent)
    gone = agent_for(says("x"), tools=ToolRegistry())
    assert "the tool double is missing; the tool save is missing" in differing(gone)
    schema = {"type": "object", "properties": {"words": {"type": "string"}}}
    assert "the tool save takes other arguments" in differing(with_tool(input_schema=schema))
    assert "the tool save is safe to repeat, and was manual" in differing(with_tool(replay="safe"))
    assert "the tool save has the version 2, and was without one" in differing(
        with_tool(version="2")
    )
    clock, notes = agent_for(says("x"), extensions=[Clock()]), Notes()
    words = differing(agent_for(says("x"), extensions=[notes]), before=clock)
    assert "the extension clock is missing; the extension notes is new" in words


def test_of_many_differences_the_number_is_told() -> None:
    registry = ToolRegistry([other(f"tool{number}") for number in range(8)])
    words = differing(
        agent_for(says("x"), tools=ToolRegistry()), agent_for(says("x"), tools=registry)
    )
    assert words.count("is missing") == 5
    assert words.endswith("and 3 more.")


def needed(status: str, verdict: str = "run", **record: Any) -> tuple[str, ...]:
    call = CallState("c", "server__send", status, verdict)  # type: ignore[arg-type]
    run = start_run("r", RunLimits.of(AgentConfig()))
    state = replace(run, phase="tools", calls=(call,))
    return needed_tools(state, {"c": CallRecord(ToolUseBlock("c", "server__send"), "m", **record)})


def test_a_tool_that_came_during_the_run_counts_where_an_open_call_needs_it() -> None:
    for status in ("asking", "ready", "waiting"):
        assert needed(status) == ("server__send",)
    for status in ("settled", "uncertain"):
        assert needed(status) == ()
    assert needed("ready", "refuse") == ()
    # One that was cut off: by its policy.
    assert needed("running", replay="idempotent") == ("server__send",)
    assert needed("running", replay="manual") == ()
    form = {"key": "c-in1", "request": {}, "state": {}}
    assert needed("running", replay="manual", input=form) == ("server__send",)
    fitting, agent = fitting_of(agent_for(says("x"))), agent_for(says("x"))
    with pytest.raises(HarnessError) as refused:
        check_fitting(fitting, agent, ["server__send"])
    assert "the tool server__send is missing, which an open call needs" in refused.value.message
    agent.tools.add(other("server__send"))
    check_fitting(fitting, agent, ["server__send"])
