"""Places that stores keep things in: memory, a SQLite file, a database of a PostgreSQL server."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import pytest

from tests.support.postgres import empty_database, give_back
from web.harness.sessions.event_log import EventLog, InMemoryEventLog, Listener
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.opening import Stores, open_database
from web.harness.sessions.records import Blobs, InMemoryBlobs, InMemoryRecords, Records
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.database import Database
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.executions import SqlExecutions
from web.harness.sessions.sql.postgres import PostgresDatabase
from web.harness.sessions.sql.records import SqlBlobs, SqlRecords
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.sessions.store import SessionStore

KINDS = ("memory", "sqlite", "postgresql")


class Place(Protocol):
    """Somewhere to keep things; each call opens it as another server would."""

    async def sessions(self) -> SessionStore: ...
    async def events(self, listener: Listener | None = None) -> EventLog: ...
    async def records(self) -> Records: ...
    async def blobs(self, max_bytes: int = 1_000) -> Blobs: ...
    async def aclose(self) -> None: ...


class MemoryPlace:
    """The memory of this process, the same for all who open it."""

    def __init__(self) -> None:
        self._sessions = InMemorySessionStore()
        self._records = InMemoryRecords()

    async def sessions(self) -> SessionStore:
        return self._sessions

    async def events(self, listener: Listener | None = None) -> EventLog:
        return InMemoryEventLog(lambda: 12.5, listener)

    async def records(self) -> Records:
        return self._records

    async def blobs(self, max_bytes: int = 1_000) -> Blobs:
        return InMemoryBlobs(max_bytes)

    async def aclose(self) -> None:
        pass


class SqlPlace:
    """A database, opened anew for each that asks."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.databases: list[Database] = []
        self._logs: list[EventLog] = []

    async def open(self) -> Database:
        database = await open_database(self.address)
        self.databases.append(database)
        return database

    async def sessions(self) -> SqlSessionStore:
        return SqlSessionStore(await self.open())

    async def events(self, listener: Listener | None = None) -> SqlEventLog:
        log = SqlEventLog(await self.open(), lambda: 12.5, listener)
        self._logs.append(log)
        return log

    async def backend(self, listener: Listener | None = None) -> Stores:
        """All stores over one database, as a server has them."""
        database = await self.open()
        log = SqlEventLog(database, lambda: 12.5, listener)
        self._logs.append(log)
        executions = SqlExecutions(database, log)
        return Stores(
            SqlSessionStore(database),
            log,
            SqlRecords(database),
            SqlBlobs(database),
            database,
            executions,
        )

    async def records(self) -> Records:
        return SqlRecords(await self.open())

    async def blobs(self, max_bytes: int = 1_000) -> Blobs:
        return SqlBlobs(await self.open(), max_bytes)

    async def run(self, statement: str) -> Sequence[Sequence[Any]]:
        """Runs a statement beside all stores."""
        if self.address.startswith("sqlite"):
            return await asyncio.to_thread(self._run_on_file, statement)
        other = await asyncpg.connect(self.address)
        try:
            return [tuple(row) for row in await other.fetch(statement)]
        finally:
            await other.close()

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Another program has the SQLite database for itself.

        It waits for its turn in a thread: a transaction of this process, which is in its way, may
        need the event loop to end.
        """
        other = await asyncio.to_thread(
            sqlite3.connect, self._file(), isolation_level=None, check_same_thread=False
        )
        try:
            await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
            yield
        finally:
            # Also ends the transaction.
            other.close()

    def _file(self) -> str:
        return self.address.removeprefix("sqlite:///")

    def _run_on_file(self, statement: str) -> Sequence[Sequence[Any]]:
        connection = sqlite3.connect(self._file(), timeout=5)
        try:
            with connection:
                return connection.execute(statement).fetchall()
        finally:
            connection.close()

    async def heard_by_all(self) -> None:
        """Returns when every database that is open hears what others commit."""
        for database in self.databases:
            if isinstance(database, PostgresDatabase):
                await asyncio.wait_for(database.listening.wait(), 10)

    async def let_leases_run_out(self) -> None:
        """As if the time of every lease had passed without a renewal."""
        await self.run("UPDATE harness_leases SET expires_at = 0")

    async def close(self) -> None:
        """Closes what was opened; what it holds stays."""
        for log in self._logs:
            await log.aclose()
        for database in self.databases:
            await database.aclose()

    async def aclose(self) -> None:
        await self.close()
        if not self.address.startswith("sqlite"):
            await give_back(self.address)


async def new_place(kind: str, folder: Path) -> MemoryPlace | SqlPlace:
    return MemoryPlace() if kind == "memory" else await new_database(kind, folder)


async def new_database(kind: str, folder: Path) -> SqlPlace:
    if kind == "sqlite":
        return SqlPlace(f"sqlite:///{folder / 'chats.sqlite3'}")
    return SqlPlace(await empty_database())


async def session_of(
    sessions: SessionStore, session_id: str = "s", wait: float = 0
) -> SessionSnapshot:
    """What is committed of a session, once nobody holds it: in `wait` seconds, else it fails."""
    async with await sessions.acquire(LOCAL_IDENTITY, session_id, wait=wait) as lease:
        return await lease.read()


def on(kind: str, *, full: str = "") -> pytest.MarkDecorator:
    """The database that a test with `place` runs over, and another one for the full run alone."""
    more = [pytest.param(full, marks=pytest.mark.full)] if full else []
    return pytest.mark.parametrize("database_kind", [kind, *more])
