"""Who holds a lease: a process, so marked that others on its machine see whether it lives."""

from __future__ import annotations

import os
import uuid
from collections import deque
from pathlib import Path

_PROC = Path("/proc")

_given_up: deque[str] = deque(maxlen=1_000)
"""The newest alone: for others, too, each ends with time."""


def new_holder(presence: str = "") -> str:
    """A name that nobody else ever has: `MACHINE|PROCESS|BEGUN|RANDOM|PRESENCE`; empty where not
    known. `presence` is what others on the same database see of this server."""
    return f"{_machine()}|{os.getpid()}|{_begun(os.getpid())}|{uuid.uuid4().hex}|{presence}"


def presence_of(holder: str) -> str:
    """'' where it has none, as that of an earlier version."""
    parts = holder.split("|")
    return parts[4] if len(parts) > 4 else ""


def give_up(holder: str) -> None:
    """Notes that a holder of this process has let go, though that could not be written."""
    _given_up.append(holder)


def has_given_up(holder: str) -> bool:
    return holder in _given_up


def is_gone(holder: str) -> bool:
    """Whether the process of a holder is known to have ended. In doubt it has not."""
    machine, _, rest = holder.partition("|")
    process, _, rest = rest.partition("|")
    begun, _, _ = rest.partition("|")
    if not machine or machine != _machine() or not process.isdigit() or not begun:
        return False
    return _begun(int(process)) != begun


def _machine() -> str:
    """This boot of this machine, and the room in which its processes have their numbers."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _begun(process: int) -> str:
    """When a process began, in ticks since the boot; '' where there is none, or it has ended."""
    try:
        # What follows the name, which may hold anything, begins after the last bracket.
        fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]
