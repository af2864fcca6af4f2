"""What a worker says of a run that it cannot perform: one line, and no more to the workflow."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment

from web.harness.runtime.temporal.activities import Activities
from web.harness.runtime.temporal.claims import Claims
from web.harness.runtime.temporal.payloads import Task
from web.harness.runtime.temporal.workflow import LOST, REFUSED
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
