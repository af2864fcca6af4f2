"""A worker that Temporal gave up while a call was under way: the call goes on there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.harness.runtime.temporal.test_claims import RUN, Worker, stores
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.agent.agent import Agent
from web.harness.runtime.temporal.payloads import News
from web.harness.sessions.journal import GivenAnswer
from web.harness.sessions.opening import Stores
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel
from web.harness.values.errors import LeaseLost

pytestmark = pytest.mark.anyio

__all__ = ["stores"]


class Till:
    """A tool that may not be repeated, and takes its time."""

    def __init__(self) -> None:
        self.began, self.go_on, self.cut = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.paid = 0

    def agent(self) -> Agent:
        async def pay() -> str:
            """Pays."""
            self.paid += 1
            self.began.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cut.set()
                raise
            return "paid"

        tool = function_tool(pay, permission=PermissionLevel.ALLOW)
        model = ScriptedProvider(calls(("pay", {})), says("Done."))
        return Agent(provider=model, tools=[tool], session_id="s")


@asynccontextmanager
async def calling(
    stores: Stores, till: Till, *, kept: float = 60.0
) -> AsyncIterator[tuple[Worker, str, asyncio.Future[News]]]:
    """A worker whose call, of this id, is under way for its workflow."""
    worker = Worker(stores, till.agent, kept=kept)
    try:
        await worker.claim()
        await worker.perform("model")
        recorded = await worker.executions.recorded(RUN)
        assert recorded is not None
        (call_id,) = recorded.calls
        performing = asyncio.ensure_future(worker.perform("tool", call_id))
        await asyncio.wait_for(till.began.wait(), 10)
        yield worker, call_id, performing
    finally:
        await worker.claims.aclose()


@asynccontextmanager
async def paying(
    stores: Stores, till: Till, *, kept: float = 60.0
) -> AsyncIterator[tuple[Worker, str]]:
    """A worker whose call, of this id, was given up while it is under way."""
    async with calling(stores, till, kept=kept) as (worker, call_id, performing):
        performing.cancel()
        with suppress(asyncio.CancelledError):
            await performing
        assert not till.cut.is_set()
        yield worker, call_id


async def test_it_is_claimed_where_it_stands_and_hands_over_what_it_gave(
    stores: list[Stores],
) -> None:
    till = Till()
    async with paying(stores[0], till) as (worker, call_id):
        before = worker.claimed.fence
        state = await worker.claim()
        assert (worker.claimed.kept, worker.claimed.fence) == (True, before)
        assert [call.status for call in state.calls] == ["running"]
        performing = asyncio.ensure_future(worker.perform("tool", call_id))
        till.go_on.set()
        news = await performing
        assert "call_settled" in news.outcomes
    assert till.paid == 1


async def test_once_another_has_the_run_it_is_not_taken_up_again(stores: list[Stores]) -> None:
    till, other = Till(), Worker(stores[1], Till().agent)
    async with paying(stores[0], till) as (worker, _):
        state = await other.claim()
        assert not other.claimed.kept
        assert [call.status for call in state.calls] == ["uncertain"]
        await worker.claim()
        assert not worker.claimed.kept
        assert till.cut.is_set()
        await other.claims.aclose()


async def test_it_goes_on_for_as_long_as_nobody_else_has_the_run(stores: list[Stores]) -> None:
    till, other = Till(), Worker(stores[1], Till().agent)
    async with paying(stores[0], till, kept=0.0) as (worker, _):
        for _ in range(20):
            # Reads are done in their order: it has been looked more than once by then.
            await worker.executions.find(RUN)
        assert not till.cut.is_set()
        await other.claim()
        await asyncio.wait_for(till.cut.wait(), 10)
        await other.claims.aclose()


async def test_a_stop_is_heard_without_the_workflow(stores: list[Stores]) -> None:
    till = Till()
    async with paying(stores[0], till) as (worker, _):
        await worker.executions.answer(RUN, GivenAnswer("cancel", "cancel"))
        await asyncio.wait_for(till.cut.wait(), 10)


async def test_what_others_have_ended_is_stopped(stores: list[Stores]) -> None:
    till = Till()
    async with paying(stores[0], till):
        executions = stores[1].executions
        assert executions is not None
        begun, _ = await executions.begin(RUN)
        await executions.end(RUN, begun.fence, "cancelled")
        await asyncio.wait_for(till.cut.wait(), 10)


async def test_whoever_waits_for_a_run_that_is_let_go_hears_that_it_is_lost(
    stores: list[Stores],
) -> None:
    till = Till()
    async with calling(stores[0], till) as (worker, _, performing):
        await worker.claims.let_go(RUN)
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(performing, 10)
    assert till.cut.is_set()
