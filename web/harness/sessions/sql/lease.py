"""`SqlLease`: reads and commits one session for as long as it is held."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from web.harness.sessions.snapshot import SessionSnapshot, own_messages_of_many
from web.harness.sessions.sql import leases, session_rows
from web.harness.sessions.sql.cache import Cached, SnapshotCache
from web.harness.sessions.sql.database import Database, Transaction, Work
from web.harness.sessions.sql.holders import give_up
from web.harness.sessions.sql.leases import Scope
from web.harness.sessions.sql.loading import load, own_snapshot_of
from web.harness.sessions.sql.rows import (
    HISTORY,
    Changes,
    changes_of,
    shared_length,
)
from web.harness.sessions.store import BaseLease
from web.harness.values.errors import LeaseLost, StoreError
from web.harness.values.messages import Message

T = TypeVar("T")


class _AlsoRefused(Exception):
    """What is committed along with a session belongs to somebody else by now."""

    def __init__(self, error: LeaseLost) -> None:
        super().__init__(error.message)
        self.error = error


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
        self.until = 0.0
        """By the monotonic clock: unless it is renewed, others may have it from then on."""
        self.lost = asyncio.Event()
        self.database = self._database = database
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

    async def commit(
        self, snapshot: SessionSnapshot, *, also: Work[None] | None = None
    ) -> SessionSnapshot:
        """`also` is further work on the same database: both are committed, or neither. A LeaseLost
        that it raises is of something else: this lease is held as before."""
        self._check_open()
        try:
            return await self._database.whole(self._commit(snapshot, also))
        except _AlsoRefused as refused:
            raise refused.error from None

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
            found = await self._guarded(
                lambda: load(self._database, self._cache, self.scope, self._check_held)
            )
            if found is None:
                return SessionSnapshot()
            snapshot, named = await own_snapshot_of(found)
            self._known = replace(found, conversations=dict(named))
            return snapshot

    async def _check_held(self, transaction: Transaction) -> None:
        await leases.check(transaction, self._database, self.scope, self.holder, lock=False)

    async def _commit(self, snapshot: SessionSnapshot, also: Work[None] | None) -> SessionSnapshot:
        async with self._one:
            known = self._known
            changes = await asyncio.to_thread(changes_of, snapshot, known)
            token = uuid.uuid4().hex
            revision = await self._guarded(
                lambda: self._database.write(
                    lambda each: self._write(each, snapshot, changes, token, also)
                )
            )
            await self._remember(snapshot, changes, revision, token)
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
        self, transaction: Transaction, snapshot: SessionSnapshot, changes: Changes, token: str,
        also: Work[None] | None,
    ) -> int:  # fmt: skip
        head = await session_rows.head_of(transaction, self.scope)
        if head is not None and head.token == token:
            return head.revision  # The connection was lost after the commit.
        await leases.check(transaction, self._database, self.scope, self.holder)
        if also is not None:
            try:
                await also(transaction)
            except LeaseLost as error:
                raise _AlsoRefused(error) from error
        known = self._known.token if self._known is not None else None
        whole = (head.token if head is not None else None) != known
        if whole:
            # Nobody has read what is stored: all of it is replaced.
            changes = await asyncio.to_thread(changes_of, snapshot, None)
        return await session_rows.write(
            transaction, self._database, self.scope, head, changes, token,
            snapshot.replayable, whole,
        )  # fmt: skip

    async def _remember(
        self, snapshot: SessionSnapshot, changes: Changes, revision: int, token: str
    ) -> None:
        """What is stored now; of the copies for others only what is new is made."""
        before = self._known
        others = self._cache.get(self.scope.key, before.revision, before.token) if before else None
        kept: dict[str, tuple[Message, ...]] = {}
        new: dict[str, tuple[Message, ...]] = {}
        for name, messages in changes.conversations.items():
            old = others.conversations.get(name, ()) if others is not None else ()
            same = 0
            if before is not None and old:
                same = min(shared_length(before.conversations.get(name, ()), messages), len(old))
            kept[name], new[name] = old[:same], messages[same:]
        copied = await own_messages_of_many(new)
        own = {name: kept[name] + copied[name] for name in kept}
        self._known = Cached(
            revision, token, snapshot.replayable, changes.conversations, changes.state
        )
        self._cache.put(self.scope.key, replace(self._known, conversations=own))

    async def _release(self) -> None:
        async with self._one:
            try:
                if self.lost.is_set():
                    # The database may have it renewed all the same, and nobody heard so.
                    give_up(self.holder)
                else:
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
