"""A durable run whose process is killed, at every boundary there is: it goes on, and rightly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.cut_run import CutRun
from tests.support.durable_process import DurableProcesses, durable_processes
from tests.support.durable_run import ANSWER, durable_agent, ran_in
from tests.support.stores import SqlPlace, new_place
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import executions_of
from web.harness.runtime.sql import SqlBackend
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.events import ApprovalRequired, Resolution

pytestmark = pytest.mark.anyio

POLICIES: tuple[ReplayPolicy, ...] = ("safe", "idempotent", "manual")
KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="module")
def processes() -> Iterator[DurableProcesses]:
    with durable_processes() as processes:
        yield processes


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlPlace]:
    place = await new_place(request.param, tmp_path)
    assert isinstance(place, SqlPlace)
    yield place
    await place.aclose()


@pytest.mark.parametrize(
    ("kind", "replay", "boundary"),
    [
        ("sqlite", "manual", "save"),
        pytest.param("sqlite", "safe", "model answer 3", marks=pytest.mark.full),
        ("postgresql", "idempotent", "look right"),
    ],
)
async def test_a_run_that_is_killed_goes_on_in_a_fresh_process(
    processes: DurableProcesses,
    tmp_path: Path,
    kind: str,
    replay: ReplayPolicy,
    boundary: str,
) -> None:
    place = await new_place(kind, tmp_path)
    assert isinstance(place, SqlPlace)
    try:
        run = CutRun(processes, place, tmp_path / "ran", replay)
        child = await run.begin()
        await child.reached(boundary)
        await run.goes_on(child)
    finally:
        await place.aclose()


@pytest.mark.full
@pytest.mark.parametrize("resolve", ["retry", "result", "abort"])
@pytest.mark.parametrize("replay", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_goes_on_wherever_it_was_killed(
    processes: DurableProcesses,
    tmp_path: Path,
    kind: str,
    replay: ReplayPolicy,
    resolve: Resolution,
) -> None:
    if replay != "manual" and resolve != "retry":
        pytest.skip("nothing is uncertain")
    boundaries = 0
    while True:
        folder = tmp_path / str(boundaries)
        folder.mkdir()
        place = await new_place(kind, folder)
        assert isinstance(place, SqlPlace)
        try:
            run = CutRun(processes, place, folder / "ran", replay, resolve)
            child = await run.begin()
            if not await child.passed(boundaries):
                break
            await run.goes_on(child)
        finally:
            await place.aclose()
        boundaries += 1
    assert boundaries > 25


@pytest.mark.full
@pytest.mark.parametrize("replay", POLICIES)
@pytest.mark.parametrize("first", ["calls_started", "look right", "save"])
async def test_a_run_goes_on_though_whoever_went_on_with_it_was_killed_too(
    processes: DurableProcesses, tmp_path: Path, replay: ReplayPolicy, first: str
) -> None:
    boundaries = 0
    while True:
        folder = tmp_path / str(boundaries)
        folder.mkdir()
        place = await new_place("sqlite", folder)
        assert isinstance(place, SqlPlace)
        try:
            run = CutRun(processes, place, folder / "ran", replay)
            child = await run.begin()
            await child.reached(first)
            second = await run.next(await run.killed(child), watched=True)
            if not await second.passed(boundaries):
                break
            found = await run.killed(second)
            await run.ends_well(found, await run.next(found))
        finally:
            await place.aclose()
        boundaries += 1
    assert boundaries > 10


@pytest.mark.full
async def test_one_of_two_processes_that_resume_a_run_has_it(
    processes: DurableProcesses, place: SqlPlace, tmp_path: Path
) -> None:
    plan = {"address": place.address, "ran": str(tmp_path / "ran"), "replay": "safe"}
    first = await processes.start(**plan, do="run", answers=False)
    while not first.events or not isinstance(first.events[-1].body, ApprovalRequired):
        await first.next_event()
    await first.kill()
    await place.let_leases_run_out()
    one = await processes.start(**plan, do="resume", answers=False, lease_seconds=60.0, wait=0)
    await one.next_event()
    two = await processes.start(**plan, do="resume", answers=False, wait=0)
    await two.ended()
    assert (two.failed, two.result) == ("session_conflict", None)
    # This process answers; the one that has the run goes on.
    stores = await place.backend()
    backend = SqlBackend(stores)
    async with AgentRuntime(durable_agent(tmp_path / "ran"), backend=backend) as runtime:
        info = await runtime.status()
        assert info is not None
        await runtime.approve(info.pending[0], resume=False)
        await one.ended()
    assert one.result == ("completed", ANSWER, "")
    assert len(ran_in(tmp_path / "ran")) == 3


async def test_a_process_that_was_stopped_and_wakes_up_late_writes_nothing(
    processes: DurableProcesses, place: SqlPlace, tmp_path: Path
) -> None:
    plan = {"address": place.address, "ran": str(tmp_path / "ran"), "replay": "manual"}
    late = await processes.start(**plan, do="run", watched=True)
    await late.reached("calls_started")
    late.go_on()
    # Between two transactions: in one, SQLite would let nobody else write.
    await late.reached("committed", late.boundaries.count("committed") + 1)
    late.stop()
    await place.let_leases_run_out()
    other = await processes.start(**plan, do="resume")
    await other.ended()
    assert other.result == ("completed", ANSWER, "")
    stores = await place.backend()
    [(run_id,)] = await place.run("SELECT run_id FROM harness_executions")
    steps = await executions_of(stores).steps(run_id)
    events = await stores.events.read(run_id, limit=10_000)
    late.go_on()
    late.wake()
    await late.ended()
    assert late.failed in ("lease_lost", "session_conflict")
    assert await executions_of(stores).steps(run_id) == steps
    assert await stores.events.read(run_id, limit=10_000) == events
    sessions = await place.run("SELECT revision FROM harness_sessions")
    assert [tuple(row) for row in sessions] == [(1,)]


async def test_a_question_waits_for_days(
    processes: DurableProcesses, place: SqlPlace, tmp_path: Path
) -> None:
    plan = {"address": place.address, "ran": str(tmp_path / "ran"), "replay": "manual"}
    first = await processes.start(**plan, do="run", answers=False)
    while not first.events or not isinstance(first.events[-1].body, ApprovalRequired):
        await first.next_event()
    await first.kill()
    # As if all of it had been written ten days ago.
    for table, column in (
        ("harness_executions", "created_at"),
        ("harness_executions", "changed_at"),
        ("harness_steps", "happened_at"),
        ("harness_leases", "expires_at"),
    ):
        await place.run(f"UPDATE {table} SET {column} = {column} - 864000")
    second = await processes.start(**plan, do="resume")
    await second.ended()
    assert second.result == ("completed", ANSWER, "")
    assert len(ran_in(tmp_path / "ran")) == 3
