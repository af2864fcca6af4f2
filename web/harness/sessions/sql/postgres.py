"""PostgreSQL: a pool of connections, and one that listens. The only file that knows asyncpg."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Sequence
from typing import Any

import asyncpg

from web.harness.sessions.sql.at_once import CLOSE_SECONDS, Done, PostgresAtOnce
from web.harness.sessions.sql.database import Transaction, Work
from web.harness.sessions.sql.engine import PAUSES, Engine
from web.harness.sessions.sql.faults import postgres_fault, unreachable
from web.harness.sessions.sql.migrations import migrate
from web.harness.sessions.sql.presence import SETTLED_SECONDS, Presences
from web.harness.sessions.sql.schema import POSTGRES
from web.harness.values.errors import StoreError

CHANNEL = "harness_signals"

MIGRATION_LOCK = 0x4861_726E_6573_73
"""Of the advisory lock that migrations are made under."""

CONNECTIONS = 10
CONNECT_SECONDS = 10.0
COMMAND_SECONDS = 30.0
"""After so long without an answer a connection counts as cut off."""

LISTEN_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
PROBE_SECONDS = 15.0
"""How often the connection that listens is asked whether it is still there."""

NOW = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"

logger = logging.getLogger(__name__)


class PostgresDatabase(Engine):
    """The `Database` on a PostgreSQL server; see `open_postgres`."""

    def __init__(
        self, dsn: str, command_seconds: float, pauses: Sequence[float], settled_seconds: float
    ) -> None:
        self._dsn = dsn
        self._command_seconds = command_seconds
        self._origin = uuid.uuid4().hex[:12]
        self.listening = asyncio.Event()
        self._presences = Presences(settled_seconds)
        self._at_once = PostgresAtOnce(self._connect, self._tell_others)
        super().__init__(
            "postgresql+asyncpg://",
            name="postgresql",
            now=NOW,
            locked=" FOR UPDATE",
            fault=postgres_fault,
            options={
                "pool_size": CONNECTIONS,
                "max_overflow": 0,
                "pool_timeout": 30,
                # asyncpg reads the address itself, as every program that uses libpq's form.
                "async_creator": self._connect,
                "isolation_level": "READ COMMITTED",
            },
            tell=self._tell_others,
            pauses=pauses,
            reading="REPEATABLE READ",
        )

    async def aclose(self) -> None:
        await super().aclose()
        await self._at_once.aclose()

    async def _dispose(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await super()._dispose()
        except TimeoutError:
            # A server that does not answer would be waited for with each connection anew.
            await self._engine.dispose(close=False)

    async def _writes_at_once(self, work: Work[Any]) -> Done:
        try:
            return await self._at_once.write(work)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise postgres_fault(error) from error

    async def _connect(self) -> asyncpg.Connection[Any]:
        try:
            return await asyncpg.connect(
                self._dsn, timeout=CONNECT_SECONDS, command_timeout=self._command_seconds
            )
        except ValueError as error:
            # It may quote the address, and the address a password.
            raise StoreError(
                "The address of the PostgreSQL server cannot be read.",
                hint="It is postgresql://USER:PASSWORD@HOST:PORT/DATABASE.",
                code="store_refused",
            ) from error
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise postgres_fault(error) from error

    async def _tell_others(self, transaction: Transaction, signals: list[tuple[str, str]]) -> None:
        payloads = [
            {"payload": json.dumps([self._origin, *signal], ensure_ascii=False)}
            for signal in signals
        ]
        await transaction.do(f"SELECT pg_notify('{CHANNEL}', :payload)", payloads)

    @property
    def presence(self) -> str:
        return self._presences.key if self.listening.is_set() else ""

    async def is_gone(self, transaction: Transaction, presence: str) -> bool:
        return await self._presences.is_gone(transaction, presence)

    async def listen(self) -> None:
        """Hears what other servers committed, and is there for them; connects again where that was
        cut."""
        failures = 0
        while True:
            try:
                connection = await self._connect()
                failures = 0
                await self._hear(connection)
            except Exception as error:
                # Whatever it is: without this task nobody would hear of others any more.
                logger.info("The database does not let us listen yet: %s", error)
            self.listening.clear()
            await asyncio.sleep(LISTEN_PAUSES[min(failures, len(LISTEN_PAUSES) - 1)])
            failures += 1

    async def _hear(self, connection: asyncpg.Connection[Any]) -> None:
        gone = asyncio.Event()
        connection.add_termination_listener(lambda _: gone.set())
        try:
            await connection.execute(self._presences.lock)
            await connection.add_listener(CHANNEL, self._heard)
            self.listening.set()
            # Something may have been told while nobody listened.
            self.signals.deliver_all()
            while not gone.is_set():
                try:
                    await asyncio.wait_for(gone.wait(), PROBE_SECONDS)
                except TimeoutError:
                    await connection.fetchval("SELECT 1")
        finally:
            connection.terminate()

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        try:
            origin, topic, key = json.loads(str(payload))
        except ValueError:
            return  # Somebody else's words.
        if origin != self._origin:
            self.signals.deliver(topic, key)


async def open_postgres(
    dsn: str,
    *,
    command_seconds: float = COMMAND_SECONDS,
    pauses: Sequence[float] = PAUSES,
    settled_seconds: float = SETTLED_SECONDS,
) -> PostgresDatabase:
    """Connects and migrates. `dsn` is `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, with the
    parameters that libpq knows; `pauses` are seconds before each further try of what was cut off,
    `settled_seconds` are those after the start of the database server in which no other server is
    taken for dead. Raises StoreError."""
    database = PostgresDatabase(dsn, command_seconds, pauses, settled_seconds)
    try:
        await migrate(database, POSTGRES, _locked)
    except BaseException as error:
        await database.aclose()
        if isinstance(error, StoreError) and error.code == "store_unavailable" and error.transient:
            raise unreachable() from error
        raise
    database.spawn(database.listen())
    return database


async def _locked(transaction: Transaction) -> None:
    await transaction.do("SELECT pg_advisory_xact_lock(:lock)", {"lock": MIGRATION_LOCK})
