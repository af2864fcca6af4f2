"""What the library itself costs over thousands of turns with the demo model."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import AsyncGenerator

from web.harness.agent.agent import Agent
from web.harness.providers.demo.provider import DemoProvider
from web.harness.tools.hooks import HookEvent
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest, Provider, TextChunk
from web.harness.values.usage import Usage

WINDOW = 400
BEFORE = 100
"""Turns in which everything is used for the first time."""


class Terse:
    """A model that takes no time of its own."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        yield [TextChunk("No."), ModelDone("end_turn", Usage(10, 1))]

    async def aclose(self) -> None:
        pass


def agent_of_many_turns(provider: Provider) -> Agent:
    agent = Agent(provider=provider)
    agent.hooks.on(HookEvent.RUN_ENDED, lambda happening: None)
    return agent


async def late_against_early(turns: int) -> float:
    """What the turns of the last window cost for each second of the first one, in CPU time.

    It is the library's own: a model's would hide what grows there.
    """
    seconds: list[float] = []
    gc.collect()
    async with agent_of_many_turns(Terse()) as agent:
        for number in range(turns):
            began = time.process_time()
            result = await agent.run(f"refuse {number}" if number % 50 == 0 else "refuse")
            seconds.append(time.process_time() - began)
            assert result.status == "completed"
    early = statistics.median(seconds[BEFORE : BEFORE + WINDOW])
    return statistics.median(seconds[-WINDOW:]) / early


async def left_after(turns: int) -> int:
    """Bytes that are held once the conversation of so many turns is emptied."""
    async with agent_of_many_turns(DemoProvider(pace=0)) as agent:
        for _ in range(BEFORE):
            await agent.run("refuse")
        agent.memory.set_messages([])
        gc.collect()
        tracemalloc.start(1)
        try:
            for _ in range(turns):
                await agent.run("refuse")
            agent.memory.set_messages([])
            # The provider holds on to the conversation that it was asked about last.
            await agent.run("refuse")
            gc.collect()
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
