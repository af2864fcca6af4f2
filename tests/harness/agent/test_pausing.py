"""A run that is written down is paused or stopped at any write, and what is left of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.harness.agent.agents import agent_for
from tests.harness.agent.lives import Lives, Person, World
from tests.harness.agent.test_resuming import STRIDES, check_end, whole
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.written_run import WrittenRun
from web.harness.agent.agent import Agent
from web.harness.agent.pausing import RunPaused
from web.harness.sessions.journal import Step
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.codec import check_conversation
from web.harness.values.errors import LeaseLost
from web.harness.values.events import EventBody, RecoveryRequired, RunResult, ToolResult
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio


def at(lives: Lives, point: int, act: Any) -> None:
    """Does something to the agent when so many entries are written."""

    def look(agent: Agent, entry: EventBody | Step) -> None:
        if len(lives.written.entries) == point:
            act(agent)

    lives.before = look


@pytest.mark.parametrize("stride", STRIDES)
async def test_a_run_paused_at_any_write_goes_on_as_if_nothing_had_happened(stride: int) -> None:
    entries = len((await whole()).written.entries)
    paused = 0
    for point in range(1, entries, stride):
        lives = Lives(World("manual"))
        at(lives, point, Agent.pause)
        result = await lives.live()
        lives.before = lambda agent, entry: None
        if result is None:
            paused += 1
            assert lives.written.kinds[-1] == "paused"
            assert lives.agent is not None
            assert lives.agent.memory.get_messages() == []
            assert lives.agent.usage.input_tokens == 0
            result = await lives.live()
        check_end(lives, result)
        # What was under way had ended before the run rested.
        assert not lives.written.of(RecoveryRequired)
        assert sorted(name for name, _ in lives.world.began) == ["act", "look", "save"]
    assert paused > entries // stride // 2


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("stride", STRIDES)
async def test_a_run_stopped_at_any_write_ends_with_a_result_for_each_call(
    resumed: bool, stride: int
) -> None:
    entries = len((await whole()).written.entries)
    for point in range(1, entries - 1, stride):
        lives = Lives(World("manual"), person=Person(how="retry"))
        at(lives, point, Agent.cancel)
        if resumed:
            lives.written.entries[:] = (await cut(point)).written.entries
            at(lives, point + 2, Agent.cancel)
        result = await lives.live()
        assert result is not None
        assert result.status in ("cancelled", "completed")
        assert lives.written.of(RunResult) == [result]
        assert lives.agent is not None
        messages = lives.agent.memory.get_messages()
        check_conversation(messages)
        uses = {use.id for message in messages for use in message.tool_uses}
        assert {each.call_id for each in lives.written.of(ToolResult)} >= uses


async def cut(point: int) -> Lives:
    lives = Lives(World("manual"))
    assert await lives.live(point) is None
    return lives


async def test_a_stop_that_the_process_did_not_outlive_stays_a_stop() -> None:
    lives = Lives(World("manual"))
    lives.ends_after("cancel_requested")
    ends = lives.before

    def stop(agent: Agent, entry: EventBody | Step) -> None:
        if isinstance(entry, Step) and entry.kind == "calls_started":
            agent.cancel()
        ends(agent, entry)

    lives.before = stop
    assert await lives.live() is None
    lives.before = lambda agent, entry: None
    result = await lives.live()
    assert result is not None
    assert (result.status, result.reason) == ("cancelled", "stopped")
    told = {each.call_id: each.text for each in lives.written.of(ToolResult)}
    assert "nobody knows whether it ran" in told["r-1-0"]
    assert not lives.written.of(RecoveryRequired)
    assert lives.world.times("act", begun=True) <= 1


async def test_a_run_that_nobody_writes_down_cannot_be_paused() -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider([go_on, *says("ok")])
    agent = agent_for(provider=provider)
    agent.pause()
    async with asyncio.timeout(20), agent.run_stream("hello") as events:
        await provider.asked.wait()
        with pytest.raises(RuntimeError, match="journal"):
            agent.pause()
        go_on.set()
        assert [event async for event in events][-1].type == "run_result"


async def test_a_run_that_nobody_writes_down_cannot_be_paused_before_it_is_set_up_either() -> None:
    agent = agent_for(provider=ScriptedProvider(says("ok")))
    async with asyncio.timeout(20), agent.run_stream("hello") as events:
        assert agent.is_running
        assert agent.run_id is None
        with pytest.raises(RuntimeError, match="journal"):
            agent.pause()
        assert [event async for event in events][-1].type == "run_result"


async def test_a_paused_run_says_so() -> None:
    lives = Lives()
    written, agent = lives.written, Agent(provider=lives.model)
    written.wrote = lambda entry: agent.pause()
    with pytest.raises(RunPaused, match="paused") as raised:
        await agent.perform("Go", run_id="r", emit=written.emit, journal=written)
    assert raised.value.code == "run_paused"
    assert not agent.is_running
    # It was told to while it was set up, so no model was asked.
    assert written.kinds == ["begun", "paused"]


class Lost(WrittenRun):
    """A journal whose run another process has taken over."""

    async def settled(self) -> None:
        raise LeaseLost("Another process has this run.")


async def test_a_run_that_another_process_has_taken_over_starts_no_tool_and_tells_nothing() -> None:
    lives = Lives(World("manual"))
    written = Lost()
    agent = Agent(provider=lives.model, tools=lives.world.tools(written))
    with pytest.raises(LeaseLost):
        await agent.perform("Go", run_id="r", emit=written.emit, journal=written)
    assert lives.world.times("act", begun=True) == 0
    assert written.kinds[-1] == "calls_started"
    assert not written.of(ToolResult)
    assert agent.memory.get_messages() == []


@pytest.mark.parametrize("pause_first", [True, False])
async def test_a_run_that_is_told_to_rest_and_to_stop_ends(pause_first: bool) -> None:
    lives, is_held = Lives(), True
    written, agent = lives.written, Agent(provider=lives.model)
    run = agent.perform(
        "Go",
        run_id="r",
        emit=written.emit,
        journal=written,
        permit=lambda action: None if is_held else action,
    )
    performing = asyncio.ensure_future(run)
    await asyncio.sleep(0)
    is_held = False
    for say in (agent.pause, agent.cancel) if pause_first else (agent.cancel, agent.pause):
        say()
    result = await asyncio.wait_for(performing, 20)
    assert (result.status, written.of(RunResult)) == ("cancelled", [result])


class Resting(WrittenRun):
    """Its run is stopped while it is written down that it rests."""

    agent: Agent | None = None

    async def settled(self) -> None:
        if self.agent is not None and self.kinds[-1] == "paused":
            self.agent.cancel()


async def test_a_stop_while_a_pause_is_written_down_counts() -> None:
    lives, written = Lives(), Resting()
    written.agent = agent = Agent(provider=lives.model)
    written.wrote = lambda entry: agent.pause()
    run = agent.perform("Go", run_id="r", emit=written.emit, journal=written)
    assert (await asyncio.wait_for(run, 20)).status == "cancelled"


class LostWhileAsking(WrittenRun):
    """A journal whose run is taken over while a tool asks a person."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def settled(self) -> None:
        await self.asked.wait()
        raise LeaseLost("Another process has this run.")


