"""The places that every body of the contract of backends runs over."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from tests.support.postgres import empty_database, give_back
from tests.support.temporal import new_queue, temporal_server
from web.harness.runtime.backend import Backend
from web.harness.runtime.sql import PostgresBackend, SQLiteBackend
from web.harness.sessions.event_log import Listener


class BackendPlace(Protocol):
    """Somewhere to keep runs; each `backend` opens it as another server would."""

    async def backend(self, listener: Listener | None = None) -> Backend: ...
    async def aclose(self) -> None: ...


class SqlBackendPlace:
    def __init__(self, address: str) -> None:
        self.address = address
        self._backends: list[Backend] = []

    async def backend(self, listener: Listener | None = None) -> Backend:
        backend: Backend
        if self.address.startswith("postgresql"):
            backend = PostgresBackend(self.address, now=time.time, listener=listener)
        else:
            backend = SQLiteBackend(self.address, now=time.time, listener=listener)
        self._backends.append(backend)
        return backend

    async def aclose(self) -> None:
        for backend in self._backends:
            await backend.aclose()
        if self.address.startswith("postgresql"):
            await give_back(self.address)


async def _sqlite(folder: Path) -> BackendPlace:
    return SqlBackendPlace(str(folder / "runs.db"))


async def _postgresql(_: Path) -> BackendPlace:
    return SqlBackendPlace(await empty_database())


class TemporalBackendPlace:
    """Each backend performs what it is given in this process; what it lets go another takes up."""

    def __init__(self, folder: Path) -> None:
        self._events = f"sqlite:///{folder / 'events.db'}"
        self._queue = new_queue()
        self._backends: list[Backend] = []

    async def backend(self, listener: Listener | None = None) -> Backend:
        # It loads a library of 40 MB, which the tests of other backends need not wait for.
        from web.harness.runtime.temporal.backend import TemporalBackend

        address = f"temporal://{temporal_server().address}/default"
        backend = TemporalBackend(
            f"{address}?events={self._events}&queue={self._queue}", now=time.time, listener=listener
        )
        self._backends.append(backend)
        return backend

    async def aclose(self) -> None:
        for backend in self._backends:
            await backend.aclose()


async def _temporal(folder: Path) -> BackendPlace:
    return TemporalBackendPlace(folder)


BACKENDS: dict[str, Callable[[Path], Awaitable[BackendPlace]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "temporal": _temporal,
}
"""By the name of a backend, what makes an empty place for it in a folder."""
