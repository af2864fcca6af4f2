"""What a program has started and that has left its process group, as `setsid` and daemons do.

On Linux such processes are found by a variable that the program was given and that they inherit.
What also clears its environment, runs as another user, or was started by a service on the program's
behalf is not found; nor is anything on systems without /proc.
"""

from __future__ import annotations

import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio

from web.harness.tools.marks import MARK, POLL_SECONDS, kill_marked, signal_marked
from web.harness.tools.threads import run_in_thread


@asynccontextmanager
async def no_strays(*, ask_seconds: float = 0.0) -> AsyncIterator[dict[str, str]]:
    """For the whole life of a program: gives the variable that its environment must hold.

    After the block, whatever ends it, nothing that has inherited the variable lives on. With
    `ask_seconds` they get SIGTERM first, and so long to end by themselves, unless the caller is
    cancelled meanwhile; then they are killed. Where there are none it takes one look at /proc.
    """
    mark = uuid.uuid4().hex
    try:
        yield {MARK: mark}
    finally:
        try:
            if ask_seconds:
                with anyio.CancelScope(shield=True):
                    await _ask(mark, ask_seconds)
        finally:
            # To its end, however often the caller is cancelled.
            await run_in_thread(partial(kill_marked, mark), finish=True)


async def _ask(mark: str, seconds: float) -> None:
    if await run_in_thread(partial(signal_marked, mark, signal.SIGTERM)) == 0:
        return
    with anyio.move_on_after(seconds):
        while await run_in_thread(partial(signal_marked, mark, 0)):  # noqa: ASYNC110
            await anyio.sleep(POLL_SECONDS)
