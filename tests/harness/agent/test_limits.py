"""Each limit of a run ends it in a result that says which."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.agent.agents import QUICK, agent_for, all_events, of_type
from tests.support.scripted_provider import calls, says
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.config import AgentConfig, Limits
from web.harness.values.errors import ConfigurationError
from web.harness.values.events import Note, ToolResult
from web.harness.values.usage import Prices

pytestmark = pytest.mark.anyio


async def test_iterations() -> None:
    config = replace(QUICK, limits=Limits(max_iterations=2, max_repeats=None))
    agent = agent_for(calls(("double", {"number": 1}), text="again"), config=config)
    result = await agent.run("hello")
    assert (result.status, result.reason, result.iterations) == ("limit", "max_iterations", 2)


async def test_cost() -> None:
    # A scripted call uses 10 tokens in and 5 out: 20 dollars at these prices.
    limits = Limits(max_cost_dollars=35, max_repeats=None, prices=Prices(1_000_000, 2_000_000))
    agent = agent_for(calls(("double", {"number": 1})), config=replace(QUICK, limits=limits))
    result = await agent.run("hello")
    assert (result.status, result.reason, result.cost) == ("limit", "max_cost_dollars", 40)
    assert agent.cost == 40


async def test_the_size_of_a_result_which_its_text_says_and_the_run_goes_on() -> None:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def talk() -> str:
        return "x" * 5_000

    agent = agent_for(
        calls(("talk", {})),
        says("ok"),
        tools=registry,
        config=replace(QUICK, limits=Limits(max_result_chars=1_000)),
    )
    (result,) = of_type(await all_events(agent), ToolResult)
    assert len(result.text) == 1_000
    assert "the result has 5,000 characters, the limit is 1,000" in result.text


async def test_repetition() -> None:
    agent = agent_for(
        calls(("double", {"number": 1})), config=replace(QUICK, limits=Limits(max_repeats=3))
    )
    result = await agent.run("hello")
    assert (result.status, result.reason, result.iterations) == ("limit", "max_repeats", 3)


async def test_the_same_call_with_other_arguments_or_results_is_no_repetition() -> None:
    registry, count = ToolRegistry(), iter(range(100))

    @registry.register(permission=PermissionLevel.ALLOW)
    def poll(number: int) -> str:
        return f"waiting {next(count)}"

    config = replace(QUICK, limits=Limits(max_repeats=2))
    polls = [calls(("poll", {"number": 1}))] * 4
    agent = agent_for(*polls, says("there"), tools=registry, config=config)
    assert (await agent.run("hello")).status == "completed"
    doubles = [calls(("double", {"number": number})) for number in range(4)]
    agent = agent_for(*doubles, says("done"), config=config)
    assert (await agent.run("hello")).status == "completed"


async def test_a_call_that_is_refused_again_and_again_is_a_repetition() -> None:
    agent = agent_for(calls(("forbidden", {})), config=replace(QUICK, limits=Limits(max_repeats=4)))
    result = await agent.run("hello")
    assert (result.reason, result.iterations) == ("max_repeats", 4)


async def test_no_tool_at_a_time_is_refused_when_it_is_asked_for() -> None:
    with pytest.raises(ConfigurationError, match="max_parallel_tools"):
        Limits(max_parallel_tools=0)


async def test_a_limit_of_cost_without_prices_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = agent_for(says("ok"), config=AgentConfig(limits=Limits(max_cost_dollars=1.0)))
    (note,) = of_type(await all_events(agent), Note)
    assert "no prices are" in note.text
    assert not of_type(await all_events(agent), Note)
    assert caplog.text.count("no prices are") == 1


async def test_a_limit_of_cost_with_prices_needs_no_words() -> None:
    limits = Limits(max_cost_dollars=1.0, prices=Prices(1.0, 1.0))
    agent = agent_for(says("ok"), config=AgentConfig(limits=limits))
    assert not of_type(await all_events(agent), Note)
