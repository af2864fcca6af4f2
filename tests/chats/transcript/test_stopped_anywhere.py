"""A run with sub-agents is stopped at each of its events in turn, in each way it can be."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Literal

import pytest

from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.parts.channel import Channel, Clock
from web.chats.parts.listed_calls import all_calls
from web.chats.transcript.transcript import Transcript
from web.harness.agent.agent import Agent
from web.harness.subagents import delegate_tool, sub_agent_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import ApprovalRequired, Event, EventBody, RunResult, innermost

pytestmark = pytest.mark.anyio

Way = Literal["stop", "cancel", "close"]


def registry() -> ToolRegistry:
    tools = ToolRegistry([delegate_tool(), sub_agent_tool("helper", "Helps.")])

    @tools.register(permission=PermissionLevel.ALLOW)
    def double(number: int) -> str:
        return str(number * 2)

    @tools.register
    def save(text: str) -> str:
        return f"saved {text}"

    return tools


class Stopped:
    """One run whose page is folded as it goes, and that is stopped at event number `at`."""

    def __init__(self, way: Way, at: int) -> None:
        self.provider = ScriptedProvider(
            calls(("delegate", {"task": "a"}), ("helper", {"task": "b"}), text="Go."),
            calls(("double", {"number": 1}), ("save", {"text": "q"}), text="Hm."),
            calls(("double", {"number": 2})),
            says("a", "b", "c"),
        )
        self.agent = Agent(provider=self.provider, tools=registry())
        self.channel = Channel("chat", Clock("e"))
        self.transcript = Transcript(self.channel)
        self.bodies: list[EventBody] = []
        self._way = way
        self._at = at
        self._closing: asyncio.Future[None] | None = None
        self._run: asyncio.Future[RunResult] | None = None

    async def perform(self) -> None:
        self.transcript.begin("r", "hi", 0.0, "demo:demo")
        self._run = asyncio.ensure_future(self.agent.perform("hi", run_id="r", emit=self._emit))
        async with asyncio.timeout(10):
            await asyncio.wait({self._run})
            if self._closing is not None:
                await self._closing
            await self.agent.aclose()

    def _emit(self, bodies: list[EventBody]) -> None:
        for body in bodies:
            self.bodies.append(body)
            self.transcript.fold("r", [Event(len(self.bodies), 1.0, body)])
            if len(self.bodies) == self._at:
                self._stop()
            inner = innermost(body)
            if isinstance(inner, ApprovalRequired):
                asyncio.get_running_loop().call_soon(self._decide, inner.key)

    def _stop(self) -> None:
        if self._way == "stop":
            self.agent.cancel()
        elif self._way == "close":
            self._closing = asyncio.ensure_future(self.agent.aclose())
        elif self._run is not None:
            self._run.cancel()

    def _decide(self, key: str) -> None:
        with suppress(DecisionRefused):
            self.agent.decide(key, "allow" if self._at % 2 else "deny")


@pytest.mark.parametrize("way", ["stop", "cancel", "close"])
async def test_a_run_with_sub_agents_ends_whole_wherever_it_is_stopped(way: Way) -> None:
    whole = Stopped(way, 0)
    await whole.perform()
    assert len(whole.bodies) > 30
    before = asyncio.all_tasks()
    for at in range(1, len(whole.bodies) + 1):
        stopped = Stopped(way, at)
        await stopped.perform()
        results = [body for body in stopped.bodies if isinstance(body, RunResult)]
        assert results == [stopped.bodies[-1]], "it ends with its one result"
        assert asyncio.all_tasks() == before
        assert stopped.provider.open == 0
        messages = stopped.agent.memory.get_messages()
        for message, following in zip(messages, [*messages[1:], None], strict=True):
            if message.tool_uses:
                assert following is not None
                assert len(following.content) == len(message.tool_uses)
        assert stopped.transcript.status.state == "idle"
        for call in all_calls(stopped.channel):
            assert call.status in ("done", "failed", "denied", "cancelled")
            assert call.nested in ("", "done")
