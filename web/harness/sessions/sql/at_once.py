"""Transactions straight through the driver, for what is written many times a second.

The engine's own way takes some twenty turns between threads, or layers, for one transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar, cast

from web.harness.sessions.sql.database import Row, Transaction, Values, Work
from web.harness.sessions.sql.statements import in_pieces, numbered, sent, with_lists

CONNECTIONS = 4
"""To PostgreSQL, beside those of the engine."""

CLOSE_SECONDS = 2.0

T = TypeVar("T")

Signal = tuple[str, str]


Tell = Callable[[Transaction, list[Signal]], Awaitable[None]]
"""Puts signals into a transaction before it commits."""


Turn = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Has something done in the thread of a connection."""


class Done(NamedTuple):
    """What came of work that is committed, and who hears of it in this process."""

    signals: Sequence[Signal]
    result: Any


class Signalling:
    """The signals of a transaction, each one once; `here` are those for this process too."""

    def __init__(self) -> None:
        self.signals: list[Signal] = []
        self.here: list[Signal] = []

    def signal(self, topic: str, key: str, *, here: bool = True) -> None:
        for told in (self.signals, self.here) if here else (self.signals,):
            if (topic, key) not in told:
                told.append((topic, key))


class _SqliteTransaction(Signalling):
    """The `Transaction` in a thread: none of its methods waits for the event loop."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection

    async def rows(self, sql: str, values: Values | None = None) -> Sequence[Row]:
        return self._execute(sql, values).fetchall()

    async def row(self, sql: str, values: Values | None = None) -> Row | None:
        return cast("Row | None", self._execute(sql, values).fetchone())

    async def do(self, sql: str, values: Values | Sequence[Values] | None = None) -> None:
        if values is None or isinstance(values, Mapping):
            self._execute(sql, values)
            return
        sql, lists = with_lists(sql, "sqlite")
        self._connection.executemany(sql, (sent(each, lists, "sqlite") for each in values))

    def _execute(self, sql: str, values: Values | None) -> sqlite3.Cursor:
        sql, lists = with_lists(sql, "sqlite")
        return self._connection.execute(sql, sent(values or {}, lists, "sqlite"))


class _AwaitedTransaction(Signalling):
    """The `Transaction` of work that waits for other things too: each statement is a turn of the
    thread."""

    def __init__(self, connection: sqlite3.Connection, turn: Turn) -> None:
        super().__init__()
        self._inner = _SqliteTransaction(connection)
        self._turn = turn

    async def rows(self, sql: str, values: Values | None = None) -> Sequence[Row]:
        rows = await self._turn(lambda: _without_waiting(self._inner.rows(sql, values)))
        return cast("Sequence[Row]", rows)

    async def row(self, sql: str, values: Values | None = None) -> Row | None:
        row = await self._turn(lambda: _without_waiting(self._inner.row(sql, values)))
        return cast("Row | None", row)

    async def do(self, sql: str, values: Values | Sequence[Values] | None = None) -> None:
        await self._turn(lambda: _without_waiting(self._inner.do(sql, values)))


class SqliteAtOnce:
    """The one connection that writes, in a thread of its own, where a whole transaction is done in
    one turn.

    One at a time, which the caller sees to. Errors are those of the driver, or of the work.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._connected = 0
        self._closed = False
        self._thread = ThreadPoolExecutor(1, "harness-sqlite")

    async def write(self, work: Work[Any]) -> Done:
        return await self._do(lambda: self._write(work))

    async def write_awaiting(self, work: Work[Any]) -> Done:
        """The same in many turns, of work that waits for other things too."""
        try:
            connection = await self._do(self._begin)
            transaction = _AwaitedTransaction(connection, self._do)
            result = await work(transaction)
            await self._do(lambda: connection.execute("COMMIT"))
        except BaseException:
            # Whoever is cancelled may have it begun by now.
            await self._do(self._roll_back)
            raise
        return Done(transaction.here, result)

    async def version(self) -> tuple[int, int]:
        """Another one after each commit of any connection but this one."""
        return await self._do(self._version)

    async def disconnect(self) -> None:
        """The next transaction connects anew."""
        await self._do(self._disconnect)

    async def aclose(self) -> None:
        """Twice is fine."""
        if not self._closed:
            self._closed = True
            await self.disconnect()
            self._thread.shutdown(wait=False)

    async def _do(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._connected += 1
        return self._connection

    def _version(self) -> tuple[int, int]:
        row = self._open().execute("PRAGMA data_version").fetchone()
        return self._connected, int(row[0])

    def _begin(self) -> sqlite3.Connection:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def _write(self, work: Work[Any]) -> Done:
        connection = self._begin()
        try:
            transaction = _SqliteTransaction(connection)
            result = _without_waiting(work(transaction))
            connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        return Done(transaction.here, result)

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _without_waiting(work: Awaitable[T]) -> T:
    coroutine = cast("Coroutine[Any, Any, T]", work)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    coroutine.close()
    raise RuntimeError("Work that is written at once waits for its transaction alone.")


class _PostgresTransaction(Signalling):
    """The `Transaction` on a connection of the driver, which keeps its statements prepared."""

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self._connection = connection

    async def rows(self, sql: str, values: Values | None = None) -> Sequence[Row]:
        sql, (arguments,) = _arguments(sql, [values or {}])
        return cast("Sequence[Row]", await self._connection.fetch(sql, *arguments))

    async def row(self, sql: str, values: Values | None = None) -> Row | None:
        sql, (arguments,) = _arguments(sql, [values or {}])
        return cast("Row | None", await self._connection.fetchrow(sql, *arguments))

    async def do(self, sql: str, values: Values | Sequence[Values] | None = None) -> None:
        every = [values or {}] if values is None or isinstance(values, Mapping) else values
        for some in in_pieces(every):
            statement, arguments = _arguments(sql, some)
            if len(arguments) == 1:
                await self._connection.fetch(statement, *arguments[0])
            else:
                await self._connection.executemany(statement, arguments)


def _arguments(sql: str, values: Sequence[Values]) -> tuple[str, list[list[Any]]]:
    sql, lists = with_lists(sql, "postgresql")
    sql, names = numbered(sql)
    every = [sent(each, lists, "postgresql") for each in values]
    return sql, [[each[name] for name in names] for each in every]


class PostgresAtOnce:
    """Some connections of its own, past the engine, one for each transaction at a time.

    Errors are those of the driver, or of the work.
    """

    def __init__(self, connect: Callable[[], Awaitable[Any]], tell: Tell) -> None:
        self._connect = connect
        self._tell = tell
        self._free: list[Any] = []
        self._places = asyncio.Semaphore(CONNECTIONS)

    async def write(self, work: Work[Any]) -> Done:
        async with self._places:
            # The one that was used last has its statements prepared.
            connection = self._free.pop() if self._free else None
            if connection is None or connection.is_closed():
                connection = await self._connect()
            try:
                done = await self._write(connection, work)
            except BaseException as error:
                # A connection that does not answer would not answer to a rollback either.
                if isinstance(error, OSError) or not await _rolled_back(connection):
                    connection.terminate()
                else:
                    self._free.append(connection)
                raise
            self._free.append(connection)
            return done

    async def aclose(self) -> None:
        free, self._free = self._free, []
        await asyncio.gather(*map(_closed, free))

    async def _write(self, connection: Any, work: Work[Any]) -> Done:
        await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        transaction = _PostgresTransaction(connection)
        result = await work(transaction)
        if transaction.signals:
            await self._tell(transaction, transaction.signals)
        await connection.execute("COMMIT")
        return Done(transaction.here, result)


async def _closed(connection: Any) -> None:
    try:
        await connection.close(timeout=CLOSE_SECONDS)
    except Exception:
        connection.terminate()


async def _rolled_back(connection: Any) -> bool:
    try:
        await connection.execute("ROLLBACK")
    except Exception:
        return False
    return True
