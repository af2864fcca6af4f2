"""Processes that are known by a variable which they have inherited, on systems with /proc.

Only the standard library is used here: programs that have to start quickly load it.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK = "HARNESS_STARTED"
"""The variable; its value is another one for each program that is started."""

KILL_SECONDS = 5.0
"""How long they are looked for and killed, should they start others faster than that."""

POLL_SECONDS = 0.02


def kill_marked(mark: str) -> None:
    """Kills all that have this value. Blocks."""
    end = time.monotonic() + KILL_SECONDS
    # One that was not killed yet may have started another, behind the look.
    while signal_marked(mark, signal.SIGKILL) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)


def signal_marked(mark: str, number: int) -> int:
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
