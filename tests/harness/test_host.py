"""The runtime runs a driver under the lease and commits what it leaves, whatever happens."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.stores import session_of
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.process import ProcessLease
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.errors import SessionConflict
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

MESSAGE = Message("m", "user", (TextBlock("hello"),))


async def test_what_a_driver_leaves_is_committed() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def driver(services: ExecutionServices) -> str:
        services.history.append(MESSAGE)
        services.state["n"] = 1
        return "done"

    assert await runtime.run(LOCAL_IDENTITY, "s", driver) == "done"
    assert await session_of(runtime.sessions) == SessionSnapshot(
        (MESSAGE,), {}, {"n": 1}, revision=1
    )


async def test_a_driver_that_fails_leaves_what_it_has_as_not_replayable() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def driver(services: ExecutionServices) -> None:
        services.history.append(MESSAGE)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await runtime.run(LOCAL_IDENTITY, "s", driver)
    snapshot = await session_of(runtime.sessions)
    assert (snapshot.history, snapshot.replayable) == ((MESSAGE,), False)


async def test_a_driver_that_is_cancelled_leaves_what_it_has_and_frees_the_session() -> None:
    runtime, started = HarnessRuntime(InMemorySessionStore()), asyncio.Event()

    async def driver(services: ExecutionServices) -> None:
        services.history.append(MESSAGE)
        started.set()
        await asyncio.Event().wait()

    run = asyncio.ensure_future(runtime.run(LOCAL_IDENTITY, "s", driver))
    await asyncio.wait_for(started.wait(), 5)
    with pytest.raises(SessionConflict):
        await runtime.run(LOCAL_IDENTITY, "s", driver)
    run.cancel()
    await asyncio.wait({run})
    snapshot = await session_of(runtime.sessions)
    assert (snapshot.history, snapshot.replayable) == ((MESSAGE,), False)


async def test_a_driver_works_on_a_copy() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def first(services: ExecutionServices) -> None:
        services.state["list"] = [1]

    kept: list[ExecutionServices] = []

    async def second(services: ExecutionServices) -> None:
        kept.append(services)

    await runtime.run(LOCAL_IDENTITY, "s", first)
    await runtime.run(LOCAL_IDENTITY, "s", second)
    kept[0].state["list"].append(2)
    assert (await session_of(runtime.sessions)).state == {"list": [1]}


class BrokenStore:
    """A store in memory whose leases fail where a test says so."""

    guarantees = InMemorySessionStore.guarantees

    def __init__(self, *, commits: bool = True, releases: bool = True) -> None:
        self.inner = InMemorySessionStore()
        self.commits, self.releases = commits, releases
        self.committing = asyncio.Event()
        self.go: asyncio.Event | None = None
        self.releasing = asyncio.Event()
        self.let_go: asyncio.Event | None = None

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> BrokenLease:
        return BrokenLease(self, await self.inner.acquire(identity, session_id, wait=wait))


class BrokenLease:
    def __init__(self, store: BrokenStore, inner: ProcessLease) -> None:
        self.store, self.inner = store, inner
        self.read = inner.read

    async def commit(self, snapshot: SessionSnapshot) -> SessionSnapshot:
        self.store.committing.set()
        if self.store.go is not None:
            await self.store.go.wait()
        if not self.store.commits:
            raise OSError("the disk is full")
        return await self.inner.commit(snapshot)

    async def release(self) -> None:
        self.store.releasing.set()
        if self.store.let_go is not None:
            await self.store.let_go.wait()
        await self.inner.release()
        if not self.store.releases:
            raise OSError("the database is gone")


def runtime_over(store: BrokenStore) -> HarnessRuntime:
    return HarnessRuntime(store)  # type: ignore[arg-type]


async def says_hello(services: ExecutionServices) -> str:
    services.history.append(MESSAGE)
    return "done"


async def breaks(services: ExecutionServices) -> None:
    services.history.append(MESSAGE)
    raise ValueError("broken")


async def test_a_commit_under_way_is_finished_when_its_run_is_cancelled() -> None:
    store = BrokenStore()
    store.go = asyncio.Event()
    run = asyncio.ensure_future(runtime_over(store).run(LOCAL_IDENTITY, "s", says_hello))
    await asyncio.wait_for(store.committing.wait(), 5)
    for _ in range(3):
        run.cancel()
        await asyncio.sleep(0)
    store.go.set()
    await asyncio.wait({run})
    assert run.cancelled()
    async with await store.inner.acquire(LOCAL_IDENTITY, "s") as lease:
        assert (await lease.read()).history == (MESSAGE,)


async def test_the_commit_of_a_cancelled_run_is_finished_when_it_is_cancelled_again() -> None:
    store, started = BrokenStore(), asyncio.Event()
    store.go = asyncio.Event()

    async def driver(services: ExecutionServices) -> None:
        services.history.append(MESSAGE)
        started.set()
        await asyncio.Event().wait()

    run = asyncio.ensure_future(runtime_over(store).run(LOCAL_IDENTITY, "s", driver))
    await asyncio.wait_for(started.wait(), 5)
    run.cancel()
    await asyncio.wait_for(store.committing.wait(), 5)
    run.cancel()
    await asyncio.sleep(0)
    store.go.set()
    await asyncio.wait({run})
    async with await store.inner.acquire(LOCAL_IDENTITY, "s") as lease:
        snapshot = await lease.read()
    assert (snapshot.history, snapshot.replayable) == ((MESSAGE,), False)


async def test_a_release_under_way_is_finished_when_its_run_is_cancelled() -> None:
    store = BrokenStore()
    store.let_go = asyncio.Event()
    run = asyncio.ensure_future(runtime_over(store).run(LOCAL_IDENTITY, "s", says_hello))
    await asyncio.wait_for(store.releasing.wait(), 5)
    run.cancel()
    await asyncio.sleep(0)
    store.let_go.set()
    await asyncio.wait({run})
    async with await store.inner.acquire(LOCAL_IDENTITY, "s"):
        assert run.cancelled()


async def test_a_commit_that_fails_is_raised_and_frees_the_session() -> None:
    store = BrokenStore(commits=False)
    with pytest.raises(OSError, match="disk is full"):
        await runtime_over(store).run(LOCAL_IDENTITY, "s", says_hello)
    async with await store.inner.acquire(LOCAL_IDENTITY, "s") as lease:
        assert await lease.read() == SessionSnapshot()


async def test_a_commit_that_fails_does_not_hide_why_the_run_did(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ValueError, match="broken") as caught:
        await runtime_over(BrokenStore(commits=False)).run(LOCAL_IDENTITY, "s", breaks)
    assert "the disk is full" in caught.value.__notes__[0]
    assert "the disk is full" in caplog.text


async def test_a_state_that_cannot_be_kept_costs_no_message() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def first(services: ExecutionServices) -> None:
        services.state["n"] = 1

    async def second(services: ExecutionServices) -> None:
        services.history.append(MESSAGE)
        services.state["n"] = object()

    await runtime.run(LOCAL_IDENTITY, "s", first)
    with pytest.raises(NotSerialisable, match="state") as caught:
        await runtime.run(LOCAL_IDENTITY, "s", second)
    kept = SessionSnapshot((MESSAGE,), {}, {"n": 1}, revision=2, replayable=False)
    assert await session_of(runtime.sessions) == kept
    assert "kept" in caught.value.hint


async def test_a_release_that_fails_costs_no_result(caplog: pytest.LogCaptureFixture) -> None:
    store = BrokenStore(releases=False)
    assert await runtime_over(store).run(LOCAL_IDENTITY, "s", says_hello) == "done"
    assert "the database is gone" in caplog.text


async def test_a_driver_is_told_what_the_session_was() -> None:
    runtime, told = HarnessRuntime(InMemorySessionStore()), []

    async def driver(services: ExecutionServices) -> None:
        told.append((services.revision, services.was_replayable))

    await runtime.run(LOCAL_IDENTITY, "s", driver)
    with pytest.raises(ValueError, match="broken"):
        await runtime.run(LOCAL_IDENTITY, "s", breaks)
    await runtime.run(LOCAL_IDENTITY, "s", driver)
    assert told == [(0, True), (2, False)]
