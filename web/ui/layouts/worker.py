"""What runs in a process of its own: one layout of one file, within limits, and then it ends.

The process is started by `workshop.py`. It is told what to do in a line of JSON on its input, which
stays open for as long as the server lives. It answers on its output: a line of JSON, and a text.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any

from web.ui.layouts.layouts import ByDescriptor, Laid, laid_out

CPU_GRACE_SECONDS = 2
"""So much more than the server waits: it ends what no server waits for any more."""


def work(task: dict[str, Any]) -> None:
    """Does what `task` says, writes the answer and ends the process."""
    answers = os.dup(1)
    # What a library prints goes to the log.
    os.dup2(2, 1)
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    _confine(task["seconds"] + CPU_GRACE_SECONDS, task["memory_bytes"])
    file = ByDescriptor(task["descriptor"], task["size"])
    try:
        laid = laid_out(task["layout"], file, **task["options"])
        head = {"done": laid.done, "facts": laid.facts}
    except MemoryError:
        laid, head = Laid(), {"memory": True}
    text = laid.text.encode("utf-8", "replace")
    with os.fdopen(answers, "wb") as out:
        out.write(json.dumps({**head, "bytes": len(text)}).encode() + b"\n" + text)
    # Without taking apart what is in memory, and whatever the other thread waits for.
    os._exit(0)


def _end_with_the_server() -> None:
    """The input ends when the server does, however that ended."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)


def _confine(seconds: float, memory_bytes: int) -> None:
    """Limits that hold whatever the file makes the process do, where the system has them."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(10)
    for what, most in (
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
