"""`SqlSessionStore`: sessions in SQLite or PostgreSQL, with leases that end with time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Sequence

from web.harness.sessions.identity import HarnessIdentity, check_scope
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql import event_rows, execution_rows, leases, session_rows
from web.harness.sessions.sql.cache import SnapshotCache
from web.harness.sessions.sql.database import Database, Transaction
from web.harness.sessions.sql.holders import (
    give_up,
    has_given_up,
    is_gone,
    new_holder,
    presence_of,
)
from web.harness.sessions.sql.lease import SqlLease
from web.harness.sessions.sql.leases import Scope, Taken
from web.harness.sessions.sql.loading import load, own_snapshot_of
from web.harness.sessions.sql.turnstile import Leave, Turnstile
from web.harness.sessions.store import Guarantees, in_use, session_exists
from web.harness.values.errors import NotFound, SessionConflict, StoreError

LEASE_SECONDS = 20.0
"""How long a lease lasts without being renewed: the longest that a dead server keeps a chat."""

RENEWALS = 4
"""In the time of a lease, so that a slow moment loses none."""

LOOK_SECONDS = 1.0
"""Between two looks for a lease of another process that tells nobody of its end."""

logger = logging.getLogger(__name__)


class SqlSessionStore:
    """The `SessionStore` in a database, which stays its owner's.

    A commit writes the messages that are new. `lease_seconds` is how long a lease lasts when
    nobody renews it; this store renews those it gave for as long as its event loop runs.
    """

    def __init__(self, database: Database, *, lease_seconds: float = LEASE_SECONDS) -> None:
        embedded = database.name == "sqlite"
        self.guarantees = Guarantees(
            durable=True, compare_and_swap=True, single_writer="host" if embedded else "cluster"
        )
        self._database = database
        self._seconds = lease_seconds
        self._collation = "BINARY" if embedded else '"C"'
        self._turns = Turnstile()
        self._held: dict[str, tuple[SqlLease, Leave]] = {}
        self._asking: dict[str, asyncio.Future[Taken]] = {}
        """By holder, of those that are acquired just now, or whose caller is gone."""
        self._renewing = False
        self._cache = SnapshotCache()

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> SqlLease:
        check_scope(identity, session_id)
        scope = Scope(identity, session_id)
        until = time.monotonic() + wait
        leave = await self._turns.enter(scope.key, wait)
        if leave is None:
            raise in_use()
        holder = new_holder(self._database.presence)
        lease = SqlLease(self._database, self._cache, scope, holder, self._left)
        try:
            lease.fence = await self._take(lease, until)
        except SessionConflict:
            leave()
            raise
        except BaseException:
            leave()
            # It may have been taken all the same: cancelled, or cut off from the database.
            self._database.spawn(self._abandon(lease))
            raise
        self._held[lease.holder] = lease, leave
        if not self._renewing:
            self._renewing = True
            self._database.spawn(self._renew())
        return lease

    async def peek(self, identity: HarnessIdentity, session_id: str) -> SessionSnapshot:
        """The last committed snapshot, read without a lease and so without writing anything:
        somebody may be about to commit the next one."""
        check_scope(identity, session_id)
        found = await load(self._database, self._cache, Scope(identity, session_id))
        return (await own_snapshot_of(found))[0] if found is not None else SessionSnapshot()

    async def is_held(self, identity: HarnessIdentity, session_id: str) -> bool:
        """Whether somebody has the lease, told without writing anything. Raises StoreError."""
        check_scope(identity, session_id)
        scope = Scope(identity, session_id)

        async def work(transaction: Transaction) -> bool:
            holder = await leases.holder_of(transaction, self._database, scope)
            return bool(holder) and not await self._is_free(transaction, holder)

        return await self._database.read(work)

    async def list(
        self, identity: HarnessIdentity, *, after: str = "", limit: int | None = None
    ) -> list[str]:
        check_scope(identity, "any")
        values = {"tenant": identity.tenant_id, "user": identity.user_id, "after": after}
        return await self._database.read(
            lambda each: session_rows.ids_of(each, values, self._collation, limit)
        )

    async def rename(self, identity: HarnessIdentity, session_id: str, new_id: str) -> None:
        check_scope(identity, session_id)
        check_scope(identity, new_id)
        old, new, holder = Scope(identity, session_id), Scope(identity, new_id), new_holder()
        first = await self._database.read(lambda each: session_rows.head_of(each, old))
        if first is None:
            raise NotFound(f"There is no session {session_id}.")

        async def work(transaction: Transaction) -> None:
            for scope in sorted((old, new), key=lambda each: each.key):
                await self._take_for(transaction, scope, holder)
            known = await session_rows.head_of(transaction, old)
            taken = await session_rows.head_of(transaction, new)
            if taken is not None and (taken.key != first.key or old == new):
                raise session_exists()
            if taken is None:
                if known is None:
                    raise NotFound(f"There is no session {session_id}.")
                await session_rows.rename(transaction, known.key, new_id)
                await self._rename_runs(transaction, old, new)
            for scope in (old, new):
                await leases.forget(transaction, scope)

        await self._database.write(work)
        self._cache.drop(old.key)

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        check_scope(identity, session_id)
        scope, holder = Scope(identity, session_id), new_holder()

        async def work(transaction: Transaction) -> None:
            await self._take_for(transaction, scope, holder)
            await session_rows.remove(transaction, scope)
            await _forget_runs(transaction, await execution_rows.runs_of(transaction, scope))
            await leases.forget(transaction, scope)

        await self._database.write(work)
        self._cache.drop(scope.key)

    async def _rename_runs(self, transaction: Transaction, old: Scope, new: Scope) -> None:
        """Runs go with their session; a session that was never committed may have some too."""
        there = await execution_rows.runs_of(transaction, new)
        if any(status != "ended" for _, status in there):
            raise session_exists()
        await _forget_runs(transaction, there)
        await execution_rows.rename(transaction, old, new.session_id)

    async def _take_for(self, transaction: Transaction, scope: Scope, holder: str) -> None:
        """Takes a lease within a transaction that also ends it. Raises SessionConflict."""
        if not (await self._taken(transaction, scope, holder)).ours:
            raise in_use()

    async def _taken(self, transaction: Transaction, scope: Scope, holder: str) -> Taken:
        taken = await leases.take(transaction, self._database, scope, holder, self._seconds)
        if not taken.ours and await self._is_free(transaction, taken.holder):
            # Nobody has to wait for the time.
            await leases.end(transaction, taken.holder)
            taken = await leases.take(transaction, self._database, scope, holder, self._seconds)
        return taken

    async def _is_free(self, transaction: Transaction, holder: str) -> bool:
        """Whether a holder is known to have let go, or its process to be gone: on this machine, or
        as the database sees it. One that only stands still is not."""
        if has_given_up(holder) or is_gone(holder):
            return True
        presence = presence_of(holder)
        return bool(presence) and await self._database.is_gone(transaction, presence)

    async def _take(self, lease: SqlLease, until: float) -> int:
        """Waits for the lease and returns its fence. Raises SessionConflict."""
        changed = asyncio.Event()

        def heard(key: str | None) -> None:
            if key is None or key == lease.scope.key:
                changed.set()

        stop = self._database.signals.listen(leases.TOPIC, heard)
        try:
            while True:
                changed.clear()
                lease.until = self._from_now()
                taken = await self._turn(lease)
                if taken.ours:
                    return taken.fence
                left = until - time.monotonic()
                if left <= 0:
                    raise in_use()
                pause = min(left, max(taken.seconds, 0.0) + 0.01, LOOK_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await changed.wait()
        finally:
            stop()

    async def _turn(self, lease: SqlLease) -> Taken:
        """Asks for the lease once. It goes on where the caller is cancelled; see `_abandon`."""
        asking = self._asking[lease.holder] = asyncio.ensure_future(
            self._database.write(lambda each: self._taken(each, lease.scope, lease.holder))
        )
        taken = await asyncio.shield(asking)
        del self._asking[lease.holder]
        return taken

    async def _abandon(self, lease: SqlLease) -> None:
        asking = self._asking.pop(lease.holder, None)
        if asking is not None:
            # Before it has ended there is nothing to give back, and after it nobody would.
            await asyncio.wait({asking})
            if not asking.cancelled():
                asking.exception()
        try:
            await self._database.write(
                lambda each: leases.give_back(each, lease.scope, lease.holder)
            )
        except StoreError:
            give_up(lease.holder)

    def _left(self, lease: SqlLease) -> None:
        held = self._held.pop(lease.holder, None)
        if held is not None:
            held[1]()

    async def _renew(self) -> None:
        """Renews all leases of this store together, as long as there are any."""
        try:
            while self._held:
                await asyncio.sleep(min(self._seconds / RENEWALS, self._left_of_first()))
                await self._renew_once(list(self._held))
        finally:
            self._renewing = False

    async def _renew_once(self, holders: Sequence[str]) -> None:
        if not holders:
            return
        until = self._from_now()
        try:
            async with asyncio.timeout(self._left_of_first()):
                still = await self._database.write(
                    lambda each: leases.renew(each, self._database, holders, self._seconds)
                )
        except (StoreError, TimeoutError) as error:
            logger.warning("Leases could not be renewed yet: %s", str(error) or "no answer")
            for lease, _ in list(self._held.values()):
                if lease.until <= time.monotonic():
                    lease.lose()
            return
        for holder in holders:
            if (held := self._held.get(holder)) is None:
                continue
            if holder in still:
                held[0].until = until
            else:
                held[0].lose()

    def _from_now(self) -> float:
        """Until when what the database is asked for now is surely not another's."""
        # A file that cannot be written here cannot be written by others to take it.
        embedded = self.guarantees.single_writer == "host"
        return math.inf if embedded else time.monotonic() + self._seconds

    def _left_of_first(self) -> float:
        first = min((lease.until for lease, _ in self._held.values()), default=math.inf)
        return max(first - time.monotonic(), 0.0)


async def _forget_runs(transaction: Transaction, runs: Sequence[tuple[str, str]]) -> None:
    """With their events: without the runs nobody could find them any more."""
    for run_id, _ in runs:
        await event_rows.forget(transaction, run_id)
