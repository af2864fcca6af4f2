"""Backends in SQLite and PostgreSQL: runs are performed here, in the process that holds them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from web.harness.runtime.backend import Performed, Turn
from web.harness.runtime.performing import perform_here
from web.harness.sessions.event_log import Listener
from web.harness.sessions.journal import GivenAnswer
from web.harness.sessions.opening import Stores, open_stores, store_kind
from web.harness.values.errors import ConfigurationError, StoreError


class SqlBackend:
    """The `Backend` over stores that are open already. They stay their owner's."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def open(self) -> Stores:
        return self._stores

    async def perform(self, turn: Turn) -> Performed:
        return await perform_here(await self.open(), turn)

    async def answered(self, run_id: str, answer: GivenAnswer) -> None:
        """The database tells whoever performs the run."""

    async def aclose(self) -> None:
        """It opened nothing."""


class AddressedBackend(SqlBackend):
    """Opens the stores of an address with the first run, and closes them.

    `now` returns seconds since the epoch, `listener` is that of the event log.
    """

    def __init__(
        self,
        address: str,
        *,
        now: Callable[[], float] = time.time,
        listener: Listener | None = None,
    ) -> None:
        self._address = address
        self._now = now
        self._listener = listener
        self._opened: Stores | None = None
        self._one = asyncio.Lock()
        self._closed = False

    async def open(self) -> Stores:
        async with self._one:
            if self._closed:
                raise StoreError("This backend is closed.", code="store_closed")
            if self._opened is None:
                self._opened = await open_stores(
                    self._address, now=self._now, listener=self._listener
                )
            return self._opened

    async def aclose(self) -> None:
        async with self._one:
            self._closed = True
            opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


class SQLiteBackend(AddressedBackend):
    """Keeps runs in a file, for one or more processes of one machine.

    A path without an ending is a folder. Both are made where they are not there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        now: Callable[[], float] = time.time,
        listener: Listener | None = None,
    ) -> None:
        address = f"sqlite:///{quote(str(Path(path).absolute()))}"
        super().__init__(address, now=now, listener=listener)


class PostgresBackend(AddressedBackend):
    """Keeps runs in PostgreSQL (`postgresql://USER@HOST/DATABASE`), for any number of servers."""

    def __init__(
        self,
        address: str,
        *,
        now: Callable[[], float] = time.time,
        listener: Listener | None = None,
    ) -> None:
        """Raises ConfigurationError for an address of something else."""
        if store_kind(address) != "postgresql":
            # The address may hold a password, and is not repeated.
            raise ConfigurationError(
                "This is no address of a PostgreSQL database.",
                hint="It has the form postgresql://USER@HOST/DATABASE.",
            )
        super().__init__(address, now=now, listener=listener)
