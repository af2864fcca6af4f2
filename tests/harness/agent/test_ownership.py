"""One run at a time, and what is closed by whom: counted by what is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.harness.agent.agents import QUICK, agent_for, of_type
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.agent.agent import Agent
from web.harness.agent.extensions import BaseExtension
from web.harness.tools.hooks import HookEvent
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.errors import AgentBusy, AgentClosed
from web.harness.values.events import Note
from web.harness.values.model import TextChunk

pytestmark = pytest.mark.anyio


async def test_a_second_run_is_refused_at_once_however_it_is_asked_for() -> None:
    agent = agent_for([TextChunk("x"), asyncio.Event()])
    async with agent.run_stream("hello") as events:
        # Refused before the first has taken its first step.
        with pytest.raises(AgentBusy):
            await agent.run("second")
        with pytest.raises(AgentBusy):
            async with agent.run_stream("second"):
                raise AssertionError("it was let in")
        await anext(events)
        with pytest.raises(AgentBusy):
            await agent.run("second")
    assert not agent.is_running
    assert [message.text for message in agent.memory.get_messages()] == ["hello", "x"]


async def test_after_each_way_a_run_can_end_the_next_one_is_taken() -> None:
    agent = agent_for(
        [TextChunk("a"), asyncio.Event()], [TextChunk("b"), asyncio.Event()], says("done")
    )
    async with agent.run_stream("left") as events:
        await anext(events)
    async with agent.run_stream("stopped") as events:
        await anext(events)
        agent.cancel()
        rest = [event.body async for event in events]
    assert rest[-1].type == "run_result"
    async with agent.run_stream("left before it began"):
        pass
    stopped = asyncio.ensure_future(agent.run("cancelled from outside"))
    await asyncio.sleep(0)
    stopped.cancel()
    await asyncio.wait({stopped})
    assert (await agent.run("last")).text == "done"


async def test_closing_stops_the_run_under_way_and_waits_for_its_end() -> None:
    registry, started, ended = ToolRegistry(), asyncio.Event(), asyncio.Event()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def hold() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    provider = ScriptedProvider(calls(("hold", {})))
    agent = Agent(QUICK, provider=provider, tools=registry)
    before = asyncio.all_tasks()
    run = asyncio.ensure_future(agent.run("hello"))
    await started.wait()
    await agent.aclose()
    assert ended.is_set()
    assert (await run).status == "cancelled"
    assert provider.open == 0
    assert asyncio.all_tasks() == before


async def test_what_was_handed_in_stays_open_and_what_was_made_is_closed_once() -> None:
    provider = ScriptedProvider(says("ok"))
    async with Agent(QUICK, provider=provider) as agent:
        await agent.run("hello")
    await agent.aclose()
    assert (provider.open, provider.closed) == (0, 0)


async def _run(agent: Agent) -> None:
    await agent.run("hello")


async def _stream(agent: Agent) -> None:
    async with agent.run_stream("hello"):
        pass


async def _enter(agent: Agent) -> None:
    async with agent:
        pass


async def _save(agent: Agent) -> None:
    await agent.save_session(storage_dir="nowhere")


@pytest.mark.parametrize("use", [_run, _stream, _enter, _save])
async def test_use_after_close_is_a_clear_error(use: Callable[[Agent], Awaitable[None]]) -> None:
    agent = agent_for(says("ok"))
    await agent.aclose()
    assert agent.is_closed
    with pytest.raises(AgentClosed, match="was closed"):
        await use(agent)


async def test_a_tool_that_closes_its_agent_ends_the_run_and_the_owner_closes_the_rest() -> None:
    registry = ToolRegistry()
    agent = agent_for(calls(("close", {})), says("never"), tools=registry)

    @registry.register(permission=PermissionLevel.ALLOW)
    async def close() -> str:
        await agent.aclose()
        return "closed"

    async with asyncio.timeout(5), agent:
        assert (await agent.run("hello")).status == "cancelled"


async def test_a_stop_before_the_first_step_stops_the_run() -> None:
    agent = agent_for(says("never"))
    async with agent.run_stream("hello") as events:
        agent.cancel()
        bodies = [event.body async for event in events]
    assert [body.type for body in bodies] == ["run_result"]
    assert getattr(bodies[0], "status", "") == "cancelled"


async def test_an_agent_without_a_model_says_once_that_the_demo_model_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Agent() as agent:
        events = []
        for _ in range(2):
            async with agent.run_stream("refuse") as stream:
                events += [event async for event in stream]
    (note,) = of_type(events, Note)
    assert "demo model" in note.text
    assert events[0].body == note
    assert caplog.text.count("demo model") == 1


async def test_an_agent_with_a_provider_of_its_owner_says_nothing() -> None:
    agent = agent_for(says("ok"))
    async with agent.run_stream("hello") as stream:
        assert of_type([event async for event in stream], Note) == []


async def test_usage_and_cost_are_summed_over_turns() -> None:
    agent = agent_for(says("a", "b"), says("c"))
    assert (agent.usage.input_tokens, agent.cost) == (0, None)
    await agent.run("one")
    await agent.run("two")
    assert (agent.usage.input_tokens, agent.usage.output_tokens) == (20, 3)
    assert agent.cost is None


class Slow(BaseExtension):
    name = "slow"

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.is_closing = asyncio.Event()
        self.closed = 0

    async def aclose(self) -> None:
        self.is_closing.set()
        await self.go_on.wait()
        self.closed += 1


async def test_a_second_close_returns_when_the_first_is_done() -> None:
    agent = Agent(extensions=[slow := Slow()])
    first = asyncio.ensure_future(agent.aclose())
    await slow.is_closing.wait()
    second = asyncio.ensure_future(agent.aclose())
    await asyncio.sleep(0)
    assert not second.done()
    slow.go_on.set()
    await asyncio.gather(first, second)
    assert slow.closed == 1


async def test_whoever_is_called_by_the_close_may_close_again() -> None:
    class Again(BaseExtension):
        name = "again"

        async def aclose(self) -> None:
            await asyncio.create_task(agent.aclose())

    agent = Agent(extensions=[Again()])
    agent.hooks.on(HookEvent.AGENT_CLOSED, lambda happening: agent.aclose())
    async with asyncio.timeout(3):
        await agent.aclose()


async def test_a_close_that_is_stopped_closes_the_rest_all_the_same() -> None:
    other = Slow()
    other.name = "other"
    other.go_on.set()
    agent = Agent(extensions=[other, slow := Slow()])
    closing = asyncio.ensure_future(agent.aclose())
    await slow.is_closing.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert (slow.closed, other.closed) == (0, 1)
