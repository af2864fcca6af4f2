"""Leases among the tasks of one process, over whatever keeps the snapshots."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace

from web.harness.sessions.identity import HarnessIdentity, check_scope
from web.harness.sessions.snapshot import SessionSnapshot, check_json, check_names, own_snapshot
from web.harness.sessions.store import BaseLease, Guarantees, in_use, session_exists
from web.harness.values.errors import LeaseLost, NotFound

_Key = tuple[HarnessIdentity, str]


class ProcessSessionStore(ABC):
    """A `SessionStore` whose leases hold in this process; a subclass says where snapshots are kept.

    It has `load`, `keep` and `ids`, which get ids that were checked, and are called for one session
    by one task at a time. What it hands out is copied, and what it gets nobody else can change.
    """

    guarantees = Guarantees(durable=False, compare_and_swap=False, single_writer="process")

    def __init__(self) -> None:
        self._leased: set[_Key] = set()
        self._waiters: dict[_Key, list[asyncio.Future[None]]] = {}

    @abstractmethod
    async def load(self, identity: HarnessIdentity, session_id: str) -> SessionSnapshot | None:
        """The snapshot that was kept last, None where there is none."""

    @abstractmethod
    async def keep(
        self, identity: HarnessIdentity, session_id: str, snapshot: SessionSnapshot | None
    ) -> None:
        """Keeps a snapshot, all of it or nothing; None forgets the one that is there."""

    @abstractmethod
    async def ids(self, identity: HarnessIdentity) -> Iterable[str]:
        """The ids of the sessions of an identity, in any order."""

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> ProcessLease:
        check_scope(identity, session_id)
        key = (identity, session_id)
        if key in self._leased and wait > 0:
            await self._wait_for_release(key, wait)
        if key in self._leased:
            raise in_use()
        self._leased.add(key)
        return ProcessLease(self, key)

    async def list(
        self, identity: HarnessIdentity, *, after: str = "", limit: int | None = None
    ) -> list[str]:
        check_scope(identity, "any")
        return sorted(each for each in await self.ids(identity) if each > after)[:limit]

    async def rename(self, identity: HarnessIdentity, session_id: str, new_id: str) -> None:
        check_scope(identity, session_id)
        check_scope(identity, new_id)
        async with (
            await self.acquire(identity, session_id),
            await self.acquire(identity, new_id),
        ):
            snapshot = await self.load(identity, session_id)
            if snapshot is None:
                raise NotFound(f"There is no session {session_id}.")
            if await self.load(identity, new_id) is not None:
                raise session_exists()
            await self.keep(identity, new_id, snapshot)
            await self.keep(identity, session_id, None)

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        async with await self.acquire(identity, session_id):
            await self.keep(identity, session_id, None)

    async def _wait_for_release(self, key: _Key, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while key in self._leased:
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiters.setdefault(key, []).append(waiter)
                    await waiter
        except TimeoutError:
            pass

    def _release(self, key: _Key) -> None:
        self._leased.discard(key)
        for waiter in self._waiters.pop(key, ()):
            if not waiter.done():
                waiter.set_result(None)


class ProcessLease(BaseLease):
    """The `SessionLease` of a `ProcessSessionStore`."""

    def __init__(self, store: ProcessSessionStore, key: _Key) -> None:
        self._store: ProcessSessionStore | None = store
        self._key = key

    async def read(self) -> SessionSnapshot:
        return await own_snapshot(await self._held().load(*self._key) or SessionSnapshot())

    async def commit(self, snapshot: SessionSnapshot) -> SessionSnapshot:
        self._held()
        check_names(snapshot)
        await asyncio.to_thread(check_json, snapshot)
        own = await own_snapshot(snapshot)
        before = await self._held().load(*self._key) or SessionSnapshot()
        kept = replace(own, revision=before.revision + 1)
        await self._held().keep(*self._key, kept)
        return await own_snapshot(kept)

    async def release(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store._release(self._key)

    def _held(self) -> ProcessSessionStore:
        if self._store is None:
            raise LeaseLost("The lease of this session was released.")
        return self._store
