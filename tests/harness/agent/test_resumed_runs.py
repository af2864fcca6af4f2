"""Runs of other kinds that are cut off: long conversations, sub-agents, failures, costs, hooks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.harness.agent.agents import QUICK
from tests.harness.agent.lives import Lives, World, shown_text, three_calls
from tests.harness.agent.test_condensing import LIMITED, turns
from tests.harness.agent.test_resuming import STRIDES
from tests.support.limited_provider import is_summary_request
from tests.support.scripted_provider import breaks, calls, says
from tests.support.written_run import WrittenRun
from web.harness.agent.agent import Agent
from web.harness.memory.summaries import is_summary
from web.harness.sessions.journal import Step
from web.harness.subagents import delegate_tool
from web.harness.tools.hooks import HookEvent
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.codec import check_conversation
from web.harness.values.config import Limits
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    ErrorReport,
    EventBody,
    NestedEvent,
    RecoveryRequired,
    RunResult,
    Waiting,
)
from web.harness.values.model import ModelRequest
from web.harness.values.usage import Prices

pytestmark = pytest.mark.anyio


def summarised(request: ModelRequest) -> list[Any]:
    return says("Notes: they talked.") if is_summary_request(request) else three_calls(request)


def long_run() -> Lives:
    """A run whose conversation has to be made shorter before its first answer."""
    history = tuple(turns(8, 300))
    return Lives(World("safe"), script=summarised, config=LIMITED, history=history)


@pytest.mark.parametrize("stride", STRIDES)
async def test_a_run_that_is_cut_off_while_its_context_is_made_shorter_goes_on(
    stride: int,
) -> None:
    lives = long_run()
    whole = await lives.live()
    assert whole is not None
    assert "condensed" in lives.written.kinds
    assert len(lives.written.of(ContextCondensed)) == 1
    assert lives.agent is not None
    messages = lives.agent.memory.get_messages()
    last = len(lives.written.entries)
    for point in range(1, last, stride):
        cut = long_run()
        assert await cut.live(point) is None
        result = await cut.live()
        assert result is not None, point
        assert (result.text, result.iterations) == (whole.text, 3), point
        assert cut.agent is not None
        left = cut.agent.memory.get_messages()
        check_conversation(left)
        assert [each.id for each in left] == [each.id for each in messages], point
        assert sum(map(is_summary, left)) == 1
        assert shown_text(cut.written.events) == shown_text(lives.written.events)


async def test_a_run_goes_on_however_often_its_process_ends() -> None:
    for step in (9, 11, 14):
        lives = Lives(World("idempotent"))
        result = None
        for life in range(1, 20):
            result = await lives.live(life * step)
            if result is not None:
                break
        assert result is not None
        assert life > 1
        assert (result.status, result.text, result.iterations) == ("completed", "All done.", 3)
        assert shown_text(lives.written.events) == "First both. Then this. All done."
        assert {key for name, key in lives.world.began if name == "act"} == {"r-1-0"}
        state = lives.written.state
        assert state is not None
        # One that finds the run at its end resumes nothing.
        assert state.resumes in (life - 1, life - 2)


async def test_cost_and_its_limit_go_on_where_they_were() -> None:
    prices = Prices(input_cost_per_m=1_000.0, output_cost_per_m=1_000.0)
    limits = Limits(max_cost_dollars=0.025, prices=prices)
    lives = Lives(World("safe"), config=replace(QUICK, limits=limits))
    lives.ends_after("calls_started", 2)
    assert await lives.live() is None
    result = await lives.live()
    assert result is not None
    assert (result.status, result.reason) == ("limit", "max_cost_dollars")
    assert result.cost == pytest.approx(0.03)
    assert lives.agent is not None
    assert lives.agent.cost == pytest.approx(0.03)


async def test_a_failure_is_told_in_its_own_words_by_the_process_that_ends_the_run() -> None:
    lives = Lives(script=lambda request: breaks("Half", transient=False))
    lives.ends_after("model_failed")
    assert await lives.live() is None
    result = await lives.live()
    assert result is not None
    assert (result.status, result.reason, result.text) == (
        "failed",
        "provider_overloaded",
        "Half",
    )
    assert lives.written.of(ErrorReport) == [
        ErrorReport("provider_overloaded", "The model is overloaded.", "Wait.")
    ]
    assert len(lives.model.requests) == 1
    assert lives.written.of(RunResult) == [result]


async def test_the_attempts_of_a_model_call_are_counted_over_the_end_of_a_process() -> None:
    lives = Lives(script=lambda request: breaks("Half"))
    lives.ends_after("model_failed")
    assert await lives.live() is None
    result = await lives.live()
    assert result is not None
    assert result.status == "failed"
    assert len(lives.model.requests) == QUICK.retry.attempts
    assert [each.attempt for each in lives.written.of(AttemptReset)] == [1, 2, 2]
    assert len(lives.written.of(Waiting)) == 2
    assert shown_text(lives.written.events) == "Half"


def delegating(request: ModelRequest) -> list[Any]:
    said = request.messages[-1]
    has_result = any(block.type == "tool_result" for block in said.content)
    if "sub-agent" in request.system_prompt:
        return says("Saved it.") if has_result else calls(("save", {"what": "x"}))
    return says("Done.") if has_result else calls(("delegate", {"task": "save x"}))


def delegates(replay: ReplayPolicy, world: World) -> Any:
    def tools(written: WrittenRun) -> ToolRegistry:
        return ToolRegistry([replace(delegate_tool(), replay=replay), *world.tools(written)])

    return tools


@pytest.mark.parametrize("replay", ["safe", "manual"])
async def test_a_call_that_runs_another_agent_follows_its_replay_policy(
    replay: ReplayPolicy,
) -> None:
    world = World()
    lives = Lives(world, script=delegating, tools=delegates(replay, world))
    person = lives.person
    lives.person = None

    def cut(agent: Agent, entry: EventBody | Step) -> None:
        if isinstance(entry, NestedEvent) and isinstance(entry.body, ApprovalRequired):
            lives.written.over.set()

    lives.before = cut
    assert await lives.live() is None
    lives.before, lives.person = lambda agent, entry: None, person
    result = await lives.live()
    assert result is not None
    assert result.text == "Done."
    assert len(lives.written.of(RecoveryRequired)) == (replay == "manual")
    inner = [each.body for each in lives.written.of(NestedEvent)]
    keys = [each.key for each in inner if isinstance(each, ApprovalRequired)]
    # A person may have answered the first one: nothing is answered twice.
    assert len(set(keys)) == (2 if replay == "safe" else 1)
    assert world.times("save") == (replay == "safe")


async def test_hooks_are_told_that_each_process_performs_the_run() -> None:
    lives = Lives()
    seen: list[HookEvent] = []

    def watch(agent: Agent) -> None:
        for event in (HookEvent.RUN_STARTED, HookEvent.TOOL_ENDED, HookEvent.RUN_ENDED):
            agent.hooks.on(event, lambda happening: seen.append(happening.event))

    lives.made = watch
    assert await lives.live(20) is None
    first, seen[:] = list(seen), []
    assert await lives.live() is not None
    assert first[0] == HookEvent.RUN_STARTED
    assert HookEvent.RUN_ENDED not in first
    assert (seen[0], seen[-1]) == (HookEvent.RUN_STARTED, HookEvent.RUN_ENDED)
    assert [*first, *seen].count(HookEvent.TOOL_ENDED) == 3


async def test_tools_that_are_brought_before_a_model_call_are_there_for_what_goes_on() -> None:
    lives = Lives(World("safe"))
    registries: list[ToolRegistry] = []

    def tools(written: WrittenRun) -> ToolRegistry:
        registries.append(ToolRegistry())
        return registries[-1]

    async def prepare() -> str:
        if not len(registries[-1]):
            for tool in lives.world.tools(lives.written):
                registries[-1].add(tool)
        return ""

    lives = Lives(lives.world, tools=tools)
    lives.ends_after("calls_started")
    assert await lives.live(prepare=prepare) is None
    result = await lives.live(prepare=prepare)
    assert result is not None
    assert result.text == "All done."
    assert lives.world.times("act") == lives.world.times("look") == 1
