"""Sub-agents: a run inside a call, whose events, questions and costs join those around."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.agent.agents import QUICK, all_events
from tests.support.scripted_provider import ScriptedProvider, Step, breaks, calls, says
from web.harness.agent.agent import Agent
from web.harness.agent.questions import Answer
from web.harness.subagents import SUB_AGENT_PROMPT, delegate_tool, sub_agent_tool
from web.harness.tools.hooks import Happening, HookEvent
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import InputAnswer, PermissionLevel, Tool, ToolContext
from web.harness.values.config import AgentConfig, Limits, ModelName, ToolDefaults
from web.harness.values.errors import DecisionRefused, ProviderError
from web.harness.values.events import (
    ApprovalRequired,
    EventBody,
    InputRequired,
    NestedEvent,
    RunResult,
    ToolResult,
    innermost,
)
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest, TextChunk
from web.harness.values.usage import Prices, Usage

pytestmark = pytest.mark.anyio


def registry(*more: Tool) -> ToolRegistry:
    tools = ToolRegistry([delegate_tool(), *more])

    @tools.register(permission=PermissionLevel.ALLOW)
    def double(number: int) -> str:
        return str(number * 2)

    @tools.register
    def save(text: str) -> str:
        return f"saved {text}"

    return tools


def agent_for(*answers: list[Step], **more: Any) -> tuple[Agent, ScriptedProvider]:
    provider = ScriptedProvider(*answers)
    given = {"config": QUICK, "tools": registry(), **more}
    return Agent(provider=provider, **given), provider


def nested(bodies: list[EventBody]) -> list[NestedEvent]:
    return [body for body in bodies if isinstance(body, NestedEvent)]


DELEGATES = calls(("delegate", {"task": "double four"}))


async def test_its_answer_is_the_result_and_its_events_are_nested_in_the_call() -> None:
    agent, provider = agent_for(
        DELEGATES, calls(("double", {"number": 4})), says("It is 8."), says("Done.")
    )
    events = [event.body for event in await all_events(agent)]
    (result,) = [body for body in events if isinstance(body, ToolResult)]
    assert (result.text, result.is_error) == ("It is 8.", False)
    inner = nested(events)
    assert {body.call_id for body in inner} == {result.call_id}
    assert [body.body.type for body in inner] == [
        *("tool_call_delta", "usage", "tool_call_start", "tool_result"),
        *("text_delta", "usage", "run_result"),
    ]
    ids = [body.body.call_id for body in inner if isinstance(body.body, ToolResult)]
    assert ids[0].startswith(f"{result.call_id}-")
    # It gets its own prompt and the task alone, with all tools but the one that made it.
    asked = provider.requests[1]
    assert [message.text for message in asked.messages] == ["double four"]
    assert asked.system_prompt == SUB_AGENT_PROMPT
    assert {spec.name for spec in asked.tools} == {"double", "save"}
    assert len(agent.memory.get_messages()) == 4


async def test_its_own_prompt_tools_and_limits_hold_for_it_alone() -> None:
    own = ToolRegistry()

    @own.register(permission=PermissionLevel.ALLOW)
    def look() -> str:
        return "seen"

    config = AgentConfig(system_prompt="You look.", limits=Limits(max_iterations=1))
    agent, provider = agent_for(
        calls(("looker", {"task": "look"})),
        calls(("look", {}), text="Looking."),
        says("ok"),
        tools=registry(sub_agent_tool("looker", "Looks.", config=config, tools=own)),
    )
    result = await agent.run("hello")
    assert result.status == "completed"
    asked = provider.requests[1]
    assert asked.system_prompt == "You look."
    assert [spec.name for spec in asked.tools] == ["look"]
    told = provider.requests[2].messages[-1].content[0]
    assert "limit (max_iterations)" in getattr(told, "text", "")


async def test_usage_and_cost_count_for_the_run_and_for_the_agent_also_through_two_levels() -> None:
    limits = Limits(prices=Prices(1_000_000, 1_000_000))
    inner = sub_agent_tool("inner", "Works.", tools=())
    outer = sub_agent_tool("outer", "Works.", tools=[inner])
    agent, _ = agent_for(
        calls(("outer", {"task": "a"})),
        calls(("inner", {"task": "b"})),
        says("b"),
        says("a"),
        says("all"),
        tools=ToolRegistry([outer]),
        config=replace(QUICK, limits=limits),
    )
    result = await agent.run("hello")
    # Five calls of 10 tokens in; 5 out where a tool is called, else 1.
    assert result.usage == agent.usage == Usage(50, 13)
    assert result.cost == agent.cost == 63


async def test_the_cost_limit_of_the_run_stops_its_sub_agents() -> None:
    limits = Limits(max_cost_dollars=40, prices=Prices(1_000_000, 1_000_000), max_repeats=None)
    agent, provider = agent_for(
        DELEGATES,
        calls(("double", {"number": 4})),
        config=replace(QUICK, limits=limits),
    )
    result = await agent.run("hello")
    assert (result.status, result.reason) == ("limit", "max_cost_dollars")
    # 15 dollars a call: the third reaches the limit, and nobody is asked again.
    assert (result.cost, len(provider.requests)) == (45, 3)


class Priced:
    """Asks for eight sub-agents at once, each of which costs a dollar, one after another."""

    def __init__(self) -> None:
        self.asked = 0
        self._turn = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        self.asked += 1
        done = ModelDone("end_turn", Usage(1, 0))
        if self.asked == 1:
            for step in calls(*[("delegate", {"task": str(number)}) for number in range(8)]):
                assert not isinstance(step, asyncio.Event | ProviderError)
                yield [replace(step, usage=Usage())] if isinstance(step, ModelDone) else [step]
            return
        async with self._turn:
            # Others have time to be stopped before the next one has its answer.
            for _ in range(20):
                await asyncio.sleep(0)
            yield [TextChunk("part"), done]

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("at_once", [8, 2])
async def test_what_one_sub_agent_spends_stops_those_beside_it(at_once: int) -> None:
    limits = Limits(max_cost_dollars=2, prices=Prices(1_000_000, 0), max_parallel_tools=at_once)
    agent = Agent(
        replace(QUICK, limits=limits), provider=Priced(), tools=ToolRegistry([delegate_tool()])
    )
    result = await agent.run("hello")
    assert (result.status, result.reason) == ("limit", "max_cost_dollars")
    assert result.cost is not None
    assert result.cost <= 3


async def test_a_question_of_its_tool_reaches_the_person_and_is_answered_by_its_key() -> None:
    agent, _ = agent_for(DELEGATES, calls(("save", {"text": "x"})), says("Saved."), says("ok"))
    results: list[EventBody] = []
    async with agent.run_stream("hello") as events:
        async for event in events:
            body = innermost(event.body)
            if isinstance(body, ApprovalRequired):
                assert isinstance(event.body, NestedEvent)
                agent.decide(body.key, "allow")
                with pytest.raises(DecisionRefused, match="answered already"):
                    agent.decide(body.key, "deny")
            if isinstance(body, ToolResult):
                results.append(body)
    assert [getattr(body, "text", "") for body in results] == ["saved x", "Saved."]


async def test_allowing_a_tool_for_the_chat_in_a_sub_agent_holds_outside_too() -> None:
    permissions = Permissions()
    agent, _ = agent_for(
        DELEGATES,
        calls(("save", {"text": "x"})),
        says("Saved."),
        calls(("save", {"text": "y"})),
        says("ok"),
        permissions=permissions,
    )
    asked = 0
    async with agent.run_stream("hello") as events:
        async for event in events:
            body = innermost(event.body)
            if isinstance(body, ApprovalRequired):
                asked += 1
                agent.decide(body.key, "allow_chat")
    assert (asked, permissions.grants) == (1, ["save"])


async def test_the_approver_and_answerer_of_an_agent_answer_for_its_sub_agents() -> None:
    tools = registry()

    @tools.register(permission=PermissionLevel.ALLOW)
    async def ask(context: ToolContext) -> str:
        answer = await context.ask({"mode": "url", "url": "https://a.example", "message": "?"})
        return answer.action

    async def approve(question: ApprovalRequired) -> Answer:
        return Answer("deny", reason="not today")

    async def accept(required: InputRequired) -> InputAnswer:
        return InputAnswer("accept")

    agent, _ = agent_for(
        DELEGATES,
        calls(("save", {"text": "x"}), ("ask", {})),
        says("ok"),
        tools=tools,
        approver=approve,
        answerer=accept,
    )
    bodies = [innermost(event.body) for event in await all_events(agent)]
    texts = {body.name: body.text for body in bodies if isinstance(body, ToolResult)}
    assert "not today" in texts["save"]
    assert texts["ask"] == "accept"


async def test_stop_stops_the_sub_agent_and_the_result_is_the_last_that_is_told() -> None:
    agent, provider = agent_for(DELEGATES, [TextChunk("working"), asyncio.Event()])
    bodies: list[EventBody] = []
    async with agent.run_stream("hello") as events:
        async for event in events:
            bodies.append(event.body)
            if isinstance(event.body, NestedEvent):
                agent.cancel()
    assert isinstance(bodies[-1], RunResult)
    assert bodies[-1].status == "cancelled"
    (stopped,) = [body for body in bodies if isinstance(body, ToolResult)]
    assert stopped.stopped
    assert provider.open == 0


async def test_a_sub_agent_that_fails_is_an_error_result_and_the_run_goes_on() -> None:
    agent, provider = agent_for(DELEGATES, breaks("half", transient=False), says("Never mind."))
    result = await agent.run("hello")
    assert (result.status, result.text) == ("completed", "Never mind.")
    told = provider.requests[2].messages[-1].content[0]
    assert getattr(told, "is_error", False)
    assert "failed (provider_overloaded)" in getattr(told, "text", "")


async def test_agents_are_nested_three_deep_at_most() -> None:
    deepest = sub_agent_tool("four", "Works.", tools=())
    for name in ("three", "two", "one"):
        deepest = sub_agent_tool(name, "Works.", tools=[deepest])
    names = ("one", "two", "three", "four")
    agent, _ = agent_for(
        *(calls((name, {"task": "go"})) for name in names),
        says("It cannot be done."),
        tools=ToolRegistry([deepest]),
    )
    bodies = [innermost(event.body) for event in await all_events(agent)]
    results = {body.name: body for body in bodies if isinstance(body, ToolResult)}
    assert "3 deep already" in results["four"].text
    assert not results["three"].is_error


async def test_several_at_once_answer_each_in_its_own_call() -> None:
    agent, provider = agent_for(
        calls(("delegate", {"task": "a"}), ("delegate", {"task": "b"})), says("done")
    )
    events = [event.body for event in await all_events(agent)]
    results = [body for body in events if isinstance(body, ToolResult)]
    assert [body.text for body in results] == ["done", "done"]
    by_call = {body.call_id for body in nested(events)}
    assert by_call == {body.call_id for body in results}
    assert provider.open == 0


async def test_hooks_are_told_of_sub_agents_with_the_call_they_are_in() -> None:
    agent, _ = agent_for(DELEGATES, calls(("double", {"number": 1})), says("2"), says("ok"))
    told: list[Happening] = []
    for event in (HookEvent.RUN_STARTED, HookEvent.MODEL_CALL_STARTED, HookEvent.TOOL_STARTED):
        agent.hooks.on(event, told.append)
    await agent.run("hello")
    inside = [(each.event.value, bool(each.call_id)) for each in told]
    assert inside == [
        *(("run_started", False), ("model_call_started", False), ("tool_started", False)),
        *(("run_started", True), ("model_call_started", True), ("tool_started", True)),
        *(("model_call_started", True), ("model_call_started", False)),
    ]


async def test_what_is_made_for_a_sub_agent_is_closed_and_what_was_handed_in_is_not() -> None:
    own = ScriptedProvider(says("mine"))
    config = AgentConfig(model=ModelName("elsewhere", "x"))
    tool = sub_agent_tool("other", "Works.", config=config, tools=(), provider=own)
    agent, provider = agent_for(
        calls(("other", {"task": "a"})), says("ok"), tools=ToolRegistry([tool])
    )
    before = asyncio.all_tasks()
    await agent.run("hello")
    assert (len(own.requests), own.open, own.closed, provider.closed) == (1, 0, 0, 0)
    assert asyncio.all_tasks() == before


async def test_a_sub_agent_has_no_time_limit_unless_it_is_given_one() -> None:
    # No time at all: whoever waits once, and has no limit of its own, is too late.
    hurried = replace(QUICK, tools=ToolDefaults(timeout_seconds=0))
    hasty = sub_agent_tool("hasty", "Works.", tools=(), timeout_seconds=0)
    patient = sub_agent_tool("patient", "Works.", tools=())
    agent, _ = agent_for(
        calls(("hasty", {"task": "x"}), ("patient", {"task": "x"})),
        says("ok"),
        config=hurried,
        tools=registry(hasty, patient),
    )
    bodies = [event.body for event in await all_events(agent)]
    results = {body.name: body for body in bodies if isinstance(body, ToolResult)}
    assert "longer than its limit of 0 seconds" in results["hasty"].text
    assert results["patient"].text == "ok"


async def test_outside_of_a_run_the_tool_says_so() -> None:
    output = await ToolRegistry([delegate_tool()]).run(
        "delegate", {"task": "a"}, ToolContext("c"), default_timeout=None
    )
    assert output.is_error
    assert "only when an agent calls it" in output.text
