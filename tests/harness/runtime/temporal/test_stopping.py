"""A person stops a run while there is nobody who could stop it: it ends here, without Temporal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from tests.support.durable_run import durable_agent, ran_in
from tests.support.kept import until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.temporal import TemporalServer, new_temporal_server
from tests.support.temporal_runs import TemporalPlace
from web.harness.agent.agent import Agent
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.sessions.journal import GivenAnswer
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel
from web.harness.values.events import RunResult

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[TemporalServer]:
    server = new_temporal_server()
    yield server
    server.stop()


@asynccontextmanager
async def running(backend: TemporalBackend, agent: Agent) -> AsyncIterator[AgentRuntime]:
    try:
        async with AgentRuntime(agent, backend=backend) as runtime:
            yield runtime
    finally:
        await backend.aclose()


async def stopped(runtime: AgentRuntime, handle: RunHandle) -> RunResult:
    await runtime.cancel(run_id=handle.run_id)
    return await asyncio.wait_for(handle.result(), 30)


async def workflow_is(place: TemporalPlace, run_id: str, status: WorkflowExecutionStatus) -> None:
    """Waits until it is known to Temporal, and stands so."""
    handle = await place.workflow(run_id)

    async def look() -> bool:
        with suppress(RPCError):
            return (await handle.describe()).status is status
        return False

    await until(look, 30)


async def test_a_run_that_was_never_given_to_temporal_is_stopped_without_it(tmp_path: Path) -> None:
    nobody = f"temporal://127.0.0.1:9/default?events=sqlite:///{tmp_path / 'runs.db'}"
    backend, model = TemporalBackend(nobody, patience=600), ScriptedProvider(says("Never."))
    async with running(backend, Agent(provider=model, session_id="s")) as runtime:
        handle = await runtime.submit("Do it.")
        assert (await stopped(runtime, handle)).status == "cancelled"
        assert model.requests == []
        # The session is free for the next one.
        assert await runtime.status() is None


class Unknown:
    """Runs of which nobody knows what people said to them."""

    async def answers(self, run_id: str) -> list[GivenAnswer]:
        raise RuntimeError("This is a fault of the program.")


async def test_a_fault_while_a_stop_is_waited_for_is_not_taken_for_a_stop(tmp_path: Path) -> None:
    backend = TemporalBackend(f"temporal://127.0.0.1:9/default?events=sqlite:///{tmp_path}/a.db")
    waiting = backend._unless_stopped(
        Unknown(),  # type: ignore[arg-type]
        "run",
        asyncio.Event().wait(),
        is_here=True,
    )
    with pytest.raises(RuntimeError, match="fault"):
        await asyncio.wait_for(waiting, 10)


@pytest.mark.full
async def test_a_run_that_was_left_to_workers_who_are_gone_is_stopped_here(tmp_path: Path) -> None:
    place = TemporalPlace(tmp_path)
    backend = TemporalBackend(place.address, workers="elsewhere")
    async with running(backend, durable_agent(tmp_path / "ran")) as runtime:
        handle = await runtime.submit("Do it.")
        await workflow_is(place, handle.run_id, WorkflowExecutionStatus.RUNNING)
        assert (await stopped(runtime, handle)).status == "cancelled"
        await workflow_is(place, handle.run_id, WorkflowExecutionStatus.TERMINATED)
    assert ran_in(tmp_path / "ran") == []


@pytest.mark.full
async def test_what_runs_here_is_stopped_while_temporal_is_gone(
    server: TemporalServer, tmp_path: Path
) -> None:
    place, began, cut = TemporalPlace(tmp_path, server), asyncio.Event(), asyncio.Event()

    async def pay() -> str:
        """Takes its time."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()
        return "never"

    tool = function_tool(pay, permission=PermissionLevel.ALLOW)
    model = ScriptedProvider(calls(("pay", {})), says("Never."))
    backend = TemporalBackend(place.address)
    async with running(backend, Agent(provider=model, tools=[tool])) as runtime:
        handle = await runtime.submit("Pay.")
        await asyncio.wait_for(began.wait(), 20)
        server.kill()
        assert (await stopped(runtime, handle)).status == "cancelled"
        assert cut.is_set()
        assert len(model.requests) == 1
        server.start()
        await workflow_is(place, handle.run_id, WorkflowExecutionStatus.TERMINATED)
