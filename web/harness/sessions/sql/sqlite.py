"""SQLite in one file: WAL, one writer at a time, other processes noticed once a second."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from web.harness.sessions.sql.database import Transaction
from web.harness.sessions.sql.engine import Engine
from web.harness.sessions.sql.faults import sqlite_fault
from web.harness.sessions.sql.migrations import migrate
from web.harness.sessions.sql.schema import SQLITE
from web.harness.values.errors import StoreError

FILE_NAME = "harness.sqlite3"
"""Of the database in a folder that is named in its place."""

BUSY_SECONDS = 5.0
"""How long a transaction waits for another process before it says that the file is locked."""

WATCH_SECONDS = 1.0
"""Between two looks for what other processes committed."""

CONNECTIONS = 5

NOW = "((julianday('now') - 2440587.5) * 86400.0)"


class SqliteDatabase(Engine):
    """The `Database` in a file; see `open_sqlite`."""

    def __init__(self, path: Path, read_only: bool, busy_seconds: float, max_pages: int) -> None:
        mode = "ro" if read_only else "rwc"
        super().__init__(
            f"sqlite+aiosqlite:///file:{quote(str(path))}?mode={mode}&uri=true",
            name="sqlite",
            now=NOW,
            locked="",
            fault=sqlite_fault,
            options={
                "pool_size": CONNECTIONS,
                "max_overflow": 0,
                "connect_args": {"timeout": busy_seconds},
            },
            writer=asyncio.Lock(),
        )
        self.path = path
        self._read_only = read_only
        self._max_pages = max_pages
        self.prepare(self._connected, lambda writes: "BEGIN IMMEDIATE" if writes else "BEGIN")

    def _connected(self, connection: Any) -> None:
        # Python's own idea of when to begin would leave reads outside of transactions.
        connection.isolation_level = None
        cursor = connection.cursor()
        # FULL: what was acknowledged survives a power failure too.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        if self._max_pages:
            cursor.execute(f"PRAGMA max_page_count = {self._max_pages:d}")
        cursor.close()

    async def watch(self) -> None:
        """Signals that anything may have changed when another connection has committed."""
        seen: int | None = None
        while True:
            if not self.signals.wanted:
                seen = None
            else:
                version = await asyncio.to_thread(self._version)
                if version != seen:
                    # Also at first: something may have been committed before anybody looked.
                    self.signals.deliver_all()
                seen = version
            await asyncio.sleep(WATCH_SECONDS)

    def _version(self) -> int | None:
        """Another number after each commit, whoever made it: of the file and its log."""
        found = []
        for name in (self.path.name, f"{self.path.name}-wal"):
            try:
                stat = self.path.with_name(name).stat()
            except OSError:
                continue  # The next transaction says what is wrong.
            found += [stat.st_size, stat.st_mtime_ns]
        return hash(tuple(found))


async def open_sqlite(
    path: Path,
    *,
    read_only: bool = False,
    busy_seconds: float = BUSY_SECONDS,
    max_pages: int = 0,
) -> SqliteDatabase:
    """Opens a file, or `harness.sqlite3` in a folder, made where it is not there, and migrates it.

    `max_pages` of 4 KiB bound its size, 0 does not. Raises StoreError.
    """
    path = await asyncio.to_thread(_prepared, path, read_only, busy_seconds)
    database = SqliteDatabase(path, read_only, busy_seconds, max_pages)
    try:
        await migrate(database, SQLITE, _nothing)
    except BaseException:
        await database.aclose()
        raise
    database.spawn(database.watch())
    return database


def _prepared(path: Path, read_only: bool, busy_seconds: float) -> Path:
    """The file itself, there, for this user alone, and in WAL mode."""
    try:
        if path.is_dir() or (not path.exists() and not path.suffix):
            path.mkdir(0o700, parents=True, exist_ok=True)
            path = path / FILE_NAME
        if read_only:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        connection = sqlite3.connect(path, timeout=busy_seconds)
        try:
            _use_wal(connection, time.monotonic() + busy_seconds)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise sqlite_fault(error) from error
    except OSError as error:
        raise StoreError(
            f"The file of the database cannot be opened: {error.strerror}: {path}",
            hint="Nothing was written. Check its folder, and that this user may write there.",
            code="store_unavailable",
        ) from error
    return path


def _use_wal(connection: sqlite3.Connection, deadline: float) -> None:
    """Changes the mode; SQLite does not always wait by itself for others who do the same."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            # Where only reading works, it may be in that mode already.
            if name == "SQLITE_READONLY":
                return
            if not name.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


async def _nothing(_: Transaction) -> None:
    """BEGIN IMMEDIATE is the lock."""
