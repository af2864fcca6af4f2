"""What a server has started and that has left its process group, as `setsid` and daemons do.

On Linux such processes are found by a variable that the server was given and that they inherit.
What also clears its environment, runs as another user, or was started by a service on the server's
behalf is not found; nor is anything on systems without /proc.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio

from web.harness.tools.threads import run_in_thread

MARK = "HARNESS_MCP"
"""The variable; its value is another one for each start of a server."""
TERM_SECONDS = 1.0
"""How long they may take to end after SIGTERM, before they are killed."""

_POLL_SECONDS = 0.02
_ROUNDS = 5
"""Of looking for what was started meanwhile by one that was not killed yet."""


async def end_marked(mark: str) -> None:
    """Ends all processes whose `MARK` is `mark`: first asked, then killed.

    It takes hardly longer than `TERM_SECONDS`, and one look where there are none.
    """
    if await run_in_thread(partial(_signal_marked, mark, signal.SIGTERM)) == 0:
        return
    with anyio.move_on_after(TERM_SECONDS):
        while await run_in_thread(partial(_signal_marked, mark, 0)):  # noqa: ASYNC110
            await anyio.sleep(_POLL_SECONDS)
    for _ in range(_ROUNDS):
        if await run_in_thread(partial(_signal_marked, mark, signal.SIGKILL)) == 0:
            return
        await anyio.sleep(_POLL_SECONDS)


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
