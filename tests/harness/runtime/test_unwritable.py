"""What JSON cannot hold ends a run in words at worst, and never leaves it under way."""

from __future__ import annotations

import math

import pytest

from tests.harness.runtime.runtimes import ended, first_of, runtime_for, session
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.runtime.sql import SQLiteBackend
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.events import ErrorReport, ToolResult
from web.harness.values.messages import TextBlock, ToolUseBlock
from web.harness.values.model import ModelDone, ThinkingChunk
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "number",
    [math.nan, math.inf, -math.inf, 10**2_000],
    ids=["nan", "infinite", "below all", "huge"],
)
async def test_a_number_that_json_cannot_hold_is_refused_to_the_model(
    backend: SQLiteBackend, number: float
) -> None:
    ran: list[float] = []
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def take(number: float) -> str:
        ran.append(number)
        return "taken"

    use = ToolUseBlock("", "take", {"number": number, "deep": [{"x": number}]})
    provider = ScriptedProvider([ModelDone("tool_use", Usage(1, 1), (use,))], says("sorry"))
    async with runtime_for(backend, provider=provider, tools=registry) as runtime:
        handle = await runtime.submit("hi")
        assert (await ended(handle)).text == "sorry"
        assert "not a JSON object" in (await first_of(handle, ToolResult)).text
        assert ran == []
        assert await runtime.status() is None


async def test_what_cannot_be_written_down_ends_the_run_as_failed(backend: SQLiteBackend) -> None:
    odd = ThinkingChunk("hm", signature=math.nan)  # type: ignore[arg-type]
    provider = ScriptedProvider(
        calls(("double", {"number": 4})), [odd, *says("it is 8")], says("again")
    )
    async with runtime_for(backend, provider=provider) as runtime:
        handle = await runtime.submit("double four")
        result = await ended(handle)
        assert (result.status, result.reason) == ("failed", "not_serialisable")
        report = await first_of(handle, ErrorReport)
        assert report.message
        assert await runtime.status() is None
        kept = await session(backend)
        assert not kept.replayable
        texts = [
            block.text
            for each in kept.history
            for block in each.content
            if isinstance(block, TextBlock)
        ]
        assert texts == ["double four"]
        assert (await runtime.run("and?")).text == "again"
