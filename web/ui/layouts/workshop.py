"""Lays files out in processes of their own, so that none of them slows the server or harms it.

A process does one file and ends. It knows neither the environment of the server nor its memory,
and has limits in time and memory. Few work at once; some wait; more are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import Any

from web.harness.tools.threads import run_in_thread
from web.ui.layouts.layouts import Laid, Readable, laid_out
from web.ui.layouts.places import NOBODY, Budget, NotLaidOut, Places, Whose

MAX_ANSWER_BYTES = 32 * 1024 * 1024

_PIECE_BYTES = 256 * 1024

# Python's own options keep out what lies in the folder the server was started from. The paths come
# with the task, so that it works wherever the server found this package.
_START = """
import json, os, sys
line = b""
while not line.endswith(b"\\n"):
    piece = os.read(0, 1 << 16)
    if not piece:
        sys.exit(1)
    line += piece
task = json.loads(line)
sys.path[:] = task["paths"]
from web.ui.layouts.worker import work
work(task)
"""
_COMMAND = (sys.executable, "-I", "-B", "-c", _START)


class Workshop:
    """Does layouts. Small ones are done in threads, and no more of them at once."""

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._processes = Places(self._budget)
        self._threads = Places(self._budget)

    async def lay_out(
        self,
        layout: str,
        file: Readable,
        *,
        small: bool = False,
        whose: Whose = NOBODY,
        **options: Any,
    ) -> Laid:
        """One of `LAYOUTS`; `small`: it is quick, whatever the file holds. `whose` page it is for.

        The `options` are those of `laid_out` and of the layout. Raises NotLaidOut for one that
        takes too much, and where too many wait already.
        """
        if small:
            async with self._threads.take(whose):
                return await run_in_thread(lambda: laid_out(layout, file, **options), finish=True)
        task = {
            "layout": layout,
            "descriptor": file.descriptor,
            "size": file.size,
            "options": options,
            "seconds": self._budget.seconds,
            "memory_bytes": self._budget.memory_bytes,
            "paths": _paths(),
        }
        async with self._processes.take(whose):
            try:
                async with asyncio.timeout(self._budget.seconds):
                    answer = await _asked(task)
            except TimeoutError:
                raise NotLaidOut(
                    f"This file is too much to lay out in {self._budget.seconds:g} seconds."
                ) from None
        return await run_in_thread(lambda: self._laid(answer))

    def _laid(self, answer: bytes) -> Laid:
        line, _, text = answer.partition(b"\n")
        head = json.loads(line) if line else {}
        if head.get("memory"):
            size = self._budget.memory_bytes // (1024 * 1024)
            raise NotLaidOut(f"This file is too much to lay out in {size} MB of memory.")
        if head.get("bytes") != len(text):
            # It was ended by a limit, or brought down by the file, or would have filled our memory.
            raise NotLaidOut("This file could not be laid out.")
        return Laid(text.decode(), head["facts"], head["done"])


def _paths() -> list[str]:
    """Where this process finds its packages, for one that starts elsewhere."""
    return [os.path.abspath(path) for path in sys.path]


async def _asked(task: dict[str, Any]) -> bytes:
    """What a process answers to the task; less than all of it where it came to an end before."""
    process = _Process(task)
    try:
        return await run_in_thread(process.answer)
    finally:
        process.end()


class _Process:
    """A process for one task, in a thread that waits for it.

    It is started there, too: uvloop would stop the event loop for some 50 ms by it.
    """

    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._ended = False
        self._started: subprocess.Popen[bytes] | None = None

    def answer(self) -> bytes:
        """All that it writes, or as much as there is a limit for. Blocks until it has ended."""
        with self._lock:
            if self._ended:
                return b""
            self._started = process = _started(self._task["descriptor"])
        # What closes at the end ends the process, if it goes on.
        with process:
            assert process.stdin is not None  # noqa: S101 (for the type checker)
            assert process.stdout is not None  # noqa: S101 (for the type checker)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(self._task).encode() + b"\n")
            pieces, size = [], 0
            while size <= MAX_ANSWER_BYTES and (piece := process.stdout.read(_PIECE_BYTES)):
                pieces.append(piece)
                size += len(piece)
            return b"".join(pieces)

    def end(self) -> None:
        """Ends it now, so that the thread ends too; one that has ended already is left alone."""
        with self._lock:
            self._ended = True
            if self._started is not None:
                self._started.kill()


def _started(descriptor: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 (our own program)
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        pass_fds=(descriptor,),
        # No secret of the server's is in there.
        env={"LC_ALL": "C.UTF-8"},
    )
