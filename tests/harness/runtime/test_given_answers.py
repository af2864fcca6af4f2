"""Answers are heard of as they are given, whatever the database does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest

from web.harness.runtime.given_answers import all_given
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import Executions, GivenAnswer, Submission
from web.harness.sessions.opening import open_stores
from web.harness.values.errors import StoreError

pytestmark = pytest.mark.anyio

ALLOW = GivenAnswer("decision", "k", {"decision": "allow"})
STOP = GivenAnswer("cancel", "cancel")


class Failing:
    """The runs of a database that fails at these calls, counted from 1 over both methods."""

    def __init__(self, inner: Executions, failing: set[int]) -> None:
        self._inner = inner
        self._failing = failing
        self._calls = 0
        self.waits = asyncio.Event()

    async def answers(self, run_id: str) -> Sequence[GivenAnswer]:
        self._fail()
        return await self._inner.answers(run_id)

    async def wait_for_answers(self, run_id: str, known: int) -> None:
        self._fail()
        self.waits.set()
        await self._inner.wait_for_answers(run_id, known)

    def _fail(self) -> None:
        self._calls += 1
        if self._calls in self._failing:
            raise StoreError("The database cannot be reached.", transient=True)


@pytest.fixture
async def runs(tmp_path: object) -> AsyncIterator[Executions]:
    stores = await open_stores(f"sqlite:///{tmp_path}/runs.sqlite3", now=lambda: 1.0)
    assert stores.executions is not None
    await stores.executions.submit(Submission("r", LOCAL_IDENTITY, "s", "q", "Hi"))
    yield stores.executions
    await stores.aclose()


@pytest.mark.parametrize("failing", [set(), {1}, {2}, {2, 3}, {1, 2, 4}])
async def test_an_answer_is_heard_of_after_the_database_failed_and_the_end_is_too(
    runs: Executions, failing: set[int]
) -> None:
    seen = Failing(runs, failing)
    heard: list[list[str]] = []
    is_heard = asyncio.Event()

    async def hear() -> None:
        async with aclosing(all_given(seen, "r", again_seconds=0)) as answers:  # type: ignore[arg-type]
            async for given in answers:
                heard.append([answer.key for answer in given])
                if ALLOW in given:
                    is_heard.set()

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(hear())
        await seen.waits.wait()
        await runs.answer("r", ALLOW)
        await is_heard.wait()
        await runs.answer("r", STOP)
        execution, _ = await runs.begin("r")
        await runs.end("r", execution.fence, "cancelled")
        await hearing
    assert heard[:2] == [[], ["k"]]
