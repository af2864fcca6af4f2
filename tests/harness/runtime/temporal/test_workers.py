from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.durable_run import ANSWER, TEXTS, durable_agent, ran_in
from tests.support.postgres import empty_database, give_back
from tests.support.temporal_runs import QUICK, TemporalPlace, claim_for_the_dead, crew_of
from web.harness.agent.agent import Agent
from web.harness.agent.pausing import RunPaused
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import Missing, Performed, Turn, executions_of
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.temporal.backend import TemporalBackend, server_backend
from web.harness.runtime.temporal.payloads import Bounds
from web.harness.runtime.temporal.workflow import LOSSES
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import Execution, GivenAnswer, Submission
from web.harness.values.errors import HarnessError, StoreError
from web.harness.values.events import ApprovalRequired, Event, RunResult, TextDelta

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> TemporalPlace:
    return TemporalPlace(tmp_path)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "ran"


async def question(handle: RunHandle) -> ApprovalRequired:
    async with asyncio.timeout(20), aclosing(handle.stream()) as events:
        async for event in events:
            if isinstance(event.body, ApprovalRequired):
                return event.body
    raise AssertionError("nothing was asked")


async def ended(handle: RunHandle) -> RunResult:
    return await asyncio.wait_for(handle.result(), 20)


class Heard:
    """A listener of the event log."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._ended = asyncio.Event()

    def __call__(self, run_id: str, events: Sequence[Event]) -> None:
        self.events += events
        if isinstance(events[-1].body, RunResult):
            self._ended.set()

    async def check_all(self) -> None:
        """Each event of a run once, in order. Joined ones have the number of the last."""
        await asyncio.wait_for(self._ended.wait(), 10)
        numbers = [event.number for event in self.events]
        assert numbers == sorted(set(numbers))
        texts: dict[str, str] = {}
        for event in self.events:
            if isinstance(event.body, TextDelta):
                before = texts.get(event.body.message_id, "")
                texts[event.body.message_id] = before + event.body.text
        assert list(texts.values()) == [*TEXTS, ANSWER]


@asynccontextmanager
async def opened(backend: TemporalBackend) -> AsyncIterator[TemporalBackend]:
    try:
        yield backend
    finally:
        await backend.aclose()


@pytest.mark.full
async def test_a_run_is_performed_by_a_worker_that_makes_the_agent_itself(
    place: TemporalPlace, ran: Path, tmp_path: Path
) -> None:
    heard = Heard()
    unused = durable_agent(tmp_path / "never")
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere", listener=heard)) as waiting,
        working.working(crew_of(working, lambda: durable_agent(ran)), grace=0),
        AgentRuntime(unused, backend=waiting) as runtime,
    ):
        handle = await runtime.submit("Do it.")
        await runtime.approve(await question(handle))
        assert (await ended(handle)).text == ANSWER
        # Whoever waits sees what the worker writes.
        await heard.check_all()
        # The next one starts from what this one left.
        next_one = await runtime.submit("And again.")
        await runtime.approve(await question(next_one))
        assert (await ended(next_one)).text == ANSWER
    assert (len(ran_in(ran)), ran_in(tmp_path / "never")) == (6, [])


@pytest.mark.full
async def test_a_run_goes_on_with_another_worker_when_its_own_ends(
    place: TemporalPlace, ran: Path
) -> None:
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere", times=QUICK)) as waiting,
        AgentRuntime(durable_agent(ran), backend=waiting) as runtime,
    ):
        crew = crew_of(working, lambda: durable_agent(ran))
        async with working.working(crew, grace=0):
            handle = await runtime.submit("Do it.")
            asked = await question(handle)
        async with working.working(crew, grace=0):
            await runtime.approve(asked)
            assert (await ended(handle)).text == ANSWER
    assert sorted(name for name, _ in ran_in(ran)) == ["look-left", "look-right", "save"]


@pytest.mark.full
async def test_a_worker_that_ends_gives_a_run_that_waits_to_another(
    place: TemporalPlace, ran: Path
) -> None:
    """At once: an answer has not to wait until it is known that the worker is gone."""
    agents: list[Agent] = []

    def make() -> Agent:
        agents.append(durable_agent(ran))
        return agents[-1]

    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere")) as waiting,
        AgentRuntime(durable_agent(ran), backend=waiting) as runtime,
    ):
        crew = crew_of(working, make)
        async with working.working(crew, grace=10):
            handle = await runtime.submit("Do it.")
            asked = await question(handle)
        async with working.working(crew, grace=0), asyncio.timeout(10):
            await runtime.approve(asked)
            assert (await handle.result()).text == ANSWER
    assert len(agents) == 2


@pytest.mark.full
async def test_who_waits_for_a_run_that_no_worker_can_perform_is_told_why(
    place: TemporalPlace, ran: Path
) -> None:
    @asynccontextmanager
    async def crew(execution: Execution) -> AsyncIterator[Turn]:
        raise HarnessError("The tool saw is missing here.", hint="Add it.", code="runtime_differs")
        yield

    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere")) as waiting,
        AgentRuntime(durable_agent(ran), backend=waiting) as runtime,
    ):
        async with working.working(crew, grace=0):
            handle = await runtime.submit("Do it.")
            with pytest.raises(HarnessError, match="saw is missing") as refused:
                await ended(handle)
            assert (refused.value.code, refused.value.hint) == ("runtime_differs", "Add it.")
        # Nothing was lost: a worker that can goes on with it.
        async with working.working(crew_of(working, lambda: durable_agent(ran)), grace=0):
            handle = await runtime.resume()
            await runtime.approve(await question(handle))
            assert (await ended(handle)).text == ANSWER


async def test_a_server_that_is_not_there_is_told_of_and_the_message_is_kept(
    place: TemporalPlace, ran: Path
) -> None:
    nobody = place.address.replace(place.server.address, "127.0.0.1:9")
    backend = TemporalBackend(nobody, patience=0)
    async with opened(backend), AgentRuntime(durable_agent(ran), backend=backend) as runtime:
        handle = await runtime.submit("Do it.")
        with pytest.raises(StoreError) as refused:
            await ended(handle)
        assert refused.value.code == "temporal_unreachable"
    backend = TemporalBackend(place.address)
    async with opened(backend), AgentRuntime(durable_agent(ran), backend=backend) as runtime:
        resumed = await runtime.resume()
        assert resumed.run_id == handle.run_id
        await runtime.approve(await question(resumed))
        assert (await ended(resumed)).text == ANSWER


async def test_whoever_waits_is_told_that_temporal_does_not_answer(
    place: TemporalPlace, ran: Path
) -> None:
    nobody = place.address.replace(place.server.address, "127.0.0.1:9")
    told: list[Missing] = []
    async with opened(TemporalBackend(nobody, patience=0)) as backend, durable_agent(ran) as mine:
        submission = Submission("run", LOCAL_IDENTITY, "s", "r", "Do it.")
        await executions_of(await backend.open()).submit(submission)
        with pytest.raises(StoreError):
            await backend.perform(Turn(mine, submission, alone=told.append))
    assert set(told) == {"temporal"}


async def test_a_long_history_goes_on_in_a_new_one(place: TemporalPlace, ran: Path) -> None:
    """Also of a run that never waits for anybody."""
    backend, agent = TemporalBackend(place.address, bounds=Bounds(events=25)), durable_agent(ran)
    agent.permissions.grant("save", "before")
    async with opened(backend), AgentRuntime(agent, backend=backend) as runtime:
        handle = await runtime.submit("Do it.")
        assert (await ended(handle)).text == ANSWER
    history = await (await place.workflow(handle.run_id)).fetch_history()
    began = history.events[0].workflow_execution_started_event_attributes
    assert began.continued_execution_run_id
    assert sorted(name for name, _ in ran_in(ran)) == ["look-left", "look-right", "save"]


async def test_a_run_is_left_to_workers_where_there_are_any(
    place: TemporalPlace, ran: Path, tmp_path: Path
) -> None:
    own, mine = tmp_path / "own", durable_agent(tmp_path / "own")
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(server_backend(place.address, now=time.time)) as server,
        AgentRuntime(mine, backend=server) as runtime,
    ):
        handle = await runtime.submit("Do it.")
        await runtime.approve(await question(handle))
        assert (await ended(handle)).text == ANSWER
        assert len(ran_in(own)) == 3
        async with working.working(crew_of(working, lambda: durable_agent(ran)), grace=0):
            handle = await runtime.submit("Do it.")
            asked = await question(handle)
            assert (len(ran_in(own)), len(ran_in(ran))) == (3, 2)
            await runtime.approve(asked)
            assert (await ended(handle)).text == ANSWER


@pytest.mark.full
async def test_while_no_worker_is_there_for_a_run_whoever_waits_for_it_is_told(
    place: TemporalPlace, ran: Path, tmp_path: Path
) -> None:
    told: asyncio.Queue[Missing] = asyncio.Queue()

    async def until(missing: Missing) -> None:
        async with asyncio.timeout(20):
            while await told.get() != missing:
                pass

    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere")) as server,
        durable_agent(tmp_path / "own") as mine,
    ):
        executions = executions_of(await server.open())
        submission = Submission("run", LOCAL_IDENTITY, "s", "r", "Do it.")
        await executions.submit(submission)
        turn = Turn(mine, submission, alone=told.put_nowait)
        performing = asyncio.ensure_future(server.perform(turn))
        await until("worker")
        async with working.working(crew_of(working, lambda: durable_agent(ran)), grace=0):
            await until("")
            await executions.answer("run", GivenAnswer("cancel", "stop"))
            performed = await asyncio.wait_for(performing, 20)
    assert performed.result.status == "cancelled"


@pytest.mark.full
async def test_a_worker_that_is_gone_counts_as_there_for_seconds_only(
    place: TemporalPlace, ran: Path, tmp_path: Path
) -> None:
    """Temporal names it for minutes."""
    told: asyncio.Queue[Missing] = asyncio.Queue()
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere")) as server,
        durable_agent(tmp_path / "own") as mine,
    ):
        executions = executions_of(await server.open())

        async def begun(run_id: str) -> asyncio.Future[Performed]:
            submission = Submission(run_id, LOCAL_IDENTITY, run_id, run_id, "Do it.")
            await executions.submit(submission)
            turn = Turn(mine, submission, alone=told.put_nowait)
            return asyncio.ensure_future(server.perform(turn))

        async def stopped(run_id: str, performing: asyncio.Future[Performed]) -> str:
            await executions.answer(run_id, GivenAnswer("cancel", "stop"))
            return (await asyncio.wait_for(performing, 30)).result.status

        async with working.working(crew_of(working, lambda: durable_agent(ran)), grace=0):
            assert await stopped("before", await begun("before")) == "cancelled"
        performing = await begun("run")
        async with asyncio.timeout(30):
            while await told.get() != "worker":
                pass
        # It is stopped as where there never was one.
        assert await stopped("run", performing) == "cancelled"
    assert ran_in(tmp_path / "own") == []


async def test_what_only_one_process_can_do_is_left_to_no_worker(
    place: TemporalPlace, ran: Path, tmp_path: Path
) -> None:
    mine = durable_agent(tmp_path / "own")
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere")) as server,
        mine,
        working.working(crew_of(working, lambda: durable_agent(ran)), grace=0),
    ):
        executions = executions_of(await server.open())
        submission = Submission("run", LOCAL_IDENTITY, "s", "r", "Do it.")
        await executions.submit(submission)
        performing = asyncio.ensure_future(server.perform(Turn(mine, submission, only_here=True)))
        await executions.answer("run", GivenAnswer("cancel", "stop"))
        performed = await asyncio.wait_for(performing, 20)
    assert performed.result.status == "cancelled"
    assert ran_in(ran) == []


async def test_a_run_is_taken_at_once_from_a_process_that_died_without_a_word(
    place: TemporalPlace, ran: Path
) -> None:
    """The next one has its session, and waits for no limit."""
    async with opened(TemporalBackend(place.address)) as backend, durable_agent(ran) as mine:
        executions = executions_of(await backend.open())
        submission = Submission("run", LOCAL_IDENTITY, "s", "r", "Do it.")
        await executions.submit(submission)
        await claim_for_the_dead(place, "run")
        performing = asyncio.ensure_future(backend.perform(Turn(mine, submission)))
        await executions.answer("run", GivenAnswer("cancel", "stop"))
        performed = await asyncio.wait_for(performing, 20)
    assert performed.result.status == "cancelled"


@pytest.mark.full
async def test_who_listens_hears_each_event_once_although_the_run_was_paused(
    place: TemporalPlace, ran: Path
) -> None:
    heard = Heard()
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere", listener=heard)) as waiting,
        working.working(crew_of(working, lambda: durable_agent(ran)), grace=0),
        AgentRuntime(durable_agent(ran), backend=waiting) as runtime,
    ):
        handle = await runtime.submit("Do it.")
        asked = await question(handle)
        await runtime.pause(run_id=handle.run_id)
        with pytest.raises(RunPaused):
            await ended(handle)
        info = await runtime.status("s")
        assert info is not None
        assert info.status == "paused"
        handle = await runtime.resume("s")
        await runtime.approve(asked)
        assert (await ended(handle)).text == ANSWER
        await heard.check_all()


@pytest.mark.full
async def test_a_run_that_no_worker_gets_on_with_is_given_up_and_kept(
    place: TemporalPlace, ran: Path
) -> None:
    tried = 0

    @asynccontextmanager
    async def crew(execution: Execution) -> AsyncIterator[Turn]:
        nonlocal tried
        tried += 1
        raise RuntimeError("It breaks each time, with a secret.")
        yield

    hasty = dataclasses.replace(QUICK, patience=0.01)
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere", times=hasty)) as waiting,
        AgentRuntime(durable_agent(ran), backend=waiting) as runtime,
    ):
        async with working.working(crew, grace=0):
            handle = await runtime.submit("Do it.")
            with pytest.raises(HarnessError) as refused:
                await asyncio.wait_for(handle.result(), 60)
            assert (refused.value.code, tried) == ("run_interrupted", LOSSES + 1)
        history = await (await place.workflow(handle.run_id)).fetch_history()
        assert "secret" not in history.to_json()
        async with working.working(crew_of(working, lambda: durable_agent(ran)), grace=0):
            handle = await runtime.resume()
            await runtime.approve(await question(handle))
            assert (await ended(handle)).text == ANSWER


@pytest.mark.full
async def test_what_runs_write_may_be_in_postgresql(place: TemporalPlace, ran: Path) -> None:
    place.events = await empty_database()
    heard = Heard()
    async with (
        opened(TemporalBackend(place.address)) as working,
        opened(TemporalBackend(place.address, workers="elsewhere", listener=heard)) as waiting,
        working.working(crew_of(working, lambda: durable_agent(ran)), grace=0),
        AgentRuntime(durable_agent(ran), backend=waiting) as runtime,
    ):
        handle = await runtime.submit("Do it.")
        await runtime.approve(await question(handle))
        assert (await ended(handle)).text == ANSWER
        await heard.check_all()
    await give_back(place.events)
