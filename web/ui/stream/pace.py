"""How often a reader of the page's stream gets a frame: often while the server is idle."""

from __future__ import annotations

import time
from collections.abc import Callable

FASTEST = 1 / 60
"""Seconds between two frames of one reader on an idle server."""

BUSY = 0.1
"""The same at `BUSY_LOAD`."""

SLOWEST = 0.25
"""The same when the event loop has no time left."""

IDLE_LOAD, BUSY_LOAD = 0.3, 0.85
"""Share of its time for which the event loop's thread computes."""

_SAMPLE_SECONDS = 0.25

Seconds = Callable[[], float]


class Pace:
    """Measures what share of a core this thread uses and derives the interval from it.

    `wall` is a steady clock, `cpu` the CPU time of this thread, both in seconds.
    """

    def __init__(self, wall: Seconds = time.monotonic, cpu: Seconds = time.thread_time) -> None:
        self.wall = wall
        self._cpu = cpu
        self._wall_before, self._cpu_before = wall(), cpu()
        self._load = 0.0

    def interval(self) -> float:
        """Seconds that lie between two frames of one reader now."""
        wall = self.wall()
        elapsed = wall - self._wall_before
        if elapsed >= _SAMPLE_SECONDS:
            cpu = self._cpu()
            sample = (cpu - self._cpu_before) / elapsed
            # What was measured before counts the less, the longer ago it was.
            kept = 0.5 ** (elapsed / _SAMPLE_SECONDS)
            self._load = kept * self._load + (1 - kept) * sample
            self._wall_before, self._cpu_before = wall, cpu
        return interval_at(self._load)


class Steps:
    """When one reader may be given frames: two at once after a rest, then one an interval.

    A message changes the page at once, and the first token of its answer follows at once.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._next = 0.0

    def wait(self) -> float:
        """Seconds to let pass after a frame that was just given."""
        now, interval = self._pace.wall(), self._pace.interval()
        self._next = max(now, self._next) + interval
        return max(0.0, self._next - interval - now)


def interval_at(load: float) -> float:
    """The interval in seconds for a load from 0 to 1; rises with the load."""
    if load <= IDLE_LOAD:
        return FASTEST
    if load <= BUSY_LOAD:
        return FASTEST + (BUSY - FASTEST) * (load - IDLE_LOAD) / (BUSY_LOAD - IDLE_LOAD)
    return min(SLOWEST, BUSY + (SLOWEST - BUSY) * (load - BUSY_LOAD) / (1 - BUSY_LOAD))
