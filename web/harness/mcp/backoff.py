"""How long a connection that ended waits before it is made anew."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds before an ended connection is made anew: `first`, doubled each time up to `most`.

    A connection that lived for `healthy` seconds begins anew. One that never came about is tried
    `attempts` times.
    """

    first: float = 0.5
    most: float = 60.0
    healthy: float = 60.0
    attempts: int = 5

    def wait(self, failures: int) -> float:
        """The wait after the given number of failures in a row, which is at least 1."""
        return min(self.first * 2.0 ** min(failures - 1, 30), self.most)
