"""Closing what a session holds open: in reverse, once, and never while it is in use."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.live_things import LiveThing, Opener, asking, turns
from web.harness.resources import ResourcePool
from web.harness.sessions.identity import HarnessIdentity
from web.harness.tools.resource import Resource
from web.harness.values.errors import LeaseLost, SessionConflict

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")
BOB = HarnessIdentity("here", "bob")


@pytest.fixture
def pool() -> ResourcePool:
    return ResourcePool(dispose_seconds=5)


class TestClosing:
    async def test_it_goes_in_reverse_and_tells_whose_disposal_failed(
        self, pool: ResourcePool
    ) -> None:
        disposed: list[str] = []
        async with pool.lease(ANN, "s") as lease:
            for name in ("a", "b", "c", "d"):
                refusal = OSError("no") if name in "bd" else None
                await lease.resource(
                    name, "session", Opener(name, disposed=disposed, refusal=refusal)
                )
        assert await pool.close_session(ANN, "s") == ["d", "b"]
        assert disposed == ["d", "c", "b", "a"]
        assert await pool.close_session(ANN, "s") == []
        assert disposed == ["d", "c", "b", "a"]

    async def test_while_a_lease_is_held_it_is_refused_and_nothing_is_closed(
        self, pool: ResourcePool
    ) -> None:
        opener, lease = Opener(), pool.lease(ANN, "s")
        await lease.resource("x", "session", opener)
        with pytest.raises(SessionConflict) as caught:
            await pool.close_session(ANN, "s")
        assert caught.value.code == "session_conflict"
        assert opener.opened[0].is_open
        await lease.release()
        assert await pool.close_session(ANN, "s") == []

    async def test_a_session_that_holds_nothing_is_closed_already(self, pool: ResourcePool) -> None:
        assert await pool.close_session(ANN, "unknown") == []

    async def test_a_disposal_that_takes_too_long_is_stopped_and_counts_as_failed(self) -> None:
        pool, stopped = ResourcePool(dispose_seconds=0.01), asyncio.Event()

        async def never() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        async def opens() -> Resource[str]:
            return Resource("stuck", dispose=never)

        async with pool.lease(ANN, "s") as lease:
            await lease.resource("x", "session", opens)
        assert await asyncio.wait_for(pool.close_session(ANN, "s"), 5) == ["x"]
        assert stopped.is_set()

    async def test_cancelled_it_is_finished_and_a_second_caller_gets_its_answer(
        self, pool: ResourcePool
    ) -> None:
        go = asyncio.Event()

        async def refuses() -> None:
            await go.wait()
            raise OSError("no")

        async def opens() -> Resource[str]:
            return Resource("slow", dispose=refuses)

        async with pool.lease(ANN, "s") as lease:
            await lease.resource("slow", "session", opens)
        first = asyncio.ensure_future(pool.close_session(ANN, "s"))
        await turns()
        second = asyncio.ensure_future(pool.close_session(ANN, "s"))
        await turns()
        first.cancel()
        await turns()
        assert not first.done()
        go.set()
        assert await asyncio.wait_for(second, 5) == ["slow"]
        await asyncio.wait({first})
        assert first.cancelled()

    async def test_two_at_the_same_moment_are_one_and_nothing_is_lent_between(
        self, pool: ResourcePool
    ) -> None:
        old, new = Opener("old", refusal=OSError("no")), Opener("new")
        async with pool.lease(ANN, "s") as lease:
            await lease.resource("x", "session", old)

        async def lent() -> Resource[LiveThing]:
            return await pool.lease(ANN, "s").resource("x", "session", new)

        async with asyncio.TaskGroup() as group:
            closing = [group.create_task(pool.close_session(ANN, "s")) for _ in range(2)]
            late = group.create_task(lent())
        assert [each.result() for each in closing] == [["x"], ["x"]]
        assert late.result().value.is_open
        assert [thing.disposals for thing in old.opened] == [1]

    async def test_whoever_asks_meanwhile_gets_a_new_thing_when_the_old_one_is_gone(
        self, pool: ResourcePool
    ) -> None:
        go, disposed = asyncio.Event(), []

        async def ends() -> None:
            await go.wait()
            disposed.append("old")

        async def opens() -> Resource[str]:
            return Resource("old", dispose=ends)

        async with pool.lease(ANN, "s") as lease:
            await lease.resource("x", "session", opens)
        closing = asyncio.ensure_future(pool.close_session(ANN, "s"))
        await turns()
        opener, lease = Opener("new", disposed=disposed), pool.lease(ANN, "s")
        task = await asking(lease, opener)
        assert opener.calls == 0
        go.set()
        assert (await task).value.name == "new"
        assert await closing == []
        assert disposed == ["old"]
        assert pool.ids(ANN, "s") == ("x",)

    async def test_a_late_end_of_an_older_lease_does_not_forget_a_newer_session(
        self, pool: ResourcePool
    ) -> None:
        old = pool.lease(ANN, "s")
        await old.release()
        async with pool.lease(ANN, "s") as lease:
            await lease.resource("x", "session", Opener())
            with pytest.raises(LeaseLost):
                await old.resource("y", "session", Opener())
            await old.release()
            with pytest.raises(SessionConflict):
                await pool.close_session(ANN, "s")
        assert pool.ids(ANN, "s") == ("x",)


class TestThePool:
    async def test_closing_it_waits_for_leases_and_closes_every_session(
        self, pool: ResourcePool
    ) -> None:
        openers = [Opener(refusal=OSError("no") if name == "b" else None) for name in "abc"]
        for opener, name in zip(openers, "abc", strict=True):
            async with pool.lease(ANN, name) as lease:
                await lease.resource(name, "session", opener)
        held = pool.lease(BOB, "held")
        await held.resource("x", "session", openers[0])
        closing = asyncio.ensure_future(pool.aclose())
        await turns()
        assert not closing.done()
        with pytest.raises(RuntimeError, match="closed"):
            pool.lease(ANN, "a")
        await held.release()
        assert await asyncio.wait_for(closing, 5) == ["b"]
        assert all(thing.disposals == 1 for opener in openers for thing in opener.opened)
