"""SQLite in one file: WAL, one writer at a time, other processes noticed within a second."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from web.harness.sessions.sql.at_once import Done, SqliteAtOnce
from web.harness.sessions.sql.database import Transaction, Work
from web.harness.sessions.sql.engine import Engine
from web.harness.sessions.sql.faults import KEPT, sqlite_fault
from web.harness.sessions.sql.migrations import migrate
from web.harness.sessions.sql.schema import SQLITE
from web.harness.sessions.sql.sqlite_file import FINGERPRINT, SqliteFile
from web.harness.values.errors import StoreError

FILE_NAME = "harness.sqlite3"
"""Of the database in a folder that is named in its place."""

BUSY_SECONDS = 5.0
"""How long a transaction waits for another process before it says that the file is locked."""

GLANCE_SECONDS = 0.2
"""Between two looks for what other processes committed."""

GLANCES = 5
"""To one look whether the file is there, and may be written."""

CONNECTIONS = 5

_UNWRITABLE = ("store_full", "store_failed", "store_read_only", "store_unavailable")
"""Codes of a file that may be read all the same."""

T = TypeVar("T")

NOW = "((julianday('now') - 2440587.5) * 86400.0)"


class SqliteDatabase(Engine):
    """The `Database` in a file; see `open_sqlite`. `read_only` says why it is not written to: it
    is as soon as that can be done, unless it was `asked` for.

    `frozen` reads a file that nobody writes without anything beside it, as on a disk without room.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: StoreError | None,
        busy_seconds: float,
        max_pages: int,
        frozen: bool = False,
        asked: bool = False,
    ) -> None:
        super().__init__(
            # Of a file, whose address SQLite reads as its own; it is given with each connection.
            "sqlite+aiosqlite:///file:at?uri=true",
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
        self._file = SqliteFile(path)
        self._gone: StoreError | None = None
        self._read_only = read_only
        self._frozen = frozen
        self._asked = asked
        self._alone = asyncio.Lock()
        self._max_pages = max_pages
        self._busy_seconds = busy_seconds
        self._at_once = SqliteAtOnce(self._connect)
        self._heard: tuple[int, int] | None = None
        self.prepare(self._connected, self._address)

    @property
    def failure(self) -> StoreError | None:
        return self._gone or self._read_only or super().failure

    async def aclose(self) -> None:
        await super().aclose()
        await self._at_once.aclose()

    async def _read(self, work: Work[T]) -> T:
        if self._read_only is None or self._asked:
            return await super()._read(work)
        # What a process has open of a file that it can only read, all its connections share: none
        # could write while another one reads.
        async with self._alone:
            return await super()._read(work)

    async def _writes(self, work: Work[Any]) -> Done:
        # Through the same connection, so that it sees whether anybody else has written.
        return await self._told(self._at_once.write_awaiting(self._checked(work)))

    async def _writes_at_once(self, work: Work[Any]) -> Done:
        return await self._told(self._at_once.write(self._checked(work)))

    async def _told(self, writing: Awaitable[Done]) -> Done:
        try:
            return await writing
        except (sqlite3.Error, OSError) as error:
            # A file that is gone cannot be opened either.
            raise self._file.fault() or sqlite_fault(error) from error

    def _checked(self, work: Work[T]) -> Work[T]:
        if self._read_only is not None:
            raise self._read_only

        async def checked(transaction: Transaction) -> T:
            result = await work(transaction)
            self._gone = self._file.fault() or self._file.log_fault()
            if self._gone is not None:
                raise self._gone
            return result

        return checked

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._address(), uri=True, timeout=self._busy_seconds, check_same_thread=False
        )
        self._connected(connection)
        return connection

    def _address(self) -> str:
        # Never "rwc": where the file is gone, an empty one in its place would help nobody.
        mode = "rw" if self._read_only is None else "ro&immutable=1" if self._frozen else "ro"
        return _address_of(self.path, mode)

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
        """Notices what happens to the file, and what others write."""
        for glance in count():
            if glance % GLANCES == 0:
                await self.look()
            await self.hear()
            await asyncio.sleep(GLANCE_SECONDS)

    async def hear(self) -> None:
        """Signals that anything may have changed when another process has committed."""
        if not self.signals.wanted:
            self._heard = None
            return
        # The next transaction says what is wrong with the file.
        with suppress(sqlite3.Error, OSError):
            version = await self._at_once.version()
            if version != self._heard:
                # Also at first: something may have been committed before anybody looked.
                self._heard = version
                self.signals.deliver_all()

    async def look(self) -> None:
        """Notices that the file is not there any more, or there again, or may be written by now."""
        self._gone = self._file.fault()
        if self._gone is None and self._read_only is not None and not self._asked:
            await self._look_whether_writable()
        if self._gone is None or not self._file.is_another or self._writer is None:
            return
        async with self._writer:
            try:
                ours = await self._read(lambda each: each.row(FINGERPRINT))
            except StoreError:
                return
            if ours is not None and await asyncio.to_thread(self._file.take_if, tuple(ours)):
                # A copy that was brought back: what is open leads to the file that is gone.
                await self._disconnect()
                self._gone = None

    async def _look_whether_writable(self) -> None:
        async with self._alone:
            await self._disconnect()
            try:
                await asyncio.to_thread(_make_ready, self.path, self._busy_seconds)
            except StoreError:
                return
            self._read_only = None

    async def _disconnect(self) -> None:
        """Whoever needs the file next opens it anew."""
        await self._at_once.disconnect()
        await self._dispose()


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
    path = await asyncio.to_thread(_located, path)
    if read_only:
        return await _open_to_read(path, _asked_to_read(), busy_seconds, max_pages, asked=True)
    try:
        await asyncio.to_thread(_prepare, path, busy_seconds)
    except StoreError as error:
        if error.code not in _UNWRITABLE or not await asyncio.to_thread(_has_content, path):
            raise
        # What is stored can be read without a single write.
        why = _only_to_read(error)
        return await _open_to_read(path, why, busy_seconds, max_pages, asked=False)
    database = SqliteDatabase(path, read_only=None, busy_seconds=busy_seconds, max_pages=max_pages)
    return await _opened(database)


