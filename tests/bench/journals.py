"""What it costs to write runs down: beside a run that is not, and with a hundred at a time."""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

import uvloop

from tests.bench.targets import Verdict
from tests.support.postgres import new_server
from tests.support.steps import STATE, message, round_of_calls, submission
from web.harness.sessions.journal import Executions, RunJournal, Step
from web.harness.sessions.opening import Stores, open_stores
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.values.events import Event, TextDelta, ToolCallStart, ToolResult

STEP_SECONDS = 0.05
STEPS = 20
RUNS = 100
TOKENS_A_SECOND = 50
LOAD_SECONDS = 10.0
LONG_ROUNDS = 2_500
"""Of four steps each."""

T = TypeVar("T")


class Bench:
    """A store that is open, and the age in seconds at which each token was shown."""

    def __init__(self) -> None:
        self.ages: list[float] = []
        self.stores: Stores

    def listener(self, _: str, events: Sequence[Event]) -> None:
        now = time.monotonic()
        for event in events:
            if isinstance(event.body, TextDelta):
                self.ages.append(now - float(event.body.text))

    @property
    def executions(self) -> Executions:
        assert self.stores.executions is not None
        return self.stores.executions

    async def begin(self) -> tuple[str, RunJournal]:
        run_id = uuid.uuid4().hex
        await self.executions.submit(submission(run_id, run_id))
        return run_id, (await self.executions.begin(run_id))[1]

    async def steps_beside_memory(self) -> float:
        """A run of tools that may not be repeated: each waits until its start is written down."""
        run_id, journal = await self.begin()
        began = time.monotonic()
        for at in range(STEPS):
            call, answered, started, settled = round_of_calls(at)
            journal.write(call, STATE)
            journal.write(answered, STATE)
            self.stores.events.append(run_id, [ToolCallStart(f"c{at}", "look", {}, f"a{at}")])
            journal.write(started, STATE)
            await journal.settled()
            await asyncio.sleep(STEP_SECONDS)
            self.stores.events.append(run_id, [ToolResult(f"c{at}", "look", "found")])
            journal.write(settled, STATE)
        await journal.settled()
        took = time.monotonic() - began
        began = time.monotonic()
        for _ in range(STEPS):
            await asyncio.sleep(STEP_SECONDS)
        return took / (time.monotonic() - began)

    async def tokens(self, runs: int) -> tuple[list[float], float]:
        """Ages of the tokens of so many runs at once, and transactions a second."""
        log = self.stores.events
        assert isinstance(log, SqlEventLog)
        begun = [await self.begin() for _ in range(runs)]
        before, until = log.batches, time.monotonic() + LOAD_SECONDS
        await asyncio.gather(*(self._answer(*each, at, until) for at, each in enumerate(begun)))
        return self.ages, (log.batches - before) / LOAD_SECONDS

    async def _answer(self, run_id: str, journal: RunJournal, told: int, until: float) -> None:
        """Tokens, and once a second a tool whose start has to be written down first."""
        while time.monotonic() < until:
            self.stores.events.append(run_id, [TextDelta(f"{time.monotonic()}", "m")])
            told += 1
            if told % TOKENS_A_SECOND == 0:
                journal.write(Step("calls_started"), STATE)
                await journal.settled()
            await asyncio.sleep(1 / TOKENS_A_SECOND)
        await journal.settled()

    async def long_run(self) -> float:
        run_id, journal = await self.begin()
        journal.write(Step("begun", messages=(message("u"),)), STATE)
        for at in range(LONG_ROUNDS):
            for each in round_of_calls(at):
                journal.write(each, STATE)
        await journal.settled()
        began = time.monotonic()
        recorded = await self.executions.recorded(run_id)
        assert recorded is not None
        assert len(recorded.messages) == 2 * LONG_ROUNDS + 1
        return time.monotonic() - began


def journal_verdicts() -> Iterable[Verdict]:
    """Measures SQLite, and PostgreSQL as it comes: what is acknowledged is on the disk."""
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder:
        yield from _verdicts("sqlite", f"sqlite:///{Path(folder) / 'bench.sqlite3'}")
    yield from _verdicts("postgresql", str(new_server().get_uri()))


def _verdicts(name: str, address: str) -> Iterable[Verdict]:
    ratio = median(_opened(address, Bench.steps_beside_memory) for _ in range(3))
    yield Verdict(f"{name}: {STEPS} steps of 50 ms, beside memory", ratio, 1.15, "times")
    for runs, most in ((1, 60), (RUNS, 300)):
        ages, rate = _opened(address, lambda bench, runs=runs: bench.tokens(runs))  # type: ignore[misc]
        p99 = quantiles(ages, n=100)[98]
        yield Verdict(f"{name}: {runs} runs, a token later, p50", median(ages) * 1e3, 60, "ms")
        yield Verdict(f"{name}: {runs} runs, a token later, p99", p99 * 1e3, most, "ms")
        yield Verdict(f"{name}: {runs} runs, transactions", rate, 22, "a second")
    seconds = _opened(address, Bench.long_run)
    yield Verdict(f"{name}: {4 * LONG_ROUNDS:,} steps read", seconds, 1.0, "s")


def _opened(address: str, measure: Callable[[Bench], Awaitable[T]]) -> T:
    async def main() -> T:
        bench = Bench()
        bench.stores = await open_stores(address, now=time.time, listener=bench.listener)
        try:
            return await measure(bench)
        finally:
            await bench.stores.aclose()

    return uvloop.run(main())
