"""Records histories of workflows: `python -m tests.support.record_histories`.

They are what workflows of this version left, and have to be replayed by every later one: record
new ones beside them where the workflow learns something, and leave the old as they are.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from tests.support.durable_run import durable_agent
from tests.support.outages import Payments, outage, paying
from tests.support.scripted_provider import ScriptedProvider, breaks, says
from tests.support.temporal import new_temporal_server, temporal_server
from tests.support.temporal_runs import TemporalPlace, claim_for_the_dead, crew_of
from web.harness.agent.agent import Agent
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import Turn, executions_of
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.runtime.temporal.payloads import Bounds
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import GivenAnswer, Submission
from web.harness.tools.tool import ToolContext, ToolOutput
from web.harness.values.config import AgentConfig, Retry
from web.harness.values.events import ApprovalRequired, RecoveryRequired
from web.harness.values.messages import JsonObject

HISTORIES = Path(__file__).parents[1] / "harness" / "runtime" / "temporal" / "histories"

Scenario = Callable[[TemporalPlace, Path], Awaitable[str]]
"""Has something happen, and returns the id of the run."""


async def plain(place: TemporalPlace, folder: Path) -> str:
    """Two answers, the first of which fails."""
    provider = ScriptedProvider(breaks("Half"), says("Whole."))
    config = AgentConfig(retry=Retry(attempts=2, backoff_seconds=0.001))
    agent = Agent(config, provider=provider, session_id="s")
    return await _run(AgentRuntime(agent, backend=TemporalBackend(place.address)))


async def approval(place: TemporalPlace, folder: Path) -> str:
    """Two calls beside each other, and one that a person allows."""
    agent = durable_agent(folder / "ran")
    return await _run(AgentRuntime(agent, backend=TemporalBackend(place.address)))


async def cancelled(place: TemporalPlace, folder: Path) -> str:
    """Stopped while it waits for a person."""
    backend = TemporalBackend(place.address)
    async with AgentRuntime(durable_agent(folder / "ran"), backend=backend) as runtime:
        handle = await runtime.submit("Do it.")
        await seen(handle, ApprovalRequired)
        await runtime.cancel(run_id=handle.run_id)
        await handle.result()
    await backend.aclose()
    return handle.run_id


async def uncertain(place: TemporalPlace, folder: Path) -> str:
    """Cut off while a call that may not be repeated runs; a person has it run again."""
    stuck = asyncio.Event()
    cut = durable_agent(folder / "ran", "manual")
    save = cut.tools.get("save")
    assert save is not None

    async def handler(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        stuck.set()
        await asyncio.Event().wait()
        return ToolOutput.of("never")

    cut.tools.remove("save")
    cut.tools.add(dataclasses.replace(save, handler=handler))
    backend = TemporalBackend(place.address)
    async with AgentRuntime(cut, backend=backend) as runtime:
        handle = await runtime.submit("Do it.")
        await runtime.approve(await seen(handle, ApprovalRequired))
        await stuck.wait()
        runtime.pause_seconds = 0.0
    agent = durable_agent(folder / "ran", "manual")
    async with AgentRuntime(agent, backend=backend) as runtime:
        resumed = await runtime.resume(wait=5)
        await runtime.resolve_tool(await seen(resumed, RecoveryRequired), "retry")
        await resumed.result()
    await backend.aclose()
    return handle.run_id


async def continued(place: TemporalPlace, folder: Path) -> str:
    """So long that it went on in a new history, of which this is the last."""
    backend = TemporalBackend(place.address, bounds=Bounds(events=25))
    return await _run(AgentRuntime(durable_agent(folder / "ran"), backend=backend))


async def left(place: TemporalPlace, folder: Path) -> str:
    """Given back by a worker that ended while a person was asked, and claimed by another."""
    working = TemporalBackend(place.address)
    waiting = TemporalBackend(place.address, workers="elsewhere")
    crew = crew_of(working, lambda: durable_agent(folder / "ran"))
    async with AgentRuntime(durable_agent(folder / "unused"), backend=waiting) as runtime:
        async with working.working(crew, grace=10):
            handle = await runtime.submit("Do it.")
            asked = await seen(handle, ApprovalRequired)
        async with working.working(crew, grace=0):
            await runtime.approve(asked)
            await handle.result()
    await waiting.aclose()
    await working.aclose()
    return handle.run_id


async def taken(place: TemporalPlace, folder: Path) -> str:
    """Taken from a process that died without a word."""
    backend = TemporalBackend(place.address)
    async with AgentRuntime(durable_agent(folder / "ran"), backend=backend) as runtime:
        executions = executions_of(await backend.open())
        await executions.submit(Submission("run", LOCAL_IDENTITY, "s", "r", "Do it."))
        await claim_for_the_dead(place, "run")
        turn = Turn(runtime.agent, Submission("run", LOCAL_IDENTITY, "s", "r", "Do it."))
        performing = asyncio.ensure_future(backend.perform(turn))
        await executions.answer("run", GivenAnswer("cancel", "stop"))
        await performing
    await backend.aclose()
    return "run"


async def kept(place: TemporalPlace, folder: Path) -> str:
    """Given up by a server that was gone, and claimed again by the worker that had it."""
    place.server, payments = new_temporal_server(), Payments()
    async with paying(place, payments, workers=1) as handle:
        await outage(place, handle.run_id)
        payments.go_on.set()
        await handle.result()
    return handle.run_id


SCENARIOS: dict[str, Scenario] = {
    each.__name__: each
    for each in (plain, approval, cancelled, uncertain, left, continued, taken, kept)
}


async def seen(handle: RunHandle, kind: type[Any]) -> Any:
    async with asyncio.timeout(20), aclosing(handle.stream()) as events:
        async for event in events:
            if isinstance(event.body, kind):
                return event.body
    raise AssertionError(f"There was no {kind.__name__}.")


async def _run(runtime: AgentRuntime) -> str:
    """Performs one, and says yes to what is asked."""
    async with runtime:
        handle = await runtime.submit("Do it.")
        async with aclosing(handle.stream()) as events:
            async for event in events:
                if isinstance(event.body, ApprovalRequired):
                    await runtime.approve(event.body)
        await handle.result()
    await runtime.backend.aclose()
    return handle.run_id


def _without_machine(history: str) -> str:
    """The same without the names of processes and machines."""
    return re.sub(r'"[0-9]+@[^"]*"', '"worker"', history)


async def main(names: list[str]) -> None:
    HISTORIES.mkdir(exist_ok=True)
    for name in names or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            place = TemporalPlace(Path(folder))
            run_id = await SCENARIOS[name](place, Path(folder))
            history = await (await place.workflow(run_id)).fetch_history()
        if place.server is not temporal_server():
            place.server.stop()
        form = json.loads(_without_machine(history.to_json()))
        file = HISTORIES / f"{name}.json"
        file.write_text(json.dumps(form, indent=1) + "\n")
        print(f"{file.name}: {len(history.events)} events, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
