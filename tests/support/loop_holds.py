"""How long one thing holds the event loop, where everybody waits for it.

async with loop_holds() as holds:
    ...
assert holds.longest < 0.05
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

BEAT_SECONDS = 0.001


class LoopHolds:
    """Seconds of CPU of the loop's thread, so that other work of the machine counts for nothing."""

    longest = 0.0


@asynccontextmanager
async def loop_holds() -> AsyncIterator[LoopHolds]:
    """Garbage is not looked for within the block: that is as long as all that is alive is much."""
    holds = LoopHolds()

    async def beat() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(BEAT_SECONDS)
            holds.longest = max(holds.longest, time.thread_time() - before)

    gc.disable()
    beating = asyncio.ensure_future(beat())
    try:
        # It has to beat before and after what is measured.
        await asyncio.sleep(2 * BEAT_SECONDS)
        yield holds
        await asyncio.sleep(2 * BEAT_SECONDS)
    finally:
        beating.cancel()
        await asyncio.wait({beating})
        gc.enable()
