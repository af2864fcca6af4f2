"""Sessions kept in the memory of this process."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from types import TracebackType

from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import Guarantees
from web.harness.values.errors import LeaseLost, SessionConflict

_Key = tuple[HarnessIdentity, str]


class InMemorySessionStore:
    """The default `SessionStore`: quick, and gone with the process."""

    guarantees = Guarantees(durable=False, compare_and_swap=False, single_writer="process")

    def __init__(self) -> None:
        self._snapshots: dict[_Key, SessionSnapshot] = {}
        self._leased: set[_Key] = set()
        self._released = asyncio.Condition()

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> InMemoryLease:
        key = (identity, session_id)
        if key in self._leased and wait > 0:
            await self._wait_for_release(key, wait)
        if key in self._leased:
            raise SessionConflict("This session is in use.")
        self._leased.add(key)
        return InMemoryLease(self, key)

    async def list(self, identity: HarnessIdentity) -> list[str]:
        return [session_id for owner, session_id in self._snapshots if owner == identity]

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        key = (identity, session_id)
        if key in self._leased:
            raise SessionConflict("This session is in use.")
        self._snapshots.pop(key, None)

    async def _wait_for_release(self, key: _Key, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds), self._released:
                await self._released.wait_for(lambda: key not in self._leased)
        except TimeoutError:
            pass

    def _read(self, key: _Key) -> SessionSnapshot:
        return self._snapshots.get(key) or SessionSnapshot()

    def _write(self, key: _Key, snapshot: SessionSnapshot) -> SessionSnapshot:
        kept = replace(_own_copy(snapshot), revision=self._read(key).revision + 1)
        self._snapshots[key] = kept
        return kept

    async def _release(self, key: _Key) -> None:
        self._leased.discard(key)
        async with self._released:
            self._released.notify_all()


class InMemoryLease:
    """The `SessionLease` of `InMemorySessionStore`."""

    def __init__(self, store: InMemorySessionStore, key: _Key) -> None:
        self._store: InMemorySessionStore | None = store
        self._key = key

    async def read(self) -> SessionSnapshot:
        return _own_copy(self._held()._read(self._key))

    async def commit(self, snapshot: SessionSnapshot) -> SessionSnapshot:
        return _own_copy(self._held()._write(self._key, snapshot))

    async def release(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            await store._release(self._key)

    async def __aenter__(self) -> InMemoryLease:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.release()

    def _held(self) -> InMemorySessionStore:
        if self._store is None:
            raise LeaseLost("The lease of this session was released.")
        return self._store


def _own_copy(snapshot: SessionSnapshot) -> SessionSnapshot:
    """A snapshot that shares nothing changeable.

    Messages are frozen; the JSON inside their tool calls is never changed in place by rule, so
    they are shared, and a commit costs what is new.
    """
    return replace(
        snapshot,
        history=tuple(snapshot.history),
        conversations={name: tuple(messages) for name, messages in snapshot.conversations.items()},
        state=copy.deepcopy(snapshot.state),
    )
