"""The progress of one call, told at a pace that can be read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from web.harness.tools.words import shorten
from web.harness.values.events import ToolProgress
from web.harness.values.text import sayable

PROGRESS_SECONDS = 0.1
"""The least time between two events of a call; what comes between is overtaken by the last."""

MAX_MESSAGE_CHARS = 300


class Progress:
    """Takes reports, from any thread, and hands on the newest. Made in the event loop."""

    def __init__(self, call_id: str, tell: Callable[[ToolProgress], None]) -> None:
        self._call_id = call_id
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._latest: ToolProgress | None = None
        self._next = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    def report(self, done: float, total: float | None = None, message: str = "") -> None:
        """Numbers that are none are left out, and so is what comes after the end."""
        if not math.isfinite(done) or done < 0:
            return
        if total is not None and not (math.isfinite(total) and total > 0):
            total = None
        words = " ".join(sayable(shorten(message, MAX_MESSAGE_CHARS)).split())
        report = ToolProgress(self._call_id, done, total, words)
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._take(report)
        else:
            self._loop.call_soon_threadsafe(self._take, report)

    def end(self) -> None:
        """Tells what is still to be told, and nothing after it."""
        self._flush()
        self._ended = True

    def _take(self, report: ToolProgress) -> None:
        if self._ended:
            return
        self._latest = report
        if self._loop.time() >= self._next:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._next, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        latest, self._latest = self._latest, None
        if latest is not None and not self._ended:
            self._next = self._loop.time() + PROGRESS_SECONDS
            self._tell(latest)
