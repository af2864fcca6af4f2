"""Stores that are opened when the application starts, and named before: what is built needs them.

An application is built without an event loop, and a database is opened on one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from web.harness.sessions.event_log import EventLog, Listener
from web.harness.sessions.opening import Stores, open_stores
from web.harness.sessions.records import Blobs, Records
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import StoreError


class LateStores:
    """The stores of an address, of use between `open` and `aclose`.

    Each is what `open_stores` gives, from `open` on; before and after it every use raises
    StoreError (`store_closed`).
    """

    def __init__(
        self, address: str, now: Callable[[], float], listener: Listener | None = None
    ) -> None:
        self._address = address
        self._now = now
        self._listener = listener
        self._opened: Stores | None = None
        self.sessions = cast(SessionStore, _Late(lambda: self.opened.sessions))
        self.events = cast(EventLog, _Late(lambda: self.opened.events))
        self.records = cast(Records, _Late(lambda: self.opened.records))
        self.blobs = cast(Blobs, _Late(lambda: self.opened.blobs))

    @property
    def opened(self) -> Stores:
        if self._opened is None:
            raise StoreError("The store of chats is closed.", code="store_closed")
        return self._opened

    async def open(self) -> None:
        """Raises as `open_stores`."""
        self._opened = await open_stores(self._address, now=self._now, listener=self._listener)

    async def aclose(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


class _Late:
    """Stands for an object that is there later."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Any:
        return getattr(self._find(), name)
