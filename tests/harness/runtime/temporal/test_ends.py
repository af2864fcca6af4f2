"""Runs over Temporal that cannot go on: they end in words, and hold nothing up."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.harness.runtime.runtimes import agent_for, ended, first_of, session
from tests.support.scripted_provider import ScriptedProvider, Step, calls, says
from tests.support.temporal_runs import TemporalPlace, crew_of
from web.harness.agent.agent import Agent
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.temporal.backend import TemporalBackend, Where
from web.harness.values.errors import HarnessError
from web.harness.values.events import ApprovalRequired, ErrorReport
from web.harness.values.model import ThinkingChunk

pytestmark = pytest.mark.anyio

SAVE = calls(("save", {"text": "kept"}))


@pytest.fixture
def place(tmp_path: Path) -> TemporalPlace:
    return TemporalPlace(tmp_path)


@asynccontextmanager
async def performed(
    place: TemporalPlace, where: Where, *answers: list[Step]
) -> AsyncIterator[AgentRuntime]:
    """A runtime whose runs go on here, or in a worker with an agent of its own."""
    provider = ScriptedProvider(*answers)

    def make() -> Agent:
        return agent_for(provider=provider)

    async with AsyncExitStack() as stack:
        if where == "elsewhere":
            working = TemporalBackend(place.address)
            stack.push_async_callback(working.aclose)
            await stack.enter_async_context(working.working(crew_of(working, make), grace=0))
        backend = TemporalBackend(place.address, workers=where)
        stack.push_async_callback(backend.aclose)
        yield await stack.enter_async_context(AgentRuntime(make(), backend=backend))


@pytest.mark.parametrize("where", ["here", pytest.param("elsewhere", marks=pytest.mark.full)])
async def test_what_cannot_be_written_down_ends_the_run_as_failed(
    place: TemporalPlace, where: Where
) -> None:
    odd = ThinkingChunk("hm", signature=math.nan)  # type: ignore[arg-type]
    answers = (calls(("double", {"number": 4})), [odd, *says("it is 8")], says("again"))
    async with performed(place, where, *answers) as runtime:
        handle = await runtime.submit("double four")
        result = await ended(handle)
        assert (result.status, result.reason) == ("failed", "not_serialisable")
        assert (await first_of(handle, ErrorReport)).message
        assert await runtime.status() is None
        assert not (await session(runtime.backend)).replayable
        # It holds up nothing.
        assert (await ended(await runtime.submit("and?"))).text == "again"


@pytest.mark.parametrize("where", ["here", pytest.param("elsewhere", marks=pytest.mark.full)])
async def test_a_run_that_cannot_be_read_can_be_ended(
    place: TemporalPlace, where: Where, tmp_path: Path
) -> None:
    async with performed(place, where, SAVE, says("never")) as runtime:
        await first_of(await runtime.submit("hi"), ApprovalRequired)
    with closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
        database.execute("UPDATE harness_executions SET state = '{'")
    async with performed(place, where, says("hello")) as other:
        with pytest.raises(HarnessError) as unread:
            await other.resume()
        assert unread.value.code == "store_corrupt"
        result = await ended(await other.cancel())
        assert (result.status, result.reason) == ("failed", "store_corrupt")
        assert await other.status() is None
        assert (await ended(await other.submit("again"))).text == "hello"
