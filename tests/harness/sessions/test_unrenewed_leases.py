"""Whoever cannot renew a lease does not go on as if it had it: others may have it by then."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from tests.support.stores import SqlPlace, on
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.sql.database import Database, Work
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.errors import StoreError

pytestmark = pytest.mark.anyio

SECONDS = 0.4


class CutOff:
    """A database that cannot be reached from here, once it is `cut`: it refuses, or is silent."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.cut: Literal["", "refuses", "is silent"] = ""
        self.asked = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, work: Work[Any]) -> Any:
        if self.cut:
            self.asked.set()
        if self.cut == "is silent":
            await asyncio.Event().wait()
        if self.cut:
            raise StoreError("The database cannot be reached.", code="store_unavailable")
        return await self._inner.write(work)


@on("postgresql")
@pytest.mark.parametrize("how", ["refuses", "is silent"])
async def test_a_lease_that_cannot_be_renewed_is_lost_here_before_another_server_has_it(
    place: SqlPlace, how: Literal["refuses", "is silent"]
) -> None:
    cut_off = CutOff(await place.open())
    here, another = SqlSessionStore(cut_off, lease_seconds=SECONDS), await place.sessions()
    async with asyncio.timeout(10):
        lease = await here.acquire(LOCAL_IDENTITY, "s")
        cut_off.cut = how
        async with await another.acquire(LOCAL_IDENTITY, "s", wait=5):
            assert lease.lost.is_set()
        # Who is back begins anew.
        cut_off.cut = ""
        async with await here.acquire(LOCAL_IDENTITY, "s", wait=1):
            pass


@on("postgresql")
async def test_a_lease_that_was_lost_and_released_is_free_for_its_process(place: SqlPlace) -> None:
    cut_off = CutOff(await place.open())
    here = SqlSessionStore(cut_off, lease_seconds=SECONDS)
    async with asyncio.timeout(10):
        lease = await here.acquire(LOCAL_IDENTITY, "s")
        # As where the database has renewed it, and nobody heard so.
        await place.run("UPDATE harness_leases SET expires_at = expires_at + 1000")
        cut_off.cut = "refuses"
        await lease.lost.wait()
        await lease.release()
        cut_off.cut = ""
        async with await here.acquire(LOCAL_IDENTITY, "s"):
            pass


@on("sqlite")
async def test_a_lease_in_a_file_that_cannot_be_written_is_kept(place: SqlPlace) -> None:
    cut_off = CutOff(await place.open())
    here = SqlSessionStore(cut_off, lease_seconds=SECONDS)
    async with asyncio.timeout(10):
        lease = await here.acquire(LOCAL_IDENTITY, "s")
        cut_off.cut = "refuses"
        await cut_off.asked.wait()
        cut_off.asked.clear()
        await cut_off.asked.wait()
        assert not lease.lost.is_set()
