"""Reads the last snapshot of a session, of which this process may know most already."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from web.harness.sessions.snapshot import SessionSnapshot, own_messages_of_many
from web.harness.sessions.sql import session_rows
from web.harness.sessions.sql.cache import Cached, SnapshotCache
from web.harness.sessions.sql.database import Database, Row, Transaction
from web.harness.sessions.sql.leases import Scope
from web.harness.sessions.sql.rows import HISTORY, Conversations, snapshot_of_rows

INLINE_MESSAGES = 50
"""Up to so many are made of rows at once; more go to a thread."""


class _Rows(NamedTuple):
    head: session_rows.Head
    state: str
    names: list[str]
    messages: Sequence[Row]
    pictures: dict[str, bytes]


async def load(
    database: Database,
    cache: SnapshotCache,
    scope: Scope,
    check: Callable[[Transaction], Awaitable[None]] | None = None,
) -> Cached | None:
    """What is stored, None for an empty session. `check` comes first, in the same transaction.

    Nobody may change what is returned. Raises StoreError.
    """

    async def work(transaction: Transaction) -> _Rows | Cached | None:
        if check is not None:
            await check(transaction)
        head = await session_rows.head_of(transaction, scope)
        if head is None:
            return None
        return cache.get(scope.key, head.revision, head.token) or _Rows(
            head,
            await session_rows.state_of(transaction, head.key),
            await session_rows.names_of(transaction, head.key),
            await session_rows.messages_of(transaction, head.key),
            await session_rows.pictures_of(transaction, head.key),
        )

    rows = await database.read(work)
    if not isinstance(rows, _Rows):
        return rows
    head, state, names, messages, pictures = rows
    arguments = (head.revision, head.replayable, state, names, messages, pictures)
    if len(messages) > INLINE_MESSAGES or pictures:
        snapshot = await asyncio.to_thread(snapshot_of_rows, *arguments)
    else:
        snapshot = snapshot_of_rows(*arguments)
    named = {HISTORY: snapshot.history, **snapshot.conversations}
    found = Cached(head.revision, head.token, head.replayable, named, state)
    cache.put(scope.key, found)
    return found


async def own_snapshot_of(found: Cached) -> tuple[SessionSnapshot, Conversations]:
    """A copy that its caller may change, and its conversations, the history among them."""
    named = await own_messages_of_many(found.conversations)
    others = {name: each for name, each in named.items() if name != HISTORY}
    state = json.loads(found.state)
    return (
        SessionSnapshot(named[HISTORY], others, state, found.revision, found.replayable),
        named,
    )
