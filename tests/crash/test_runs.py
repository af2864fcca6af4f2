"""A durable run whose process is killed, at every boundary there is: it goes on, and rightly."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cut_run import cut_run
from tests.support.durable_process import DurableProcesses, durable_processes
from tests.support.durable_run import ANSWER, durable_agent, ran_in
from tests.support.stores import SqlPlace, on
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import executions_of
from web.harness.runtime.sql import SqlBackend
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.events import ApprovalRequired, Resolution

pytestmark = pytest.mark.anyio

full = pytest.mark.full

POLICIES: tuple[ReplayPolicy, ...] = ("safe", "idempotent", "manual")
WAYS: list[tuple[ReplayPolicy, Resolution]] = [
    *((replay, "retry") for replay in POLICIES),
    # Nothing else is ever uncertain.
    ("manual", "result"),
    ("manual", "abort"),
]

AT_ONCE = 4
"""Runs that are cut off side by side: most of their time they wait until a process is missed."""

HALVES = 2
"""A run over Temporal has some 85 boundaries, and each takes seconds: one test has every second."""


async def until_none_is_left(
    killed_after: Callable[[int], Awaitable[str]], start: int = 0, step: int = 1
) -> list[str]:
    """Kills a run after so many boundaries, each time in a run of its own; the names of those where
    it was killed. It is given '' where a run had no more of them."""
    passed: list[str] = []
    while "" not in passed:
        numbers = itertools.count(start + len(passed) * step, step)
        passed += await asyncio.gather(*map(killed_after, itertools.islice(numbers, AT_ONCE)))
    return passed[: passed.index("")]


def kinds_of(boundaries: list[str]) -> set[str]:
    """What they were: a commit, a step, something given to Temporal or taken from it."""
    return {name.partition(" ")[0] for name in boundaries}


@pytest.fixture(scope="module")
def processes() -> Iterator[DurableProcesses]:
    with durable_processes() as processes:
        yield processes


@pytest.mark.parametrize(
    ("kind", "replay", "resolve", "boundary"),
    [
        ("sqlite", "manual", "retry", "save"),
        pytest.param("sqlite", "safe", "retry", "model answer 3", marks=full),
        ("postgresql", "idempotent", "retry", "look right"),
        *(
            pytest.param("temporal", "manual", resolve, boundary, marks=full)
            for resolve, boundary in (
                *itertools.product(("result", "abort"), ("look left", "save")),
                # Which a run comes to once.
                *itertools.product(("retry",), ("gives start", "gives claimed")),
                *itertools.product(("retry",), ("gives task answers", "takes task finish")),
            )
        ),
    ],
)
async def test_a_run_that_is_killed_goes_on_in_a_fresh_process(
    processes: DurableProcesses,
    tmp_path: Path,
    kind: str,
    replay: ReplayPolicy,
    resolve: Resolution,
    boundary: str,
) -> None:
    async with cut_run(processes, kind, tmp_path, replay, resolve) as run:
        child = await run.begin()
        await child.reached(boundary)
        await run.goes_on(child)


@full
@pytest.mark.parametrize(
    ("kind", "replay", "resolve", "start", "step"),
    [
        *((kind, *way, 0, 1) for kind in ("sqlite", "postgresql") for way in WAYS),
        *(("temporal", *way, half, HALVES) for way in WAYS[:3] for half in range(HALVES)),
    ],
)
async def test_a_run_goes_on_wherever_it_was_killed(
    processes: DurableProcesses,
    tmp_path: Path,
    kind: str,
    replay: ReplayPolicy,
    resolve: Resolution,
    start: int,
    step: int,
) -> None:
    async def killed_after(boundaries: int) -> str:
        folder = tmp_path / str(boundaries)
        async with cut_run(processes, kind, folder, replay, resolve) as run:
            child = await run.begin()
            if not await child.passed(boundaries):
                return ""
            await run.goes_on(child)
            return child.boundaries[-1]

    passed = await until_none_is_left(killed_after, start, step)
    assert len(passed) > 25
    assert kinds_of(passed) >= ({"gives", "takes"} if kind == "temporal" else {"committed"})


@full
@pytest.mark.parametrize(
    ("kind", "first", "replay", "step"),
    [
        *(
            ("sqlite", first, replay, 1)
            for first in ("calls_started", "look right", "save")
            for replay in POLICIES
        ),
        ("temporal", "calls_started", "idempotent", 7),
        ("temporal", "save", "manual", 5),
    ],
)
async def test_a_run_goes_on_though_whoever_went_on_with_it_was_killed_too(
    processes: DurableProcesses,
    tmp_path: Path,
    kind: str,
    first: str,
    replay: ReplayPolicy,
    step: int,
) -> None:
    async def killed_after(boundaries: int) -> str:
        async with cut_run(processes, kind, tmp_path / str(boundaries), replay) as run:
            child = await run.begin()
            await child.reached(first)
            second = await run.next(await run.killed(child), watched=True)
            if not await second.passed(boundaries):
                return ""
            found = await run.killed(second)
            await run.ends_well(found, await run.next(found))
            return second.boundaries[-1]

    assert len(await until_none_is_left(killed_after, step=step)) * step > 10


@full
@pytest.mark.parametrize("half", range(HALVES))
async def test_a_run_goes_on_wherever_its_worker_was_killed(
    processes: DurableProcesses, tmp_path: Path, half: int
) -> None:
    """While the process that waits for the run, and has its session, lives on."""

    async def killed_after(boundaries: int) -> str:
        replay = POLICIES[boundaries % len(POLICIES)]
        async with cut_run(processes, "temporal", tmp_path / str(boundaries), replay) as run:
            worker = await run.start("work", watched=True)
            web = await run.start("run", workers="elsewhere")
            waiting = asyncio.ensure_future(web.ended())
            # It has no end of its own.
            waiting.add_done_callback(lambda _: worker.end())
            stands = await worker.passed(boundaries)
            found = await run.worker_killed(worker)
            other = await run.start("work")
            await waiting
            await run.ends_well(found, web)
            await other.kill()
            return worker.boundaries[-1] if stands else ""

    passed = await until_none_is_left(killed_after, half, HALVES)
    assert len(passed) > 20
    assert kinds_of(passed) >= {"gives", "takes"}


@full
@on("sqlite", full="postgresql")
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


@on("sqlite", full="postgresql")
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


@on("sqlite", full="postgresql")
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
