"""The events of one turn as a stream that whoever reads it may leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from web.harness.agent.answer import Emit
from web.harness.values.events import Event, EventBody, RunResult

Turn = Callable[[Emit], Coroutine[None, None, RunResult]]


@asynccontextmanager
async def stream_turn(
    turn: Turn, ended: Callable[[], None]
) -> AsyncIterator[AsyncGenerator[Event, None]]:
    """Runs a turn that is handed where its events go, and gives them numbered from 1.

    Leaving the block early stops the turn and waits for its end. `ended` is called once, also for
    a turn that had no time to start.
    """
    queue: asyncio.Queue[EventBody | None] = asyncio.Queue()

    def emit(bodies: list[EventBody]) -> None:
        for body in bodies:
            queue.put_nowait(body)

    def close(_: object) -> None:
        ended()
        queue.put_nowait(None)

    task = asyncio.ensure_future(turn(emit))
    task.add_done_callback(close)
    events = _numbered(queue, task)
    try:
        yield events
    finally:
        await events.aclose()
        task.cancel()
        await asyncio.wait({task})


async def _numbered(
    queue: asyncio.Queue[EventBody | None], task: asyncio.Future[RunResult]
) -> AsyncGenerator[Event, None]:
    number = 0
    while (body := await queue.get()) is not None:
        number += 1
        yield Event(number, time.time(), body)
    await task
