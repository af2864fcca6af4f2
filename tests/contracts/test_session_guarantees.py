"""Every guarantee that a session store claims is checked; one that it denies is only denied."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.steps import saying
from tests.support.stores import MemoryPlace, SqlPlace
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.lease import SqlLease
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import LeaseLost, NotFound, SessionConflict

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")


@pytest.fixture
async def store(session_place: MemoryPlace | SqlPlace) -> SessionStore:
    return await session_place.sessions()


async def test_what_the_store_claims_to_be_durable_is_there_when_it_is_opened_again(
    session_place: MemoryPlace | SqlPlace, store: SessionStore
) -> None:
    assert store.guarantees.durable == isinstance(session_place, SqlPlace)
    if not isinstance(session_place, SqlPlace):
        return
    snapshot = SessionSnapshot(saying("a"), {"sub": saying("x")}, {"n": [1]}, replayable=False)
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(snapshot)
    await session_place.databases[0].aclose()
    async with await (await session_place.sessions()).acquire(ANN, "s") as lease:
        assert await lease.read() == replace(snapshot, revision=1)


async def test_a_store_that_claims_compare_and_swap_refuses_one_whose_lease_ran_out(
    session_place: MemoryPlace | SqlPlace, store: SessionStore
) -> None:
    assert store.guarantees.compare_and_swap == isinstance(session_place, SqlPlace)
    if not isinstance(session_place, SqlPlace):
        return
    old = await store.acquire(ANN, "s")
    await old.commit(SessionSnapshot(saying("a")))
    await session_place.let_leases_run_out()
    with pytest.raises(LeaseLost):
        await old.commit(SessionSnapshot(saying("a", "late")))
    async with await (await session_place.sessions()).acquire(ANN, "s") as new:
        await new.commit(SessionSnapshot(saying("a", "new")))
        with pytest.raises(LeaseLost):
            await old.commit(SessionSnapshot(saying("a", "late")))
        with pytest.raises(LeaseLost):
            await old.read()
        await old.release()
        assert (await new.read()).history == saying("a", "new")
        with pytest.raises(SessionConflict):
            await store.acquire(ANN, "s")


async def test_a_lease_excludes_whom_the_store_claims_to_exclude(
    session_place: MemoryPlace | SqlPlace, store: SessionStore
) -> None:
    claimed = {"sqlite": "host", "postgresql": "cluster"}
    if not isinstance(session_place, SqlPlace):
        assert store.guarantees.single_writer == "process"
        return
    assert store.guarantees.single_writer == claimed[session_place.databases[0].name]
    other = await session_place.sessions()
    first = await store.acquire(ANN, "s")
    for refused in (other.acquire(ANN, "s"), other.delete(ANN, "s"), other.rename(ANN, "s", "t")):
        with pytest.raises((SessionConflict, NotFound)):
            await refused
    waiting = asyncio.ensure_future(other.acquire(ANN, "s", wait=10))
    await asyncio.sleep(0)
    await first.release()
    second = await asyncio.wait_for(waiting, 10)
    assert isinstance(first, SqlLease)
    assert isinstance(second, SqlLease)
    assert second.fence > first.fence
    with pytest.raises(SessionConflict):
        await store.acquire(ANN, "s")
    await second.release()


async def test_what_another_server_committed_is_read_and_not_what_was_known_before(
    session_place: MemoryPlace | SqlPlace, store: SessionStore
) -> None:
    other = await session_place.sessions()
    for at, each in enumerate((store, other, store, other), 1):
        async with await each.acquire(ANN, "s") as lease:
            before = await lease.read()
            assert before.revision == at - 1
            await lease.commit(replace(before, history=saying(*map(str, range(at)))))
            assert len((await lease.read()).history) == at
