"""Transactions over SQLAlchemy's asynchronous engine. The only file that knows SQLAlchemy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast

from sqlalchemy import CursorResult, event, text
from sqlalchemy.exc import DBAPIError, TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from web.harness.sessions.sql.at_once import Done, Signalling, Tell
from web.harness.sessions.sql.database import Row, Transaction, Values, Work
from web.harness.sessions.sql.signals import Signals
from web.harness.sessions.sql.statements import Dialect, in_pieces, sent, with_lists
from web.harness.values.errors import StoreError

T = TypeVar("T")

PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0, 4.0)
"""Seconds before each further try of work whose connection was lost; a restart takes some."""

SLOW_SECONDS = 1.5
"""A transaction that writes for longer is told of: somebody may have locked the database."""

logger = logging.getLogger(__name__)

Transact = Callable[[Work[Any]], Awaitable[Done]]

Fault = Callable[[BaseException], StoreError]
"""Makes an error of the driver one of ours. `again` of it says that the work may be repeated."""


_text = lru_cache(maxsize=256)(text)


class EngineTransaction(Signalling):
    """The `Transaction` on one connection."""

    def __init__(self, connection: AsyncConnection) -> None:
        super().__init__()
        self._connection = connection

    async def rows(self, sql: str, values: Values | None = None) -> Sequence[Row]:
        return (await self._execute(sql, values)).fetchall()

    async def row(self, sql: str, values: Values | None = None) -> Row | None:
        return (await self._execute(sql, values)).fetchone()

    async def do(self, sql: str, values: Values | Sequence[Values] | None = None) -> None:
        if values is None or isinstance(values, Mapping):
            await self._execute(sql, values)
            return
        for some in in_pieces(values):
            await self._execute(sql, some)

    async def _execute(self, sql: str, values: Any) -> CursorResult[Any]:
        dialect = cast(Dialect, self._connection.dialect.name)
        statement, lists = with_lists(sql, dialect)
        if lists:
            values = sent(values, lists, dialect)
        return await self._connection.execute(_text(statement), values)


class Engine:
    """What SQLite and PostgreSQL share of a `Database`.

    `tell` puts signals into the transaction before it commits. Where there is only one `writer` in
    the process, transactions that write take turns.
    """

    def __init__(
        self,
        url: str,
        *,
        name: Literal["sqlite", "postgresql"],
        now: str,
        locked: str,
        fault: Fault,
        options: dict[str, Any],
        writer: asyncio.Lock | None = None,
        tell: Tell | None = None,
        pauses: Sequence[float] = PAUSES,
        reading: Literal["REPEATABLE READ"] | None = None,
    ) -> None:
        self.name = name
        self.now = now
        self.locked = locked
        self.signals = Signals()
        self._fault = fault
        self._writer = writer
        self._tell = tell
        self._pauses = pauses
        self._reading = reading
        self._engine: AsyncEngine = create_async_engine(url, **options)
        self._work: set[asyncio.Task[Any]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._writing: dict[object, float] = {}
        self._closed = False

    def prepare(self, each: Callable[[Any], None], address: Callable[[], str]) -> None:
        """`each` gets every new connection of the driver, which leads to the `address` of that
        moment; transactions are begun in words."""

        @event.listens_for(self._engine.sync_engine, "do_connect")
        def _connecting(_dialect: Any, _record: Any, arguments: Any, _more: Any) -> None:
            arguments[0] = address()

        @event.listens_for(self._engine.sync_engine, "connect")
        def _connected(connection: Any, _record: Any) -> None:
            each(connection)

        @event.listens_for(self._engine.sync_engine, "begin")
        def _begun(connection: Any) -> None:
            connection.exec_driver_sql("BEGIN")

    @property
    def presence(self) -> str:
        return ""

    async def is_gone(self, transaction: Transaction, presence: str) -> bool:
        return False

    @property
    def failure(self) -> StoreError | None:
        longest = min(self._writing.values(), default=None)
        if longest is None or time.monotonic() - longest < SLOW_SECONDS:
            return None
        return StoreError(
            "The database takes long to write; another program may have locked it.",
            hint="Close that program, or look at the disk or the server of the database.",
            code="store_busy",
        )

    async def write(self, work: Work[T]) -> T:
        return await self.whole(self._timed(lambda: self._write(work, self._writes)))

    async def write_at_once(self, work: Work[T]) -> T:
        return await self.whole(self._timed(lambda: self._write(work, self._writes_at_once)))

    async def read(self, work: Work[T]) -> T:
        return await self.whole(self._again(lambda: self._read(work)))

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def aclose(self) -> None:
        self._closed = True
        for background in self._background:
            background.cancel()
        await asyncio.gather(*self._background, *self._work, return_exceptions=True)
        await self._dispose()

    async def _dispose(self) -> None:
        await self._engine.dispose()

    async def whole(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs it in a task of its own, so that nobody's cancellation cuts a connection in two."""
        if self._closed:
            coroutine.close()
            raise StoreError("This store is closed.", code="store_closed")
        task = asyncio.get_running_loop().create_task(coroutine)
        self._work.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._work.discard(task)
        # Its caller may be gone; what went wrong has been told, or nobody wants to know it.
        if not task.cancelled():
            task.exception()

    async def _again(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for pause in self._pauses:
            await asyncio.sleep(pause)
            try:
                return await attempt()
            except StoreError as error:
                if not error.transient or self._closed:
                    raise
                logger.info("The database was lost for a moment: %s", error.message)
        return await attempt()

    async def _timed(self, attempt: Callable[[], Awaitable[T]]) -> T:
        mark = object()
        self._writing[mark] = time.monotonic()
        try:
            return await self._again(attempt)
        finally:
            del self._writing[mark]

    async def _write(self, work: Work[T], transact: Transact) -> T:
        if self._writer is None:
            return await self._written(work, transact)
        async with self._writer:
            return await self._written(work, transact)

    async def _written(self, work: Work[T], transact: Transact) -> T:
        signals, result = await transact(work)
        for topic, key in signals:
            self.signals.deliver(topic, key)
        return cast(T, result)

    async def _writes(self, work: Work[Any]) -> Done:
        return await self._transact(work, writes=True)

    async def _writes_at_once(self, work: Work[Any]) -> Done:
        """Past the engine, where there is a shorter way."""
        return await self._writes(work)

    async def _read(self, work: Work[T]) -> T:
        return cast(T, (await self._transact(work, writes=False)).result)

    async def _transact(self, work: Work[Any], *, writes: bool) -> Done:
        try:
            async with self._engine.connect() as connection:
                if not writes and self._reading is not None:
                    # All of a reading is of one moment; SQLite has it so by itself.
                    await connection.execution_options(isolation_level=self._reading)
                begun = await connection.begin()
                try:
                    transaction = EngineTransaction(connection)
                    result = await work(transaction)
                    if transaction.signals and self._tell is not None:
                        await self._tell(transaction, transaction.signals)
                    await begun.commit()
                except BaseException as error:
                    # A connection that does not answer would not answer to a rollback either.
                    if isinstance(error, OSError):
                        await connection.invalidate()
                    await begun.rollback()
                    raise
        except (DBAPIError, PoolTimeout, OSError) as error:
            raise self._fault_of(error) from error
        return Done(transaction.here, result)

    def _fault_of(self, error: Exception) -> StoreError:
        if isinstance(error, PoolTimeout):
            return StoreError("All connections to the database are in use.", code="store_busy")
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        return self._fault(cause)
