"""An agent performs what the loop decides: model, tools, questions, stops, failures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import asdict

import pytest

from tests.harness.agent.agents import QUICK, agent_for, all_events, of_type, tools
from tests.support.scripted_provider import (
    ScriptedProvider,
    breaks,
    calls,
    says,
    thinks,
)
from web.harness.agent.agent import Agent
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.config import AgentConfig, Limits
from web.harness.values.errors import AgentBusy, AgentClosed
from web.harness.values.events import (
    AttemptReset,
    ErrorReport,
    Event,
    EventBody,
    RunResult,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
    UsageReport,
    Waiting,
    event_data,
)
from web.harness.values.messages import (
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest, TextChunk
from web.harness.values.usage import Prices

pytestmark = pytest.mark.anyio


async def test_an_answer_streams_and_ends_with_its_result() -> None:
    agent = agent_for(says("Hel", "lo"))
    events = await all_events(agent)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [delta.text for delta in of_type(events, TextDelta)] == ["Hel", "lo"]
    result = events[-1].body
    assert isinstance(result, RunResult)
    assert (result.status, result.text, result.iterations) == ("completed", "Hello", 1)
    roles = [message.role for message in agent.memory.get_messages()]
    assert roles == ["user", "assistant"]


async def test_each_message_is_the_child_of_the_one_before() -> None:
    agent = agent_for(calls(("double", {"number": 2})), says("four"))
    await agent.run("first")
    await agent.run("second")
    messages = agent.memory.get_messages()
    assert [message.parent_id for message in messages[1:]] == [
        message.id for message in messages[:-1]
    ]
    assert len({message.id for message in messages}) == len(messages)


async def test_results_stand_in_the_order_of_the_calls_whichever_ends_first() -> None:
    registry, second_ended = ToolRegistry(), asyncio.Event()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def first() -> str:
        await second_ended.wait()
        return "one"

    @registry.register(permission=PermissionLevel.ALLOW)
    async def second() -> str:
        second_ended.set()
        return "two"

    agent = agent_for(calls(("first", {}), ("second", {})), says("done"), tools=registry)
    events = await all_events(agent)
    assert [result.text for result in of_type(events, ToolResult)] == ["two", "one"]
    tool_message = agent.memory.get_messages()[2]
    assert [block.text for block in tool_message.content if isinstance(block, ToolResultBlock)] == [
        "one",
        "two",
    ]


async def test_calls_have_unique_ids_of_our_own_across_a_conversation() -> None:
    agent = agent_for(calls(("double", {"number": 1}), ("double", {"number": 1})), says("x"))
    events = await all_events(agent)
    events += await all_events(agent)
    starts = [start.call_id for start in of_type(events, ToolCallStart)]
    assert len(starts) == len(set(starts)) == 2
    assert {delta.call_id for delta in of_type(events, ToolCallDelta)} == set(starts)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("double", {"number": "many"}, "number"),
        ("missing", {}, "missing"),
        ("forbidden", {}, "not allowed"),
    ],
)
async def test_a_call_that_cannot_run_tells_the_model_why(
    name: str, arguments: dict[str, object], words: str
) -> None:
    agent = agent_for(calls((name, arguments)), says("sorry"))
    events = await all_events(agent)
    (result,) = of_type(events, ToolResult)
    assert result.is_error
    assert words in result.text
    assert not of_type(events, ToolCallStart)
    last = events[-1].body
    assert isinstance(last, RunResult)
    assert last.status == "completed"


async def test_a_denied_tool_is_not_even_offered() -> None:
    agent = agent_for(says("x"))
    await agent.run("hello")
    provider = agent._providers.get(agent.config.model)
    assert isinstance(provider, ScriptedProvider)
    assert {spec.name for spec in provider.requests[0].tools} == {"double", "save"}


async def test_a_transient_failure_takes_back_what_was_shown_and_tries_again() -> None:
    agent = agent_for(breaks("wrong ", "start"), says("right"))
    events = await all_events(agent)
    (reset,) = of_type(events, AttemptReset)
    first = of_type(events, TextDelta)[0]
    assert (reset.message_id, reset.attempt) == (first.message_id, 1)
    assert len(of_type(events, Waiting)) == 1
    assert agent.memory.get_messages()[-1].text == "right"


async def test_a_failure_that_stays_ends_the_run_and_keeps_what_was_written() -> None:
    agent = agent_for(breaks("partial", transient=False, code="provider_auth"))
    events = await all_events(agent)
    (report,) = of_type(events, ErrorReport)
    assert (report.code, report.hint) == ("provider_auth", "Wait.")
    result = events[-1].body
    assert isinstance(result, RunResult)
    assert (result.status, result.reason, result.text) == ("failed", "provider_auth", "partial")
    assert agent.memory.get_messages()[-1].text == "partial"


async def test_a_provider_that_breaks_its_contract_fails_the_run_in_words() -> None:
    agent = agent_for([TextChunk("half")])
    events = await all_events(agent)
    assert of_type(events, ErrorReport)[0].code == "internal_error"


async def test_stopping_ends_the_model_call_at_once_and_keeps_the_text() -> None:
    never = asyncio.Event()
    provider = ScriptedProvider([TextChunk("so far"), never])
    agent = agent_for(provider=provider)
    events: list[Event] = []
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event.body, TextDelta):
                agent.cancel()
    result = events[-1].body
    assert isinstance(result, RunResult)
    assert (result.status, result.reason, result.text) == ("cancelled", "stopped", "so far")
    assert provider.open == 0
    assert agent.memory.get_messages()[-1].text == "so far"


async def test_stopping_ends_running_tools_and_open_questions_with_one_result_each() -> None:
    ended = asyncio.Event()
    registry = tools()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def endless() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    agent = agent_for(calls(("endless", {}), ("save", {"text": "a"})), tools=registry)
    events: list[Event] = []
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event.body, ToolCallStart):
                agent.cancel()
    assert ended.is_set()
    results = of_type(events, ToolResult)
    assert all(result.stopped and result.is_error for result in results)
    assert len({result.call_id for result in results}) == len(results) == 2
    tool_message = agent.memory.get_messages()[-1]
    assert (tool_message.role, len(tool_message.content)) == ("tool", 2)


async def test_leaving_the_stream_early_stops_the_run_and_leaves_a_whole_conversation() -> None:
    registry, ended = tools(), asyncio.Event()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def endless() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    agent = agent_for(calls(("endless", {})), says("ok"), tools=registry)
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            if isinstance(event.body, ToolCallStart):
                break
    assert ended.is_set()
    assert [message.role for message in agent.memory.get_messages()] == [
        "user",
        "assistant",
        "tool",
    ]
    assert (await agent.run("again")).status == "completed"


async def test_cancelling_the_task_of_a_run_stops_it_and_settles_its_calls() -> None:
    started = asyncio.Event()
    registry = tools()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def endless() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = agent_for(calls(("endless", {})), tools=registry)
    events: list[object] = []
    run = asyncio.ensure_future(agent.perform("hello", run_id="r", emit=events.extend))
    await asyncio.wait_for(started.wait(), 5)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    assert isinstance(events[-1], RunResult)
    assert events[-1].status == "cancelled"
    assert [message.role for message in agent.memory.get_messages()][-1] == "tool"


async def test_a_second_run_is_refused_at_once() -> None:
    go_on = asyncio.Event()
    agent = agent_for([TextChunk("a"), go_on, *says("b")])
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            if isinstance(event.body, TextDelta) and event.body.text == "a":
                with pytest.raises(AgentBusy):
                    await agent.perform("again", run_id="other", emit=lambda bodies: None)
                go_on.set()


async def test_a_closed_agent_says_so_and_closes_only_what_it_made() -> None:
    provider = ScriptedProvider(says("x"))
    async with Agent(QUICK, provider=provider) as agent:
        await agent.run("hello")
    await agent.aclose()
    assert provider.closed == 0
    with pytest.raises(AgentClosed):
        await agent.perform("hello", run_id="r", emit=lambda bodies: None)


async def test_thinking_is_kept_with_its_seal_before_the_text() -> None:
    agent = agent_for(thinks("hm", "yes"))
    await agent.run("hello")
    block = agent.memory.get_messages()[-1].content[0]
    assert block == ThinkingBlock("hm", "sealed")


async def test_usage_and_cost_are_reported_and_summed() -> None:
    config = AgentConfig(limits=Limits(prices=Prices(1_000_000, 1_000_000)))
    agent = agent_for(calls(("double", {"number": 2})), says("four"), config=config)
    events = await all_events(agent)
    costs = [report.cost for report in of_type(events, UsageReport)]
    assert costs == [15.0, 11.0]
    result = events[-1].body
    assert isinstance(result, RunResult)
    assert (result.cost, result.usage.input_tokens) == (26.0, 20)


async def test_the_limit_of_model_calls_ends_a_run_with_words() -> None:
    config = AgentConfig(limits=Limits(max_iterations=2))
    agent = agent_for(calls(("double", {"number": 2})), config=config)
    result = await agent.run("hello")
    assert (result.status, result.reason, result.iterations) == ("limit", "max_iterations", 2)


async def test_a_tool_that_takes_too_long_is_an_error_result() -> None:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW, timeout_seconds=0.01)
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    agent = agent_for(calls(("slow", {})), says("ok"), tools=registry)
    events = await all_events(agent)
    assert "0.01 seconds" in of_type(events, ToolResult)[0].text


@pytest.mark.full
async def test_an_agent_without_anything_uses_the_demo_model_and_says_so() -> None:
    async with Agent() as agent:
        result = await agent.run("help")
    assert "demo" in result.text.lower()


async def test_half_characters_of_models_and_tools_never_get_any_further() -> None:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def echo(text: str) -> str:
        return f"{text} and \ud800"

    bad = "\ud83d"
    agent = agent_for(
        calls(("echo", {"text": bad}), (f"no{bad}", {bad: bad}), text=f"text {bad}"),
        [*thinks(f"thought {bad}", f"end {bad}")],
        tools=registry,
    )
    events = await all_events(agent)
    written = [event_data(event.body) for event in events]
    written += [asdict(message) for message in agent.memory.get_messages()]
    json.dumps(written, ensure_ascii=False).encode()
    assert events[-1].body.type == "run_result"


async def test_arguments_that_are_nested_without_end_are_refused_with_words() -> None:
    deep: dict[str, object] = {}
    inner = deep
    for _ in range(200):
        inner["a"] = inner = {}
    agent = agent_for(calls(("double", deep)), says("ok"))
    (result,) = of_type(await all_events(agent), ToolResult)
    assert result.is_error
    assert "nested" in result.text


async def test_a_great_deal_at_once_lets_others_have_their_turn() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def slow(bodies: list[EventBody]) -> None:
        # As a listener that folds what comes: some milliseconds for each batch.
        until = time.perf_counter() + 0.003
        while time.perf_counter() < until:
            pass

    class AllAtOnce(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
            yield [TextChunk("a") for _ in range(1_000)]
            yield [ModelDone("end_turn")]

    agent = agent_for(provider=AllAtOnce())
    counting = asyncio.ensure_future(count())
    await asyncio.sleep(0)
    before = turns
    await agent.perform("hello", run_id="r", emit=slow)
    counting.cancel()
    assert turns - before > 5


async def test_what_is_attached_stands_before_the_message_in_the_conversation() -> None:
    agent = agent_for(says("dry"), says("wet"))
    note = ResourceBlock("notes://today", "Today", "text/plain", "Rain.", "notes")
    await agent.run("And tomorrow?", attachments=[note])
    async with agent.run_stream("Sure?", attachments=[note, note]) as events:
        assert [event async for event in events]
    asked = [each for each in agent.memory.get_messages() if each.role == "user"]
    assert [each.content for each in asked] == [
        (note, TextBlock("And tomorrow?")),
        (note, note, TextBlock("Sure?")),
    ]


class CutOff:
    """A provider whose stream is cancelled from inside, as a pool of connections may do."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        yield [TextChunk("Half")]
        raise asyncio.CancelledError

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_model_call_that_is_cancelled_from_inside_ends_the_run_once() -> None:
    async with asyncio.timeout(20):
        result = await agent_for(provider=CutOff()).run("hello")
    assert (result.status, result.text) == ("cancelled", "Half")
