"""What is live already is kept for a session like what was made in one of its leases."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.live_things import Opener
from web.harness.resources import ResourcePool
from web.harness.sessions.identity import HarnessIdentity
from web.harness.tools.resource import Resource
from web.harness.values.errors import ConfigurationError, SessionConflict

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")


async def test_it_is_lent_to_leases_and_disposed_of_in_its_turn() -> None:
    pool, disposed = ResourcePool(dispose_seconds=5), list[str]()
    thing = await Opener("held", disposed=disposed)()
    pool.hold(ANN, "s", "held", thing)
    assert len(pool) == 1, "also without a lease"
    async with pool.lease(ANN, "s") as lease:
        lent = await lease.resource("held", "session", Opener("another"))
        assert lent.value is thing.value
        await lease.resource("later", "session", Opener("later", disposed=disposed))
        with pytest.raises(SessionConflict):
            await pool.close_session(ANN, "s")
    assert pool.ids(ANN, "s") == ("held", "later")
    assert await pool.close_session(ANN, "s") == []
    assert disposed == ["later", "held"]
    assert len(pool) == 0


async def test_an_id_is_taken_once_and_what_is_refused_stays_with_whoever_brought_it() -> None:
    pool, first, second = ResourcePool(), Opener(), Opener()
    pool.hold(ANN, "s", "x", await first())
    with pytest.raises(ConfigurationError, match="already"):
        pool.hold(ANN, "s", "x", await second())
    await pool.aclose()
    assert [thing.disposals for each in (first, second) for thing in each.opened] == [1, 0]
    with pytest.raises(RuntimeError):
        pool.hold(ANN, "s", "x", await second())


async def test_nothing_is_held_for_a_session_that_is_being_closed() -> None:
    pool, gate = ResourcePool(dispose_seconds=5), asyncio.Event()

    async def dispose() -> None:
        await gate.wait()

    pool.hold(ANN, "s", "slow", Resource("slow", dispose=dispose))
    closing = asyncio.ensure_future(pool.close_session(ANN, "s"))
    await asyncio.sleep(0)
    with pytest.raises(SessionConflict):
        pool.hold(ANN, "s", "new", Resource("new"))
    gate.set()
    assert await closing == []
    pool.hold(ANN, "s", "new", Resource("new"))
    assert pool.ids(ANN, "s") == ("new",)
