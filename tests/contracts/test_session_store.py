"""What every session store promises: one body over all of them."""

from __future__ import annotations

import asyncio

import pytest

from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import LeaseLost, SessionConflict
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")
BOB = HarnessIdentity("here", "bob")


@pytest.fixture(params=["memory"])
async def store(request: pytest.FixtureRequest) -> SessionStore:
    return {"memory": InMemorySessionStore}[request.param]()


def saying(*texts: str) -> tuple[Message, ...]:
    return tuple(
        Message(f"m{number}", "user", (TextBlock(text),)) for number, text in enumerate(texts)
    )


async def test_a_new_session_is_empty(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as lease:
        assert await lease.read() == SessionSnapshot()


async def test_a_commit_is_read_by_the_next_holder_with_its_revision(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as lease:
        first = await lease.commit(SessionSnapshot(saying("a"), state={"n": 1}))
        second = await lease.commit(SessionSnapshot(saying("a", "b"), replayable=False))
    assert (first.revision, second.revision) == (1, 2)
    async with await store.acquire(ANN, "s") as lease:
        assert await lease.read() == SessionSnapshot(saying("a", "b"), revision=2, replayable=False)


async def test_what_was_read_or_given_can_be_changed_without_touching_the_store(
    store: SessionStore,
) -> None:
    given = SessionSnapshot(saying("a"), {"sub": saying("x")}, {"list": [1]})
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(given)
        given.state["list"].append(2)
        read = await lease.read()
        read.state["list"].append(3)
        read.conversations["other"] = ()
        again = await lease.read()
    assert again.state == {"list": [1]}
    assert set(again.conversations) == {"sub"}


async def test_a_second_acquisition_is_refused_at_once(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s"):
        with pytest.raises(SessionConflict) as caught:
            await store.acquire(ANN, "s")
    assert caught.value.code == "session_conflict"


async def test_an_acquisition_may_wait_for_the_holder(store: SessionStore) -> None:
    lease = await store.acquire(ANN, "s")
    waiting = asyncio.ensure_future(store.acquire(ANN, "s", wait=5))
    await asyncio.sleep(0)
    await lease.release()
    second = await asyncio.wait_for(waiting, 5)
    await second.release()


async def test_waiting_for_a_holder_that_stays_ends_in_a_conflict(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s"):
        with pytest.raises(SessionConflict):
            await store.acquire(ANN, "s", wait=0.01)


async def test_one_of_many_waiters_gets_the_lease_at_a_time(store: SessionStore) -> None:
    holders, most = 0, 0

    async def hold() -> None:
        nonlocal holders, most
        async with await store.acquire(ANN, "s", wait=5):
            holders += 1
            most = max(most, holders)
            await asyncio.sleep(0)
            holders -= 1

    await asyncio.gather(*(hold() for _ in range(20)))
    assert most == 1


async def test_sessions_of_two_identities_never_meet(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as mine, await store.acquire(BOB, "s") as other:
        await mine.commit(SessionSnapshot(saying("ann")))
        assert await other.read() == SessionSnapshot()
    assert await store.list(ANN) == ["s"]
    assert await store.list(BOB) == []


async def test_a_released_lease_can_do_nothing_more(store: SessionStore) -> None:
    lease = await store.acquire(ANN, "s")
    await lease.release()
    await lease.release()
    with pytest.raises(LeaseLost):
        await lease.read()
    with pytest.raises(LeaseLost):
        await lease.commit(SessionSnapshot())


async def test_a_late_release_does_not_end_the_lease_of_another(store: SessionStore) -> None:
    old = await store.acquire(ANN, "s")
    await old.release()
    async with await store.acquire(ANN, "s"):
        await old.release()
        with pytest.raises(SessionConflict):
            await store.acquire(ANN, "s")


async def test_a_deleted_session_is_forgotten_and_a_leased_one_is_not_deleted(
    store: SessionStore,
) -> None:
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot(saying("a")))
        with pytest.raises(SessionConflict):
            await store.delete(ANN, "s")
    await store.delete(ANN, "s")
    await store.delete(ANN, "s")
    async with await store.acquire(ANN, "s") as lease:
        assert await lease.read() == SessionSnapshot()


async def test_guarantees_are_what_the_store_gives(store: SessionStore) -> None:
    guarantees = store.guarantees
    assert guarantees.single_writer in ("process", "host", "cluster")
    if isinstance(store, InMemorySessionStore):
        assert not guarantees.durable
        assert not guarantees.compare_and_swap
