"""Whoever stops waiting for a lease leaves none behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.stores import SqlPlace, on
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.sql.database import Database, Transaction, Work
from web.harness.sessions.sql.store import SqlSessionStore

pytestmark = pytest.mark.anyio


class Slow:
    """A database whose first transaction that writes begins when `goes_on` is set, as over a slow
    network; others, on other connections, do not wait for it."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self._is_first = True
        self.has_begun = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.written = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, work: Work[Any]) -> Any:
        if not self._is_first:
            return await self._inner.write(work)
        self._is_first = False
        return await self._inner.whole(self._slowly(work))

    async def _slowly(self, work: Work[Any]) -> Any:
        self.has_begun.set()
        await self.goes_on.wait()
        try:
            return await self._inner.write(work)
        finally:
            self.written.set()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._inner.spawn(coroutine)


@on("sqlite", full="postgresql")
async def test_a_lease_whose_caller_is_gone_before_it_is_taken_is_given_back(
    place: SqlPlace,
) -> None:
    slow = Slow(await place.open())
    store, another = SqlSessionStore(slow), await place.sessions()
    async with asyncio.timeout(10):
        acquiring = asyncio.ensure_future(store.acquire(LOCAL_IDENTITY, "s"))
        await slow.has_begun.wait()
        acquiring.cancel()
        await asyncio.wait({acquiring})

        async def nothing(transaction: Transaction) -> None:
            """So that what the store begins then has begun."""

        await slow.write(nothing)
        slow.goes_on.set()
        await slow.written.wait()
        async with await another.acquire(LOCAL_IDENTITY, "s", wait=5):
            pass
