"""Who waits until what was appended to runs is written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from web.harness.values.errors import StoreError


@dataclass(frozen=True, slots=True)
class _Flush:
    run_id: str | None
    upto: int
    done: asyncio.Future[None]


class Flushes:
    """Waits for a run, or for all, up to a place among all that was ever appended."""

    def __init__(self) -> None:
        self._waiting: list[_Flush] = []
        self._written = 0
        # By run, the place of its last; of runs that are written already perhaps none.
        self._last: dict[str, int] = {}
        # How far runs are written beyond the rest, while that cannot be written.
        self._apart: dict[str, int] = {}

    def appended(self, run_id: str, place: int) -> None:
        self._last[run_id] = place

    def wait(self, run_id: str) -> asyncio.Future[None] | None:
        """Done when a run is written up to now, with an error where that failed; None if it is."""
        return self._wait(run_id, self._last.get(run_id, 0))

    def wait_for_all(self, place: int) -> asyncio.Future[None] | None:
        return self._wait(None, place)

    def _wait(self, run_id: str | None, upto: int) -> asyncio.Future[None] | None:
        flush = _Flush(run_id, upto, asyncio.get_running_loop().create_future())
        if self._is_written(flush):
            return None
        self._waiting.append(flush)
        return flush.done

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def wrote(self, place: int, *, is_all: bool) -> None:
        """All up to a place is written, or forgotten; with `is_all` nothing else waits."""
        self._written = place
        if is_all:
            self._last.clear()
            self._apart.clear()
        for flush in self._waiting:
            if self._is_written(flush) and not flush.done.done():
                flush.done.set_result(None)
        self._waiting = [flush for flush in self._waiting if not flush.done.done()]

    def wrote_apart(self, run_id: str, place: int) -> None:
        """Of one run all up to a place is written, and of others not what came before it."""
        self._apart[run_id] = place

    def forget(self, run_id: str) -> None:
        self._last.pop(run_id, None)

    def fail(self, error: StoreError) -> None:
        for flush in self._waiting:
            if not flush.done.done():
                flush.done.set_exception(error)
        self._waiting.clear()

    def _is_written(self, flush: _Flush) -> bool:
        apart = self._apart.get(flush.run_id, 0) if flush.run_id is not None else 0
        return flush.upto <= max(self._written, apart)
