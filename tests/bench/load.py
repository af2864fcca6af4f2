"""Many chats that are answered at once: what their readers see, and what it costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median

from tests.bench.processes import Running
from tests.bench.readers import (
    Reading,
    events_reading,
    page_reading,
    proxy_reading,
)

PARAGRAPH_TOKENS = 60
REST_SECONDS = 1.0
"""After the first answers, so that a server that adapts to its load does not adapt to these."""

ANSWER_SECONDS = 90.0
"""When an answer is given up."""

Open = Callable[[str, str, int, bool], Awaitable[Reading]]

READERS: dict[str, Open] = {
    "proxy": proxy_reading,
    "events": events_reading,
    "page": page_reading,
}


@dataclass(frozen=True, slots=True)
class Case:
    """So many chats at so many tokens a second each; None is as fast as the model can."""

    name: str
    chats: int
    rate: float | None

    def tokens(self, seconds: float) -> int:
        """Tokens of one answer that takes so long. Without a rate, at some 25,000 for all."""
        rate = self.rate if self.rate is not None else 25_000 / self.chats
        return max(20, int(rate * seconds))


CASES = (
    Case("1x50", 1, 50),
    Case("10xmax", 10, None),
    Case("100x50", 100, 50),
    Case("500x2", 500, 2),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Times in milliseconds. `cpu` is CPU seconds of the server for 1,000 tokens."""

    tokens_per_second: float
    first_p50: float
    first_max: float
    p50: float
    p99: float
    cpu: float
    others: float
    """Share of a core that model server and readers took: near 1 they are what is measured."""
    lost: int
    doubled: int


async def measure(
    case: Case, reader: str, server: Running, model: Running, *, seconds: float, side_bar: bool
) -> Outcome:
    """Sends a message to each chat at the same moment and reads until all are answered."""
    # So that all is loaded.
    await _answer(await _open(READERS[reader], server, 4, 200, None, side_bar))
    await asyncio.sleep(REST_SECONDS)
    tokens = case.tokens(seconds)
    readings = await _open(READERS[reader], server, case.chats, tokens, case.rate, side_bar)
    # Opening the chats counts for nothing, but a stream that is open does.
    cpu, others, began = server.cpu_seconds(), _others(model), time.monotonic()
    await _answer(readings)
    took = time.monotonic() - began
    cpu, others = server.cpu_seconds() - cpu, _others(model) - others
    seen = [reading.seen for reading in readings]
    latencies = sorted(latency for each in seen for latency in each.latencies)
    first = [1000 * (each.first - each.sent) for each in seen]
    return Outcome(
        tokens_per_second=len(latencies) / (max(each.latest for each in seen) - began),
        first_p50=median(first),
        first_max=max(first),
        p50=1000 * latencies[len(latencies) // 2],
        p99=1000 * latencies[len(latencies) * 99 // 100],
        cpu=1000 * cpu / len(latencies),
        others=others / took,
        lost=sum(each.lost for each in seen),
        doubled=sum(each.doubled for each in seen),
    )


async def _open(
    open_reading: Open,
    server: Running,
    chats: int,
    tokens: int,
    rate: float | None,
    side_bar: bool,
) -> list[Reading]:
    pace = f" rate={rate}" if rate is not None else ""
    prompt = f"tokens={tokens}{pace} paragraph={PARAGRAPH_TOKENS}"
    return [await open_reading(server.address, prompt, tokens, side_bar) for _ in range(chats)]


async def _answer(readings: list[Reading]) -> None:
    """Sends all messages at once and reads every answer to its end."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await asyncio.gather(*(reading.send() for reading in readings))
    finally:
        for reading in readings:
            reading.close()


def _others(model: Running) -> float:
    return time.process_time() + model.cpu_seconds()
