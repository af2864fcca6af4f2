"""The runtime runs a driver under the lease and commits what it leaves, whatever happens."""

from __future__ import annotations

import asyncio

import pytest

from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.errors import SessionConflict
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

MESSAGE = Message("m", "user", (TextBlock("hello"),))


async def settled(runtime: HarnessRuntime) -> SessionSnapshot:
    async with await runtime.sessions.acquire(LOCAL_IDENTITY, "s") as lease:
        return await lease.read()


async def test_what_a_driver_leaves_is_committed() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def driver(services: ExecutionServices) -> str:
        services.history.append(MESSAGE)
        services.state["n"] = 1
        return "done"

    assert await runtime.run(LOCAL_IDENTITY, "s", driver) == "done"
    assert await settled(runtime) == SessionSnapshot((MESSAGE,), {}, {"n": 1}, revision=1)


async def test_a_driver_that_fails_leaves_what_it_has_as_not_replayable() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def driver(services: ExecutionServices) -> None:
        services.history.append(MESSAGE)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await runtime.run(LOCAL_IDENTITY, "s", driver)
    snapshot = await settled(runtime)
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
    snapshot = await settled(runtime)
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
    assert (await settled(runtime)).state == {"list": [1]}
