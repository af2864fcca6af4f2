"""What the hooks of an agent are told of its runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.agent.agents import QUICK, agent_for, all_events, decided, of_type
from tests.support.scripted_provider import breaks, calls, says
from web.harness.agent.agent import Agent
from web.harness.tools.hooks import Happening, HookEvent
from web.harness.values.config import Limits
from web.harness.values.errors import AgentBusy
from web.harness.values.events import (
    ApprovalRequired,
    ContextCondensed,
    ErrorReport,
    RunResult,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.model import TextChunk

pytestmark = pytest.mark.anyio


def told_by(agent: Agent) -> list[Happening]:
    told: list[Happening] = []
    for event in HookEvent:
        agent.hooks.on(event, told.append)
    return told


def names(told: list[Happening]) -> list[str]:
    return [happening.event.value for happening in told]


async def test_a_run_with_a_tool_is_told_from_start_to_end_in_order() -> None:
    agent = agent_for(calls(("double", {"number": 4})), says("8"))
    told = told_by(agent)
    async with agent:
        await agent.run("hello")
        assert names(told) == [
            "run_started",
            *("model_call_started", "model_call_ended", "tool_started", "tool_ended"),
            *("model_call_started", "model_call_ended", "run_ended"),
        ]
        assert len({happening.run_id for happening in told}) == 1
        bodies = [happening.body for happening in told]
        assert isinstance(bodies[3], ToolCallStart)
        assert isinstance(bodies[4], ToolResult)
        assert isinstance(bodies[-1], RunResult)
    assert names(told)[-1] == "agent_closed"


async def test_failures_retries_and_questions_are_told() -> None:
    agent = agent_for(breaks("x"), calls(("save", {"text": "a"})), breaks(transient=False))
    told = told_by(agent)
    await decided(agent, "allow")
    assert names(told) == [
        "run_started",
        *("model_call_started", "model_call_ended", "model_call_started", "model_call_ended"),
        *("approval_required", "tool_started", "tool_ended"),
        *("model_call_started", "model_call_ended", "error", "run_ended"),
    ]
    assert isinstance(told[5].body, ApprovalRequired)
    assert isinstance(told[-2].body, ErrorReport)


async def test_each_model_call_that_starts_is_told_to_end_also_when_it_is_stopped() -> None:
    agent = agent_for([TextChunk("x"), asyncio.Event()])
    told = told_by(agent)
    async with agent.run_stream("hello") as events:
        await anext(events)
        agent.cancel()
        async for _ in events:
            pass
    await agent.aclose()
    assert names(told) == [
        *("run_started", "model_call_started", "model_call_ended", "run_ended", "agent_closed")
    ]


async def test_condensing_is_told_with_the_tokens_before_and_after() -> None:
    agent = agent_for(
        *[says("word " * 400)] * 12,
        config=replace(QUICK, limits=Limits(max_context_tokens=2_000)),
    )
    told = told_by(agent)
    events = []
    for _ in range(12):
        events += await all_events(agent, "more " * 50)
    condensed = [each.body for each in told if each.event is HookEvent.CONTEXT_CONDENSED]
    assert condensed == of_type(events, ContextCondensed)
    first = condensed[0]
    assert isinstance(first, ContextCondensed)
    assert first.before > first.after > 0


async def test_a_hook_that_fails_or_hangs_neither_fails_nor_holds_a_run() -> None:
    agent = agent_for(calls(("double", {"number": 4})), says("8"))
    hanging = asyncio.Event()

    async def hangs(happening: Happening) -> None:
        hanging.set()
        await asyncio.Event().wait()

    def fails(happening: Happening) -> None:
        raise RuntimeError("the hook is broken")

    agent.hooks.on(HookEvent.RUN_STARTED, fails)
    agent.hooks.on(HookEvent.TOOL_STARTED, hangs)
    began = time.monotonic()
    result = await agent.run("hello")
    assert (result.status, result.text) == ("completed", "8")
    assert hanging.is_set()
    assert time.monotonic() - began < 8, "a run waits a second at most for its hooks"


async def test_a_session_can_be_saved_when_the_run_has_ended(tmp_path: Path) -> None:
    agent = agent_for(says("ok"))
    saved: list[str] = []

    @agent.hooks.on(HookEvent.RUN_ENDED)
    async def save(happening: Happening) -> None:
        saved.append(await agent.save_session(storage_dir=tmp_path))

    @agent.hooks.on(HookEvent.RUN_STARTED)
    async def too_early(happening: Happening) -> None:
        with pytest.raises(AgentBusy):
            await agent.save_session(storage_dir=tmp_path)
        saved.append("refused")

    await agent.run("hello")
    assert saved == ["refused", agent.session_id]
    async with await Agent.load_session(agent.session_id, storage_dir=tmp_path) as restored:
        assert [message.text for message in restored.memory.get_messages()] == ["hello", "ok"]
