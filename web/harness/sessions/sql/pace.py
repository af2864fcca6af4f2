"""How often one server writes: seldom on the whole, at once where somebody waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable

BURST = 20
"""Transactions that may follow each other at once, after a quiet second."""


class Pace:
    """Lets `BURST` through at once, and then one in each interval of that many seconds."""

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._clock = clock
        self._left = float(BURST)
        self._at = clock()

    def next_in(self) -> float:
        """Takes the next turn, and returns in how many seconds it comes."""
        now = self._clock()
        if self._interval > 0:
            gained = (now - self._at) / self._interval
            self._left = min(self._left + gained, float(BURST)) - 1.0
        self._at = now
        return max(-self._left, 0.0) * self._interval
