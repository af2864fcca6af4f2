"""How often a reader of the page's stream gets a frame: often while the server is idle."""

from __future__ import annotations

import time

FASTEST = 1 / 60
"""Seconds between two frames of one reader on an idle server."""

BUSY = 0.1
"""The same at `BUSY_LOAD`."""

SLOWEST = 0.25
"""The same when the event loop has no time left."""

IDLE_LOAD, BUSY_LOAD = 0.3, 0.85
"""Share of its time for which the event loop's thread computes."""

_SAMPLE_SECONDS = 0.25


class Pace:
    """Measures what share of a core this thread uses and derives the interval from it."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.thread_time()
        self._load = 0.0

    def interval(self) -> float:
        """Seconds to let pass before a reader is given its next frame."""
        wall = time.monotonic()
        if wall - self._wall >= _SAMPLE_SECONDS:
            cpu = time.thread_time()
            sample = (cpu - self._cpu) / (wall - self._wall)
            self._load = (self._load + sample) / 2
            self._wall, self._cpu = wall, cpu
        return interval_at(self._load)


def interval_at(load: float) -> float:
    """The interval in seconds for a load from 0 to 1; rises with the load."""
    if load <= IDLE_LOAD:
        return FASTEST
    if load <= BUSY_LOAD:
        return FASTEST + (BUSY - FASTEST) * (load - IDLE_LOAD) / (BUSY_LOAD - IDLE_LOAD)
    return min(SLOWEST, BUSY + (SLOWEST - BUSY) * (load - BUSY_LOAD) / (1 - BUSY_LOAD))
