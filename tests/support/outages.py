"""A run whose calls may not be repeated, while Temporal is gone for longer than workers may be
silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.service import RPCError

from tests.support.kept import until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.temporal_runs import TemporalPlace, crew_of
from web.harness.agent.agent import Agent
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.temporal.backend import TemporalBackend, Where
from web.harness.runtime.temporal.payloads import Times
from web.harness.tools.functions import function_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel

TIMES = Times(heartbeat=0.5, start=20.0, patience=0.2)
"""Temporal takes longer than that to start; workers come back to it within ten seconds."""

TIMED_OUT = EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT


class Payments:
    """What a tool does in whatever worker; it may not be repeated."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.cut = 0

    def agent(self) -> Agent:
        async def pay(whom: str) -> str:
            """Pays somebody."""
            self.paid.append(whom)
            if len(self.paid) == 2:
                self.began.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cut += 1
                raise
            return f"{whom} has it"

        tools = ToolRegistry([function_tool(pay, permission=PermissionLevel.ALLOW)])
        both = calls(("pay", {"whom": "Ann"}), ("pay", {"whom": "Bob"}))
        model = ScriptedProvider(both, says("Both have it."))
        return Agent(provider=model, tools=tools, session_id="s")


@asynccontextmanager
async def paying(
    place: TemporalPlace, payments: Payments, workers: int, times: Times | None = TIMES
) -> AsyncIterator[RunHandle]:
    """A run whose two calls are under way, with so many workers, or here without any."""
    where: Where = "elsewhere" if workers else "here"
    async with AsyncExitStack() as stack:
        for _ in range(workers):
            backend = TemporalBackend(place.address)
            stack.push_async_callback(backend.aclose)
            crew = crew_of(backend, payments.agent)
            await stack.enter_async_context(backend.working(crew, grace=0))
        waiting = TemporalBackend(place.address, workers=where, times=times)
        stack.push_async_callback(waiting.aclose)
        runtime = AgentRuntime(payments.agent(), backend=waiting)
        await stack.enter_async_context(runtime)
        handle = await runtime.submit("Pay both.")
        await asyncio.wait_for(payments.began.wait(), 20)
        yield handle


async def outage(place: TemporalPlace, run_id: str) -> None:
    """Temporal is killed and started again, and believes the worker of a run dead; returns once one
    has it again."""
    handle = await place.workflow(run_id)

    async def events() -> list[HistoryEvent]:
        with suppress(RPCError):
            return list((await handle.fetch_history()).events)
        return []

    async def silent() -> bool:
        return any(each.event_type == TIMED_OUT for each in await events())

    async def claimed() -> bool:
        told = await events()
        first = next(at for at, each in enumerate(told) if each.event_type == TIMED_OUT)
        return any(map(_is_claimed, told[first:]))

    while True:
        place.server.kill()
        place.server.start()
        # The worker may be back before its silence is noticed.
        with suppress(TimeoutError):
            await until(silent, 5)
            break
    await until(claimed, 60)


def _is_claimed(event: HistoryEvent) -> bool:
    results = event.activity_task_completed_event_attributes.result.payloads
    return any(b'"fence"' in result.data for result in results)
