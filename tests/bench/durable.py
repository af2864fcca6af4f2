"""What `AgentRuntime` costs beside `Agent`: the same runs, written down at each step."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

import uvloop

from tests.bench.targets import Verdict
from tests.support.postgres import new_server
from tests.support.temporal import new_queue, temporal_server
from web.harness.agent.agent import Agent
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import Backend, executions_of
from web.harness.runtime.sql import PostgresBackend, SQLiteBackend
from web.harness.sessions.event_log import Listener
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.tools.functions import function_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ReplayPolicy
from web.harness.values.config import AgentConfig, Limits
from web.harness.values.events import Event, EventBody, TextDelta
from web.harness.values.messages import ToolUseBlock
from web.harness.values.model import (
    ModelChunk,
    ModelDone,
    ModelRequest,
    Provider,
    TextChunk,
    ToolUseChunk,
)
from web.harness.values.usage import Usage

STEP_SECONDS = 0.05
STEPS = 20
RUNS = 100
TOKENS_A_SECOND = 20
LOAD_SECONDS = 10.0
REPEATS = 5
LONG_ROUNDS = 2_500
"""Of four steps each."""

CONFIG = AgentConfig(
    limits=Limits(max_iterations=100_000, max_repeats=None, max_context_tokens=100_000_000)
)

T = TypeVar("T")
Opened = Callable[[Listener | None], Backend]


class Calling:
    """A model that takes no time: it calls `work` so many times, then it sets `asked` and answers,
    or never does."""

    def __init__(self, calls: int, *, answers: bool = True) -> None:
        self.asked = asyncio.Event()
        self._left = calls
        self._answers = answers

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        if self._left:
            self._left -= 1
            arguments = {"number": self._left}
            use = ToolUseBlock("", "work", arguments)
            yield [
                ToolUseChunk(0, "", "work", json.dumps(arguments)),
                ModelDone("tool_use", Usage(10, 1), (use,)),
            ]
            return
        self.asked.set()
        if not self._answers:
            await asyncio.Event().wait()
        yield [TextChunk("Done."), ModelDone("end_turn", Usage(10, 1))]

    async def aclose(self) -> None:
        pass


class Telling:
    """A model whose every token is the moment at which it was sent."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(int(TOKENS_A_SECOND * LOAD_SECONDS)):
            await asyncio.sleep(max(0.0, began + number / TOKENS_A_SECOND - loop.time()))
            yield [TextChunk(f"{time.monotonic()} ")]
        yield [ModelDone("end_turn", Usage(10, 1))]

    async def aclose(self) -> None:
        pass


