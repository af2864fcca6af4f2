"""Resources: made once, lent to whoever may use them, disposed of once by their owner."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.support.live_things import LiveThing, Opener, asking, turns
from web.harness.resources import ResourcePool
from web.harness.sessions.identity import HarnessIdentity
from web.harness.tools.resource import Resource
from web.harness.values.errors import ConfigurationError, LeaseLost, SessionConflict

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")
BOB = HarnessIdentity("here", "bob")
ELSEWHERE = HarnessIdentity("there", "ann")


@pytest.fixture
def pool() -> ResourcePool:
    return ResourcePool(dispose_seconds=5)


class TestInARun:
    async def test_it_is_disposed_of_with_the_lease_the_last_made_first(
        self, pool: ResourcePool
    ) -> None:
        disposed: list[str] = []
        async with pool.lease(ANN, "s") as lease:
            for name in ("a", "b", "c"):
                await lease.resource(name, "run", Opener(name, disposed=disposed))
            assert disposed == []
        assert disposed == ["c", "b", "a"]

    async def test_the_same_id_is_the_same_thing_in_one_run_and_another_in_the_next(
        self, pool: ResourcePool
    ) -> None:
        opener = Opener()
        async with pool.lease(ANN, "s") as lease:
            first = await lease.resource("x", "run", opener)
            assert (await lease.resource("x", "run", opener)).value is first.value
        async with pool.lease(ANN, "s") as lease:
            second = await lease.resource("x", "run", opener)
            assert second.value is not first.value
        assert [thing.disposals for thing in opener.opened] == [1, 1]

    async def test_releasing_tells_whose_disposal_failed_and_disposes_of_the_others(
        self, pool: ResourcePool, caplog: pytest.LogCaptureFixture
    ) -> None:
        disposed: list[str] = []
        lease = pool.lease(ANN, "s")
        await lease.resource("a", "run", Opener("a", disposed=disposed))
        bad = Opener("b", disposed=disposed, refusal=OSError("it does not let go"))
        await lease.resource("b", "run", bad)
        with caplog.at_level(logging.ERROR):
            assert await lease.release() == ["b"]
        assert disposed == ["b", "a"]
        assert "it does not let go" in caplog.text
        assert await lease.release() == []
        assert disposed == ["b", "a"]

    async def test_one_that_arrives_after_the_release_is_disposed_of(
        self, pool: ResourcePool
    ) -> None:
        lease, opener = pool.lease(ANN, "s"), Opener(gate=asyncio.Event())
        late = await asking(lease, opener, "run")
        await lease.release()
        assert opener.gate is not None
        opener.gate.set()
        with pytest.raises(LeaseLost):
            await late
        assert [thing.disposals for thing in opener.opened] == [1]

    async def test_one_that_arrives_during_the_release_is_disposed_of_once(
        self, pool: ResourcePool
    ) -> None:
        lease, opener, go = pool.lease(ANN, "s"), Opener(gate=asyncio.Event()), asyncio.Event()

        async def slow() -> Resource[str]:
            return Resource("slow", dispose=go.wait)

        await lease.resource("slow", "run", slow)
        late = await asking(lease, opener, "run")
        releasing = asyncio.ensure_future(lease.release())
        await turns()
        assert opener.gate is not None
        opener.gate.set()
        await turns()
        go.set()
        await releasing
        with pytest.raises(LeaseLost):
            await late
        assert [thing.disposals for thing in opener.opened] == [1]

    async def test_a_release_that_is_cancelled_disposes_of_everything(
        self, pool: ResourcePool
    ) -> None:
        lease, opener, go = pool.lease(ANN, "s"), Opener(), asyncio.Event()

        async def slow() -> Resource[str]:
            return Resource("slow", dispose=go.wait)

        await lease.resource("x", "run", opener)
        await lease.resource("slow", "run", slow)
        releasing = asyncio.ensure_future(lease.release())
        await turns()
        releasing.cancel()
        await turns()
        go.set()
        await asyncio.wait({releasing})
        assert releasing.cancelled()
        assert [thing.disposals for thing in opener.opened] == [1]
        assert await pool.close_session(ANN, "s") == []


class TestInASession:
    async def test_it_is_kept_between_runs_until_the_session_is_closed(
        self, pool: ResourcePool
    ) -> None:
        opener = Opener()
        for _ in range(3):
            async with pool.lease(ANN, "s") as lease:
                resource = await lease.resource("x", "session", opener)
                assert (resource.ownership, resource.dispose) == ("runtime", None)
        assert pool.ids(ANN, "s") == ("x",)
        assert [thing.disposals for thing in opener.opened] == [0]
        assert await pool.close_session(ANN, "s") == []
        assert [thing.disposals for thing in opener.opened] == [1]
        assert pool.ids(ANN, "s") == ()

    async def test_those_who_ask_at_the_same_time_get_one_thing(self, pool: ResourcePool) -> None:
        gate = asyncio.Event()
        openers = [Opener(gate=gate) for _ in range(5)]
        leases = [pool.lease(ANN, "s") for _ in openers]
        tasks = [await asking(lease, opener) for lease, opener in zip(leases, openers, strict=True)]
        gate.set()
        things = {(await task).value for task in tasks}
        assert len(things) == 1
        assert [opener.calls for opener in openers] == [1, 0, 0, 0, 0]

    async def test_a_failure_is_told_to_all_who_wait_and_the_next_one_tries_anew(
        self, pool: ResourcePool
    ) -> None:
        lease = pool.lease(ANN, "s")
        opener = Opener(gate=asyncio.Event(), error=OSError("refused"))
        tasks = [await asking(lease, opener) for _ in range(3)]
        assert opener.gate is not None
        opener.gate.set()
        for task in tasks:
            with pytest.raises(OSError, match="refused"):
                await task
        assert opener.calls == 1
        opener.error = None
        assert (await lease.resource("x", "session", opener)).value.is_open

    async def test_when_the_one_who_initialises_is_cancelled_the_next_one_takes_over(
        self, pool: ResourcePool
    ) -> None:
        first, second = pool.lease(ANN, "s"), pool.lease(ANN, "s")
        opener = Opener(gate=asyncio.Event())
        cancelled, waiting = await asking(first, opener), await asking(second, opener)
        cancelled.cancel()
        await turns()
        assert opener.gate is not None
        opener.gate.set()
        assert (await waiting).value.is_open
        assert cancelled.cancelled()
        assert (opener.calls, len(opener.opened)) == (2, 1)

    async def test_one_who_waits_and_is_cancelled_disturbs_nobody(self, pool: ResourcePool) -> None:
        lease, opener = pool.lease(ANN, "s"), Opener(gate=asyncio.Event())
        first, second = await asking(lease, opener), await asking(lease, opener)
        second.cancel()
        await turns()
        assert opener.gate is not None
        opener.gate.set()
        assert (await first).value.is_open
        assert opener.calls == 1

    async def test_one_that_arrives_after_the_release_is_kept_for_the_next(
        self, pool: ResourcePool
    ) -> None:
        lease, opener = pool.lease(ANN, "s"), Opener(gate=asyncio.Event())
        late = await asking(lease, opener)
        await lease.release()
        with pytest.raises(SessionConflict):
            await pool.close_session(ANN, "s")
        assert opener.gate is not None
        opener.gate.set()
        with pytest.raises(LeaseLost):
            await late
        assert pool.ids(ANN, "s") == ("x",)
        assert await pool.close_session(ANN, "s") == []
        assert [thing.disposals for thing in opener.opened] == [1]

    async def test_what_is_made_on_top_of_another_is_disposed_of_before_it(
        self, pool: ResourcePool
    ) -> None:
        disposed: list[str] = []
        lease = pool.lease(ANN, "s")

        async def outer() -> Resource[LiveThing]:
            await lease.resource("inner", "session", Opener("inner", disposed=disposed))
            return await Opener("outer", disposed=disposed)()

        await lease.resource("outer", "session", outer)
        await lease.release()
        await pool.close_session(ANN, "s")
        assert disposed == ["outer", "inner"]

    async def test_an_initialiser_that_asks_for_itself_is_told_so(self, pool: ResourcePool) -> None:
        lease = pool.lease(ANN, "s")

        async def itself() -> Resource[LiveThing]:
            return await lease.resource("x", "session", itself)

        with pytest.raises(ConfigurationError, match="asks for itself"):
            await asyncio.wait_for(lease.resource("x", "session", itself), 5)

    async def test_identities_and_sessions_never_share(self, pool: ResourcePool) -> None:
        things = set()
        for identity, session_id in ((ANN, "s"), (BOB, "s"), (ELSEWHERE, "s"), (ANN, "t")):
            async with pool.lease(identity, session_id) as lease:
                things.add((await lease.resource("x", "session", Opener())).value)
        assert len(things) == 4
        await pool.close_session(ANN, "s")
        assert [thing.is_open for thing in things].count(False) == 1


class TestOfTheHost:
    async def test_it_is_never_disposed_of(self, pool: ResourcePool) -> None:
        opener = Opener(ownership="host")
        async with pool.lease(ANN, "s") as lease:
            for scope in ("run", "session", "host"):
                lent = await lease.resource("x", scope, opener)
                assert lent.ownership == "host"
        await pool.close_session(ANN, "s")
        await pool.aclose()
        assert [thing.disposals for thing in opener.opened] == [0, 0, 0]

    async def test_one_that_is_not_the_hosts_is_refused_and_disposed_of(
        self, pool: ResourcePool
    ) -> None:
        opener = Opener()
        async with pool.lease(ANN, "s") as lease:
            with pytest.raises(ConfigurationError, match="not the host's"):
                await lease.resource("x", "host", opener)
        assert [thing.disposals for thing in opener.opened] == [1]

    async def test_the_host_is_asked_each_time(self, pool: ResourcePool) -> None:
        opener = Opener(ownership="host")
        async with pool.lease(ANN, "s") as lease:
            first = await lease.resource("x", "host", opener)
            second = await lease.resource("x", "host", opener)
        assert first.value is not second.value


class TestThePool:
    async def test_a_scope_that_is_none_is_refused(self, pool: ResourcePool) -> None:
        async with pool.lease(ANN, "s") as lease:
            with pytest.raises(ConfigurationError, match="no scope"):
                await lease.resource("x", "forever", Opener())  # type: ignore[arg-type]

    async def test_an_initialiser_that_gives_no_resource_is_told_what_to_give(
        self, pool: ResourcePool
    ) -> None:
        async def bare() -> Any:
            return "a bare value"

        async with pool.lease(ANN, "s") as lease:
            with pytest.raises(ConfigurationError, match="gave a str"):
                await lease.resource("x", "session", bare)
        assert pool.ids(ANN, "s") == ()
