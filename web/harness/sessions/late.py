"""Stores that are opened when the application starts, and named before: what is built needs them.

An application is built without an event loop, and a database is opened on one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from web.harness.sessions.event_log import EventLog, Listener
from web.harness.sessions.journal import Executions
from web.harness.sessions.opening import Stores, open_stores
from web.harness.sessions.records import Blobs, Records
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import StoreError


class Opener(Protocol):
    """Opens stores, and closes what it opened."""

    async def open(self) -> Stores: ...

    async def aclose(self) -> None: ...


class LateStores:
    """The stores of an address, of use between `open` and `aclose`.

    Each is what `open_stores` gives, from `open` on; before and after it every use raises
    StoreError (`store_closed`).
    """

    def __init__(
        self,
        address: str,
        now: Callable[[], float],
        listener: Listener | None = None,
        *,
        opened_by: Opener | None = None,
    ) -> None:
        """`opened_by` opens and closes them in place of this, such as a backend."""
        self._opener = opened_by
        self._address = address
        self._now = now
        self._listener = listener
        self._opened: Stores | None = None
        self.sessions = cast(SessionStore, _Late(lambda: self.opened.sessions))
        self.events = cast(EventLog, _Late(lambda: self.opened.events))
        self.records = cast(Records, _Late(lambda: self.opened.records))
        self.blobs = cast(Blobs, _Late(lambda: self.opened.blobs))

    @property
    def executions(self) -> Executions | None:
        """The runs that can be gone on with; None for memory."""
        return self.opened.executions

    @property
    def opened(self) -> Stores:
        if self._opened is None:
            raise StoreError("The store of chats is closed.", code="store_closed")
        return self._opened

    @property
    def failure(self) -> StoreError | None:
        """Why the database does not work at the moment, as far as that is seen."""
        database = self._opened.database if self._opened is not None else None
        return database.failure if database is not None else None

    async def open(self) -> None:
        """Raises as `open_stores`."""
        if self._opener is not None:
            self._opened = await self._opener.open()
        else:
            self._opened = await open_stores(self._address, now=self._now, listener=self._listener)

    async def aclose(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await (self._opener or opened).aclose()


class _Late:
    """Stands for an object that is there later."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Any:
        return getattr(self._find(), name)
