from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.temporal_runs import CountingCodec, TemporalPlace
from web.harness.agent.agent import Agent
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.runtime.temporal.payloads import MAX_BYTES
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel
from web.harness.values.config import AgentConfig, Limits
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

MEGABYTE = 1_000_000


async def largest_payload(folder: Path, chat: int, result: int) -> int:
    """Of a run in a chat of so many bytes, with a tool result of so many."""

    def large() -> str:
        return "r" * result

    codec, place = CountingCodec(), TemporalPlace(folder)
    backend = TemporalBackend(place.address, converter=codec.converter)
    before = [
        Message(f"m{at}", "assistant" if at % 2 else "user", (TextBlock("c" * (chat // 20)),))
        for at in range(20)
    ]
    agent = Agent(
        AgentConfig(limits=Limits(max_result_chars=2 * result, max_context_tokens=10**9)),
        provider=ScriptedProvider(calls(("large", {})), says("It is large.")),
        tools=[function_tool(large, permission=PermissionLevel.ALLOW)],
        messages=before,
        session_id="s",
    )
    async with AgentRuntime(agent, backend=backend) as runtime:
        answer = await asyncio.wait_for(runtime.run("How large?"), 120)
        assert (answer.text, answer.iterations) == ("It is large.", 2)
        # The model was sent all of it.
        assert sum(message.size for message in agent.memory.get_messages()) > chat + result
    await backend.aclose()
    history = (await (await place.workflow(_run_of(agent))).fetch_history()).to_json()
    assert "ccccc" not in history
    assert "rrrrr" not in history
    return max(codec.sizes)


def _run_of(agent: Agent) -> str:
    return agent.memory.get_messages()[-1].id.rpartition("-")[0]


async def test_what_a_chat_and_its_tools_say_is_in_no_payload(tmp_path: Path) -> None:
    assert await largest_payload(tmp_path, 200_000, 300_000) < 5_000


@pytest.mark.full
async def test_no_payload_is_large_however_large_chat_and_results_are(tmp_path: Path) -> None:
    assert await largest_payload(tmp_path, 20 * MEGABYTE, 10 * MEGABYTE) < MAX_BYTES
