"""What a program has started and that has left its process group, as `setsid` and daemons do.

On Linux such processes are found by a variable that the program was given and that they inherit.
What also clears its environment, runs as another user, or was started by a service on the program's
behalf is not found; nor is anything on systems without /proc.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio

from web.harness.tools.threads import run_in_thread

MARK = "HARNESS_STARTED"
"""The variable; its value is another one for each block of `no_strays`."""

KILL_SECONDS = 5.0
"""How long they are looked for and killed, should they start others faster than that."""

_POLL_SECONDS = 0.02


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
            await run_in_thread(partial(_kill, mark), finish=True)


async def _ask(mark: str, seconds: float) -> None:
    if await run_in_thread(partial(_signal_marked, mark, signal.SIGTERM)) == 0:
        return
    with anyio.move_on_after(seconds):
        while await run_in_thread(partial(_signal_marked, mark, 0)):  # noqa: ASYNC110
            await anyio.sleep(_POLL_SECONDS)


def _kill(mark: str) -> None:
    end = time.monotonic() + KILL_SECONDS
    # One that was not killed yet may have started another, behind the look.
    while _signal_marked(mark, signal.SIGKILL) and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


def _signal_marked(mark: str, number: int) -> int:
    """Sends a signal to each of them; returns how many live."""
    wanted = f"{MARK}={mark}".encode()
    found = 0
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdecimal():
                found += _signal_if_marked(int(name), wanted, number)
    return found


def _signal_if_marked(pid: int, wanted: bytes, number: int) -> bool:
    try:
        # Held first, so that the process that is read about is the one that is signalled.
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if wanted not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(held, number)
    except OSError:
        return False
    finally:
        os.close(held)
    return True
