"""How much of some work is done in the event loop, where everybody waits for it.

async with loop_share() as share:
    ...
assert share.of_all < 0.5
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LoopShare:
    """Seconds of CPU, so that other work of the machine counts for nothing."""

    in_loop = 0.0
    all = 0.0

    @property
    def of_all(self) -> float:
        return self.in_loop / self.all


@asynccontextmanager
async def loop_share() -> AsyncIterator[LoopShare]:
    share = LoopShare()
    in_loop, process = time.thread_time(), time.process_time()
    yield share
    share.in_loop, share.all = time.thread_time() - in_loop, time.process_time() - process
