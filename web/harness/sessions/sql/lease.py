"""`SqlLease`: reads and commits one session for as long as it is held."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from web.harness.sessions.snapshot import SessionSnapshot, own_messages, own_messages_of_many
from web.harness.sessions.sql import leases, session_rows
from web.harness.sessions.sql.cache import Cached, SnapshotCache
from web.harness.sessions.sql.database import Database, Row, Transaction
from web.harness.sessions.sql.holders import give_up
from web.harness.sessions.sql.leases import Scope
from web.harness.sessions.sql.rows import (
    HISTORY,
    Changes,
    changes_of,
    shared_length,
    snapshot_of_rows,
)
from web.harness.sessions.store import BaseLease
from web.harness.values.errors import LeaseLost, StoreError
from web.harness.values.messages import Message

T = TypeVar("T")

_Rows = tuple[session_rows.Head, str, list[str], Sequence[Row], dict[str, bytes]]

INLINE_MESSAGES = 50
"""Up to so many are made of rows at once; more go to a thread."""


class SqlLease(BaseLease):
    """The `SessionLease` of `SqlSessionStore`.

    `fence` is higher than that of every holder before. `lost` is set when the lease ran out without
    being renewed: whoever runs under it can stop.
    """

    def __init__(
        self,
        database: Database,
        cache: SnapshotCache,
        scope: Scope,
        holder: str,
        left: Callable[[SqlLease], None],
    ) -> None:
        self.scope = scope
        self.holder = holder
        self.fence = 0
        self.lost = asyncio.Event()
        self._database = database
        self._cache = cache
        self._left = left
        self._open = True
        # What is stored, in the very messages that our caller has: they compare at no cost.
        self._known: Cached | None = None
        # A release waits for a commit, also for one whose caller is gone.
        self._one = asyncio.Lock()

    async def read(self) -> SessionSnapshot:
        self._check_open()
        return await self._database.whole(self._read())

    async def commit(self, snapshot: SessionSnapshot) -> SessionSnapshot:
        self._check_open()
        return await self._database.whole(self._commit(snapshot))

    async def release(self) -> None:
        if self._open:
            self._open = False
            await self._database.whole(self._release())

    def lose(self) -> None:
        """Its time has passed, so others may have it: here too."""
        self.lost.set()
        self._left(self)

    def _check_open(self) -> None:
        if not self._open:
            raise LeaseLost("The lease of this session was released.")

    async def _read(self) -> SessionSnapshot:
        async with self._one:
            found = await self._guarded(self._load)
            if isinstance(found, SessionSnapshot):
                return found
            named = await own_messages_of_many(found.conversations)
            self._known = replace(found, conversations=named)
            history = named[HISTORY]
            others = {name: each for name, each in named.items() if name != HISTORY}
            state = json.loads(found.state)
            return SessionSnapshot(history, others, state, found.revision, found.replayable)

    async def _load(self) -> Cached | SessionSnapshot:
        rows = await self._database.read(self._rows)
        if rows is None:
            return SessionSnapshot()
        if isinstance(rows, Cached):
            return rows
        head, state, names, messages, pictures = rows
        arguments = (head.revision, head.replayable, state, names, messages, pictures)
        if len(messages) > INLINE_MESSAGES or pictures:
            snapshot = await asyncio.to_thread(snapshot_of_rows, *arguments)
        else:
            snapshot = snapshot_of_rows(*arguments)
        named = {HISTORY: snapshot.history, **snapshot.conversations}
        found = Cached(head.revision, head.token, head.replayable, named, state)
        self._cache.put(self.scope.key, found)
        return found

    async def _rows(self, transaction: Transaction) -> _Rows | Cached | None:
        """Of an empty session None, of one that is known what is known, else its rows."""
        await leases.check(transaction, self._database, self.scope, self.holder, lock=False)
        head = await session_rows.head_of(transaction, self.scope)
        if head is None:
            return None
        cached = self._cache.get(self.scope.key, head.revision, head.token)
        if cached is not None:
            return cached
        return (
            head,
            await session_rows.state_of(transaction, head.key),
            await session_rows.names_of(transaction, head.key),
            await session_rows.messages_of(transaction, head.key),
            await session_rows.pictures_of(transaction, head.key),
        )

    async def _commit(self, snapshot: SessionSnapshot) -> SessionSnapshot:
        async with self._one:
            known = self._known
            changes = await asyncio.to_thread(changes_of, snapshot, known)
            token = uuid.uuid4().hex
            revision = await self._guarded(
                lambda: self._database.write(
                    lambda each: self._write(each, snapshot, changes, token)
                )
            )
            self._remember(snapshot, changes, revision, token)
        return replace(
            snapshot,
            history=changes.conversations[HISTORY],
            conversations={
                name: each for name, each in changes.conversations.items() if name != HISTORY
            },
            state=json.loads(changes.state),
            revision=revision,
        )

    async def _write(
        self, transaction: Transaction, snapshot: SessionSnapshot, changes: Changes, token: str
    ) -> int:
        head = await session_rows.head_of(transaction, self.scope)
        if head is not None and head.token == token:
            return head.revision  # The connection was lost after the commit.
        await leases.check(transaction, self._database, self.scope, self.holder)
        known = self._known.token if self._known is not None else None
        whole = (head.token if head is not None else None) != known
        if whole:
            # Nobody has read what is stored: all of it is replaced.
            changes = await asyncio.to_thread(changes_of, snapshot, None)
        return await session_rows.write(
            transaction, self._database, self.scope, head, changes, token,
            snapshot.replayable, whole,
        )  # fmt: skip

    def _remember(
        self, snapshot: SessionSnapshot, changes: Changes, revision: int, token: str
    ) -> None:
        """What is stored now; of the copies for others only what is new is made."""
        before = self._known
        others = self._cache.get(self.scope.key, before.revision, before.token) if before else None
        own: dict[str, tuple[Message, ...]] = {}
        for name, messages in changes.conversations.items():
            old = others.conversations.get(name, ()) if others is not None else ()
            same = 0
            if before is not None and old:
                same = min(shared_length(before.conversations.get(name, ()), messages), len(old))
            own[name] = old[:same] + own_messages(messages[same:])
        self._known = Cached(
            revision, token, snapshot.replayable, changes.conversations, changes.state
        )
        self._cache.put(self.scope.key, replace(self._known, conversations=own))

    async def _release(self) -> None:
        async with self._one:
            try:
                if not self.lost.is_set():
                    await self._database.write(
                        lambda each: leases.give_back(each, self.scope, self.holder)
                    )
            except StoreError:
                # For others it ends with time, as it is not renewed any more.
                give_up(self.holder)
            finally:
                self._left(self)

    async def _guarded(self, act: Callable[[], Awaitable[T]]) -> T:
        try:
            return await act()
        except LeaseLost:
            self.lose()
            raise
