"""What a worker says of a run that it cannot perform: one line, and no more to the workflow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment

from web.harness.runtime.backend import Turn
from web.harness.runtime.temporal.activities import Activities
from web.harness.runtime.temporal.claims import Claims
from web.harness.runtime.temporal.payloads import Task
from web.harness.runtime.temporal.workflow import LOST, REFUSED
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import Execution, Submission
from web.harness.sessions.opening import open_stores

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", [REFUSED, LOST])
async def test_a_run_that_cannot_go_on_here_is_one_line_in_the_log(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stores = await open_stores(f"sqlite:///{tmp_path / 'a.db'}", now=time.time)

    async def crew(execution: object) -> None:
        raise AssertionError("there is no run")

    async def tell(run_id: str) -> None:
        raise AssertionError("nothing is told")

    activities = Activities(Claims(stores, crew, tell, "own"))  # type: ignore[arg-type]
    environment = ActivityEnvironment()
    doing = (
        environment.run(activities.claim, "unknown")
        if kind == REFUSED
        else environment.run(activities.perform, Task("r", 1, "model"))
    )
    with pytest.raises(ApplicationError) as failed:
        await doing
    await stores.aclose()
    # With which Temporal writes nothing of its own.
    assert (failed.value.type, failed.value.category) == (kind, ApplicationErrorCategory.BENIGN)
    [line] = caplog.records
    assert line.getMessage().startswith("A run does not go on here: ")
    assert line.exc_info is None


async def test_that_temporal_gave_a_worker_up_is_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stores = await open_stores(f"sqlite:///{tmp_path / 'a.db'}", now=time.time)
    assert stores.executions is not None
    await stores.executions.submit(Submission("r", LOCAL_IDENTITY, "s", "q", "Do it."))
    began = asyncio.Event()

    @asynccontextmanager
    async def crew(execution: Execution) -> AsyncIterator[Turn]:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody ends the waiting")
        yield

    async def tell(run_id: str) -> None:
        raise AssertionError("nothing is told")

    environment = ActivityEnvironment()
    claims = Claims(stores, crew, tell, "own")
    claiming = asyncio.ensure_future(environment.run(Activities(claims).claim, "r"))
    await asyncio.wait_for(began.wait(), 10)
    environment.cancel(ActivityCancellationDetails(timed_out=True))
    with pytest.raises(ApplicationError) as failed:
        await asyncio.wait_for(claiming, 10)
    await claims.aclose()
    await stores.aclose()
    assert (failed.value.type, failed.value.category) == (LOST, ApplicationErrorCategory.BENIGN)
    [line] = caplog.records
    assert (line.exc_info, "gave this worker up" in line.getMessage()) == (None, True)
