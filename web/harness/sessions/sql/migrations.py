"""Brings a database to the schema of this version, under a lock, step by step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from web.harness.sessions.sql.database import Database, Transaction
from web.harness.sessions.sql.schema import MIGRATIONS, Dialect
from web.harness.values.errors import StoreError

VERSION = len(MIGRATIONS)
"""Of the schema that this version reads and writes."""

Lock = Callable[[Transaction], Awaitable[None]]
"""Holds every other server back until the transaction ends."""


async def migrate(database: Database, dialect: Dialect, lock: Lock) -> None:
    """All missing steps in one transaction, so that a crash leaves the old schema or the new one.

    Raises StoreError (`from_the_future`) for a schema that a later version made.
    """

    async def step(transaction: Transaction) -> None:
        await lock(transaction)
        version = await _version(transaction, dialect)
        _check(version)
        if version == 0:
            await transaction.do(
                "CREATE TABLE harness_schema (version INTEGER PRIMARY KEY, applied_at "
                f"{dialect.types['real']} NOT NULL)"
            )
        for number, statements in enumerate(MIGRATIONS[version:], version + 1):
            for statement in statements:
                await transaction.do(statement.format(**dialect.types))
            await transaction.do(
                "INSERT INTO harness_schema (version, applied_at) "
                f"VALUES (:number, {database.now})",
                {"number": number},
            )

    version = await database.read(lambda transaction: _version(transaction, dialect))
    _check(version)
    if version < VERSION:
        await database.write(step)


async def _version(transaction: Transaction, dialect: Dialect) -> int:
    if await transaction.row(dialect.has_schema) is None:
        return 0
    row = await transaction.row("SELECT max(version) FROM harness_schema")
    return int(row[0] or 0) if row is not None else 0


def _check(version: int) -> None:
    if version > VERSION:
        raise StoreError(
            f"The database has schema {version}; this version knows up to {VERSION}.",
            hint="A later version has written it. Update this one. Nothing was changed.",
            code="from_the_future",
        )
