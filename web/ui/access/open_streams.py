"""How many event streams are open: the page's and the API's count together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from web.harness.values.errors import HarnessError


class OpenStreams:
    """Counts open streams and refuses one too many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open = 0

    def check(self) -> None:
        """Raises HarnessError (`too_many_streams`) where no further stream may be opened."""
        if self._open >= self._limit:
            raise HarnessError(
                f"{self._open} event streams are open on this server, its limit.",
                hint="Close some tabs or readers, or try again in a moment.",
                code="too_many_streams",
            )

    @contextmanager
    def one_more(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    @property
    def count(self) -> int:
        return self._open
