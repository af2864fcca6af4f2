"""Who waits for events of a run, or follows a run that another server writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from web.harness.sessions.event_log import Listener
from web.harness.sessions.sql import event_rows
from web.harness.sessions.sql.database import Database
from web.harness.values.errors import StoreError
from web.harness.values.events import Event, RunResult

AGAIN_SECONDS = 1.0
"""After the database failed while a run was followed."""

FOLLOW_SECONDS = 2.0
"""How long `follow` waits for what there is; while the database fails it is read later."""

PAGE = 1_000

logger = logging.getLogger(__name__)

_Waiter = asyncio.Future[int | None]
"""Gets the last number of its run, `_GONE`, or None where the database has to be asked."""

_GONE = -1


class Followers:
    """Tells waiters of every new event, and the listener of those of runs that are followed."""

    def __init__(self, database: Database, tell: Listener) -> None:
        self._database = database
        self._tell = tell
        self._waiters: dict[str, dict[_Waiter, int]] = {}
        """By run, who waits, and after which number."""
        self._cursors: dict[str, int] = {}
        self._reading: dict[str, bool] = {}
        self._behind: dict[str, list[asyncio.Event]] = {}
        """By run, who waits until all that is there by now was told."""
        self._missed = asyncio.Event()
        """Set when any run may have changed."""
        self._finding = False
        self._stops: list[Callable[[], None]] = []

    async def wait(self, run_id: str, after: int) -> None:
        while True:
            waiter: _Waiter = asyncio.get_running_loop().create_future()
            self._waiters.setdefault(run_id, {})[waiter] = after
            self._listen()
            try:
                ends = await self._ends([run_id])
                last, ended = ends.get(run_id, (0, False))
                if last > after or ended:
                    return
                told = await waiter
                if told is not None and (told == _GONE or told > after):
                    return
            finally:
                self._drop(run_id, waiter)

    async def follow(self, run_id: str, after: int) -> bool:
        self._cursors[run_id] = after
        self._listen()
        told = asyncio.Event()
        # A reading that is under way may have begun before what is there now: it reads once more.
        self._behind.setdefault(run_id, []).append(told)
        self._look(run_id)
        with suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), FOLLOW_SECONDS)
        return told.is_set()

    def is_followed(self, run_id: str) -> bool:
        return run_id in self._cursors

    def unfollow(self, run_id: str) -> None:
        self._cursors.pop(run_id, None)
        self._unlisten()

    def wrote(self, run_id: str, events: Sequence[Event]) -> None:
        """Events of ours are written: everybody is told, in the order of their numbers."""
        cursor = self._cursors.get(run_id)
        if cursor is not None and (cursor != events[0].number - 1 or run_id in self._reading):
            self._look(run_id)
        else:
            if cursor is not None:
                self._cursors[run_id] = events[-1].number
            self._tell(run_id, events)
        self._wake(run_id, events[-1].number)

    def forget(self, run_id: str) -> None:
        self.unfollow(run_id)
        self._wake(run_id, _GONE)

    def aclose(self) -> None:
        self._cursors.clear()
        for run_id in tuple(self._waiters):
            self._wake(run_id, _GONE)
        self._unlisten()

    def _listen(self) -> None:
        if not self._stops:
            signals = self._database.signals
            self._stops.append(signals.listen(event_rows.TOPIC, self._heard))
            self._stops.append(signals.listen(event_rows.FORGOTTEN, self._heard_forgotten))

    def _unlisten(self) -> None:
        if not self._waiters and not self._cursors:
            for stop in self._stops:
                stop()
            self._stops.clear()

    def _heard(self, run_id: str | None) -> None:
        if run_id is None:
            self._missed.set()
            if not self._finding:
                self._finding = True
                self._database.spawn(self._find_changes())
        else:
            self._wake(run_id, None)
            self._look(run_id)

    async def _find_changes(self) -> None:
        """One reading for all: of hundreds that are followed, few have changed."""
        try:
            while self._missed.is_set():
                self._missed.clear()
                try:
                    ends = await self._ends([*{*self._cursors, *self._waiters}])
                except StoreError as error:
                    logger.warning("It is not known which runs changed: %s", error.message)
                    await asyncio.sleep(AGAIN_SECONDS)
                    self._missed.set()
                    continue
                for run_id, (last, ended) in ends.items():
                    if ended or last > min(self._waiters.get(run_id, {}).values(), default=last):
                        self._wake(run_id, None)
                    if last > self._cursors.get(run_id, last):
                        self._look(run_id)
        finally:
            self._finding = False

    async def _ends(self, run_ids: list[str]) -> dict[str, tuple[int, bool]]:
        return await self._database.read(lambda each: event_rows.ends_of(each, run_ids))

    def _heard_forgotten(self, run_id: str | None) -> None:
        if run_id is not None:
            self.forget(run_id)

    def _wake(self, run_id: str, last: int | None) -> None:
        for waiter in self._waiters.pop(run_id, ()):
            if not waiter.done():
                waiter.set_result(last)

    def _drop(self, run_id: str, waiter: _Waiter) -> None:
        waiters = self._waiters.get(run_id, {})
        if waiters.pop(waiter, None) is not None and not waiters:
            del self._waiters[run_id]
        self._unlisten()

    def _look(self, run_id: str) -> None:
        if run_id in self._reading:
            self._reading[run_id] = True  # Once more when this reading has ended.
        elif run_id in self._cursors:
            self._database.spawn(self._catch_up(run_id))

    async def _catch_up(self, run_id: str) -> None:
        if run_id in self._reading:
            self._reading[run_id] = True
            return
        self._reading[run_id] = True
        said = ""
        try:
            while self._reading[run_id] and run_id in self._cursors:
                self._reading[run_id] = False
                try:
                    await self._read_on(run_id)
                except StoreError as error:
                    if error.message != said:  # What is damaged stays so.
                        said = error.message
                        logger.warning("A run cannot be followed for now: %s", said)
                    await asyncio.sleep(AGAIN_SECONDS)
                    self._reading[run_id] = True
        finally:
            del self._reading[run_id]
            for told in self._behind.pop(run_id, ()):
                told.set()

    async def _read_on(self, run_id: str) -> None:
        while (cursor := self._cursors.get(run_id)) is not None:
            rows = await self._database.read(
                lambda each, after=cursor: event_rows.rows_after(  # type: ignore[misc]
                    each, run_id, after, PAGE
                )
            )
            events = await asyncio.to_thread(event_rows.events_of, rows, cursor)
            if self._cursors.get(run_id) != cursor or not events:
                return
            self._cursors[run_id] = events[-1].number
            self._tell(run_id, events)
            if isinstance(events[-1].body, RunResult):
                self.unfollow(run_id)
