"""A driver whose lease is lost ends: another server may go on with the session."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.stores import SqlPlace, on
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.errors import LeaseLost

pytestmark = [pytest.mark.anyio, on("sqlite")]


async def test_a_driver_is_cancelled_when_its_lease_is_lost_and_what_it_left_is_not_written(
    place: SqlPlace,
) -> None:
    runtime = HarnessRuntime(SqlSessionStore(await place.open(), lease_seconds=1))
    stopped = asyncio.Event()

    async def endless(services: ExecutionServices) -> None:
        services.state = {"late": True}
        await place.let_leases_run_out()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    async def next_one(services: ExecutionServices) -> dict[str, object]:
        return dict(services.state)

    with pytest.raises(LeaseLost):
        await asyncio.wait_for(runtime.run(LOCAL_IDENTITY, "s", endless), 10)
    assert stopped.is_set()
    assert await runtime.run(LOCAL_IDENTITY, "s", next_one, wait=20) == {}


async def test_a_driver_that_is_cancelled_by_its_caller_is_not_told_of_a_lease(
    place: SqlPlace,
) -> None:
    runtime = HarnessRuntime(await place.sessions())
    begun = asyncio.Event()

    async def endless(services: ExecutionServices) -> None:
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(runtime.run(LOCAL_IDENTITY, "s", endless))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