async def test_what_a_tool_asks_as_its_run_is_left_stays_known_as_asked() -> None:
    written = LostWhileAsking()

    async def order(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        await context.ask({"mode": "form", "message": "How many?", "schema": {"type": "object"}})
        return ToolOutput.of("ordered")

    def look(entry: EventBody | Step) -> None:
        if isinstance(entry, Step) and entry.kind == "input_asked":
            written.asked.set()

    allowed = PermissionLevel.ALLOW
    tools = [
        Tool("order", "Orders.", {"type": "object"}, order, allowed, replay="safe"),
        Tool("act", "Acts.", {"type": "object"}, order, allowed),
    ]
    model = ScriptedProvider(calls(("order", {}), ("act", {})))
    written.wrote = look
    agent = Agent(provider=model, tools=tools)
    run = agent.perform("Go", run_id="r", emit=written.emit, journal=written)
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(run, 20)
    assert written.kinds[-1] == "input_asked"


async def test_cancelling_the_task_of_a_run_leaves_it_to_be_resumed() -> None:
    lives = Lives(World("manual"))
    lives.person = None
    written, agent = (
        lives.written,
        Agent(provider=lives.model, tools=lives.world.tools(lives.written)),
    )
    asked = asyncio.Event()

    def look(entry: EventBody | Step) -> None:
        if written.kinds.count("answered") == 2:
            asked.set()

    written.wrote = look
    performing = asyncio.ensure_future(
        agent.perform("Go", run_id="r", emit=written.emit, journal=written)
    )
    async with asyncio.timeout(20):
        await asked.wait()
        performing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await performing
    assert written.kinds[-1] == "answered"
    assert not written.of(RunResult)
    lives.person = Person()
    check_end(lives, await lives.live())
