"""Opens the stores of one address: sessions, events, runs, records and blobs side by side."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from web.harness.sessions.event_log import EventLog, InMemoryEventLog, Listener
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.journal import Executions
from web.harness.sessions.records import Blobs, InMemoryBlobs, InMemoryRecords, Records
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import ConfigurationError

if TYPE_CHECKING:
    from web.harness.sessions.sql.database import Database

_PAGES = re.compile(r"[0-9]{1,9}")

FORMS = "memory, sqlite:///PATH (sqlite:////PATH from the root), postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class Stores:
    """What keeps chats. Whoever opened them closes them.

    `database` and `executions`, the runs that can be gone on with, are None for memory.
    """

    sessions: SessionStore
    events: EventLog
    records: Records
    blobs: Blobs
    database: Database | None = None
    executions: Executions | None = None

    async def aclose(self) -> None:
        """Writes what is still to be written, and closes. Leases that are held end with time."""
        await self.events.aclose()
        if self.database is not None:
            await self.database.aclose()


async def open_stores(
    address: str, *, now: Callable[[], float], listener: Listener | None = None
) -> Stores:
    """The stores of `memory`, `sqlite:///PATH` or `postgresql://...`.

    A PATH without an ending is a folder, which is made. `?mode=ro` behind it only reads,
    `?max_pages=N` lets the file take N pages of 4 KiB. `now` returns seconds since the epoch,
    `listener` is that of the event log. Raises ConfigurationError for another address, and
    StoreError where the database cannot be used.
    """
    if address == "memory":
        return Stores(
            InMemorySessionStore(), InMemoryEventLog(now, listener), InMemoryRecords(),
            InMemoryBlobs(),
        )  # fmt: skip
    database = await open_database(address)
    await _loaded("executions", "records", "store")
    from web.harness.sessions.sql.event_log import SqlEventLog
    from web.harness.sessions.sql.executions import SqlExecutions
    from web.harness.sessions.sql.records import SqlBlobs, SqlRecords
    from web.harness.sessions.sql.store import SqlSessionStore

    events = SqlEventLog(database, now, listener)
    return Stores(
        SqlSessionStore(database),
        events,
        SqlRecords(database),
        SqlBlobs(database),
        database,
        SqlExecutions(database, events),
    )


def repeated(address: str) -> str:
    """A refused address in quotes, at most 80 characters of it; "this address" where there may be
    a password in it."""
    secret = any(mark in address for mark in ("@", "=", "%"))
    return "this address" if secret else f"'{address[:80]}'"


def store_kind(address: str) -> Literal["memory", "sqlite", "postgresql"] | None:
    """What an address asks for; None where it is none."""
    if address == "memory":
        return "memory"
    if address.startswith("sqlite:///") and len(address) > len("sqlite:///"):
        return "sqlite"
    if address.startswith(("postgresql://", "postgres://")):
        return "postgresql"
    return None


async def open_database(address: str) -> Database:
    """The database of an address, with the schema of this version. Raises as `open_stores`."""
    scheme = address.partition(":")[0]
    if scheme == "sqlite" and address.startswith("sqlite:///"):
        await _loaded("sqlite")
        from web.harness.sessions.sql.sqlite import open_sqlite

        parts = urlsplit(address)
        path = unquote(parts.path).removeprefix("/")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        mode, pages = query.pop("mode", "rwc"), query.pop("max_pages", "0")
        is_whole = path and not query and "#" not in address
        if is_whole and mode in ("ro", "rwc") and _PAGES.fullmatch(pages):
            return await open_sqlite(Path(path), read_only=mode == "ro", max_pages=int(pages))
    if scheme in ("postgresql", "postgres") and "://" in address:
        await _loaded("postgres")
        from web.harness.sessions.sql.postgres import open_postgres

        return await open_postgres(address)
    # The address may hold a password, and is not repeated.
    raise ConfigurationError(
        "This is no address of a store.",
        hint=f"It is one of: {FORMS}. Within PATH, # is %23 and ? is %3F.",
    )


async def _loaded(*modules: str) -> None:
    """Imports what knows databases in a thread: it takes half a second, and others have the loop
    meanwhile."""
    for module in modules:
        name = f"web.harness.sessions.sql.{module}"
        if name not in sys.modules:
            await asyncio.to_thread(importlib.import_module, name)