async def _open_to_read(
    path: Path, why: StoreError, busy_seconds: float, max_pages: int, *, asked: bool
) -> SqliteDatabase:
    def database(*, frozen: bool) -> SqliteDatabase:
        return SqliteDatabase(
            path,
            read_only=why,
            busy_seconds=busy_seconds,
            max_pages=max_pages,
            frozen=frozen,
            asked=asked,
        )

    try:
        return await _opened(database(frozen=False))
    except StoreError as error:
        # SQLite wants a file beside it even to read, unless nobody can have written meanwhile.
        if error.code not in _UNWRITABLE or await asyncio.to_thread(_has_log, path):
            raise
    return await _opened(database(frozen=True))


async def _opened(database: SqliteDatabase) -> SqliteDatabase:
    try:
        await migrate(database, SQLITE, _nothing)
    except BaseException:
        await database.aclose()
        raise
    database.spawn(database.watch())
    return database


def _located(path: Path) -> Path:
    """The file itself; where a folder is named, it is made."""
    try:
        if path.is_dir() or (not path.exists() and not path.suffix):
            path.mkdir(0o700, parents=True, exist_ok=True)
            return path / FILE_NAME
    except OSError as error:
        raise _not_opened(path, error) from error
    return path


def _prepare(path: Path, busy_seconds: float) -> None:
    """Has the file there, for this user alone, and ready to be written."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
    except OSError as error:
        raise _not_opened(path, error) from error
    _make_ready(path, busy_seconds)


def _make_ready(path: Path, busy_seconds: float) -> None:
    """Has a file in WAL mode. Raises StoreError where it cannot be written."""
    try:
        connection = sqlite3.connect(_address_of(path, "rw"), uri=True, timeout=busy_seconds)
        try:
            _use_wal(connection, time.monotonic() + busy_seconds)
            _check_writable(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise sqlite_fault(error) from error


def _address_of(path: Path, mode: str) -> str:
    return f"file:{quote(str(path))}?mode={mode}"


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _not_opened(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"The file of the database cannot be opened: {error.strerror}: {path}.",
        hint="Nothing was written. Check its folder, and that this user may write there.",
        code="store_unavailable",
    )


def _asked_to_read() -> StoreError:
    return StoreError(
        "The database was opened to be read only.",
        hint=f"{KEPT} Take mode=ro out of the address of the store to write again.",
        code="store_read_only",
    )


def _only_to_read(error: StoreError) -> StoreError:
    return StoreError(
        f"{error.message} So the database is only read.",
        hint=f"{KEPT} Make room, or let this user write the file and its folder: it is noticed "
        "within seconds, and then all goes on.",
        code="store_read_only",
    )


def _use_wal(connection: sqlite3.Connection, deadline: float) -> None:
    """Changes the mode; SQLite does not always wait by itself for others who do the same."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            # Where only reading works, it may be in that mode already; writing is tried next.
            if name == "SQLITE_READONLY":
                return
            if not name.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _check_writable(connection: sqlite3.Connection) -> None:
    """Raises what the first transaction that writes would raise, but for others who write."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
            raise


async def _nothing(_: Transaction) -> None:
    """BEGIN IMMEDIATE is the lock."""