class Ages:
    """How old each token was when it was shown, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def listener(self, _: str, events: Sequence[Event]) -> None:
        self.emit(event.body for event in events)

    def emit(self, bodies: Iterable[EventBody]) -> None:
        now = time.monotonic()
        for body in bodies:
            if isinstance(body, TextDelta):
                self.seconds += [now - float(word) for word in body.text.split()]

    def p(self, percent: int) -> float:
        """In milliseconds."""
        return quantiles(self.seconds, n=100)[percent - 1] * 1e3


def agent_of(provider: Provider, replay: ReplayPolicy, seconds: float = STEP_SECONDS) -> Agent:
    async def work(number: int) -> str:
        await asyncio.sleep(seconds)
        return str(number)

    allowed = PermissionLevel.ALLOW
    tools = ToolRegistry([function_tool(work, permission=allowed, replay=replay)])
    return Agent(CONFIG, provider=provider, tools=tools)


async def steps_in_memory() -> float:
    """Seconds of a run of tools that nobody writes down."""
    async with agent_of(Calling(STEPS), "manual") as agent:
        began = time.monotonic()
        result = await agent.run("go")
        assert result.status == "completed", result
        return time.monotonic() - began


async def steps_written(opened: Opened) -> float:
    """The same written down: each start is on the disk before the tool begins.

    The server wrote nothing in the second before, so that it may hurry.
    """
    backend = opened(None)
    await backend.open()
    async with AgentRuntime(agent_of(Calling(STEPS), "manual"), backend=backend) as runtime:
        began = time.monotonic()
        result = await runtime.run("go")
        took = time.monotonic() - began
        assert result.status == "completed", result
    await backend.aclose()
    return took


async def tokens_in_memory(runs: int) -> Ages:
    ages = Ages()

    async def one(number: int) -> None:
        async with Agent(CONFIG, provider=Telling()) as agent:
            await agent.perform("go", run_id=f"run {number}", emit=ages.emit)

    await asyncio.gather(*map(one, range(runs)))
    return ages


async def tokens_written(opened: Opened, runs: int) -> tuple[Ages, float]:
    """What so many runs at once show, and how many transactions a second that takes."""
    ages = Ages()
    backend = opened(ages.listener)
    log = (await backend.open()).events
    assert isinstance(log, SqlEventLog)

    async def one(number: int) -> None:
        agent = Agent(CONFIG, provider=Telling(), session_id=f"session-{number}")
        async with AgentRuntime(agent, backend=backend) as runtime:
            result = await runtime.run("go")
            assert result.status == "completed", result

    before, began = log.batches, time.monotonic()
    await asyncio.gather(*map(one, range(runs)))
    rate = (log.batches - before) / (time.monotonic() - began)
    await backend.aclose()
    assert len(ages.seconds) == runs * int(TOKENS_A_SECOND * LOAD_SECONDS)
    return ages, rate


async def resumed_after(opened: Opened, rounds: int) -> tuple[int, float]:
    """Steps of a long run that was cut off, and the seconds until it asks its model again."""
    backend = opened(None)
    first = Calling(rounds, answers=False)
    runtime = AgentRuntime(agent_of(first, "safe", 0), backend=backend)
    runtime.pause_seconds = 0.0
    handle = await runtime.submit("go", session_id="long")
    await first.asked.wait()
    await runtime.aclose()
    await backend.aclose()

    backend, second = opened(None), Calling(0)
    execution = await executions_of(await backend.open()).find(handle.run_id)
    assert execution is not None
    async with AgentRuntime(agent_of(second, "safe", 0), backend=backend) as runtime:
        began = time.monotonic()
        handle = await runtime.resume("long")
        await second.asked.wait()
        took = time.monotonic() - began
        assert (await handle.result()).text == "Done."
    await backend.aclose()
    return execution.steps, took


def durable_verdicts() -> Iterable[Verdict]:
    """Measures SQLite, PostgreSQL as it comes (what is acknowledged is on the disk), and Temporal
    with SQLite."""
    memory = _median(steps_in_memory)
    shown = {runs: uvloop.run(tokens_in_memory(runs)) for runs in (1, RUNS)}
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder:
        path = Path(folder) / "bench.sqlite3"
        yield from _of_sql(
            "sqlite",
            lambda heard: SQLiteBackend(path, listener=heard),
            memory,
            shown,
            # A file takes one transaction at a time, and here a hundred runs begin and end at once.
            p99=600,
        )
        address = str(new_server().get_uri())
        yield from _of_sql(
            "postgresql",
            lambda heard: PostgresBackend(address, listener=heard),
            memory,
            shown,
            p99=300,
        )
        took = _median(lambda: steps_written(_temporal(Path(folder))))
        later = (took - memory) / STEPS * 1e3
        yield Verdict("temporal: a step of 50 ms takes longer by", later, 250, "ms")


def _of_sql(
    name: str, opened: Opened, memory: float, shown: dict[int, Ages], *, p99: float
) -> Iterable[Verdict]:
    took = _median(lambda: steps_written(opened))
    yield Verdict(f"{name}: {STEPS} steps of 50 ms, beside memory", took / memory, 1.15, "times")
    for runs, most in ((1, 60), (RUNS, p99)):
        ages, rate = uvloop.run(tokens_written(opened, runs))
        beside = f"{name}: {runs} runs, a token later"
        yield Verdict(f"{beside}, p50", ages.p(50) - shown[runs].p(50), 60, "ms")
        yield Verdict(f"{beside}, p99", ages.p(99) - shown[runs].p(99), most, "ms")
        yield Verdict(f"{name}: {runs} runs, transactions", rate, 22, "a second")
    steps, seconds = uvloop.run(resumed_after(opened, LONG_ROUNDS))
    yield Verdict(f"{name}: a run of {steps:,} steps resumed", seconds, 1.0, "s")


def _median(measure: Callable[[], Coroutine[None, None, float]]) -> float:
    return median(uvloop.run(measure()) for _ in range(REPEATS))


def _temporal(folder: Path) -> Opened:
    # It loads a library of 40 MB.
    from web.harness.runtime.temporal.backend import TemporalBackend

    address = f"temporal://{temporal_server().address}/default"
    events = f"sqlite:///{folder / 'events.sqlite3'}"
    queue = new_queue()
    return lambda heard: TemporalBackend(f"{address}?events={events}&queue={queue}", listener=heard)
