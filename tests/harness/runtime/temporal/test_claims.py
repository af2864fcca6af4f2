from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.harness.runtime.runtimes import agent_for
from tests.support.durable_run import durable_agent, ran_in
from tests.support.scripted_provider import says
from web.harness.agent.agent import Agent
from web.harness.loop.actions import CallModel, Decided, RunTools
from web.harness.loop.machine import next_action
from web.harness.loop.state import RunState
from web.harness.runtime.backend import Turn
from web.harness.runtime.fitting import fitting_of
from web.harness.runtime.temporal.claims import Claims
from web.harness.runtime.temporal.payloads import Claimed, News, Task, What, unpacked
from web.harness.sessions.answers import STOP
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import Execution, Executions, GivenAnswer, Submission
from web.harness.sessions.journal_form import outcome_from_json
from web.harness.sessions.opening import Stores, open_stores
from web.harness.tools.registry import ToolRegistry
from web.harness.values.errors import HarnessError, LeaseLost
from web.harness.values.events import ApprovalRequired, Event

pytestmark = pytest.mark.anyio

RUN = "run"


class Worker:
    """One worker as its workflow sees it, on a connection of its own."""

    def __init__(
        self, stores: Stores, make: Callable[[], Agent], *, idle: float = 60.0, kept: float = 60.0
    ) -> None:
        self.stores = stores
        self.agents: list[Agent] = []
        self.told, self.left = asyncio.Event(), asyncio.Event()
        self.claims = Claims(stores, self._crew, self._tell, "own", idle=idle, kept=kept)
        self.claimed = Claimed("", 0, "")
        self.known = 0
        self._make = make

    @property
    def executions(self) -> Executions:
        assert self.stores.executions is not None
        return self.stores.executions

    async def claim(self, before: int | None = None) -> RunState:
        self.claimed = await self.claims.claim(RUN, before)
        self.known = self.claimed.known
        return RunState.from_json(unpacked(self.claimed.state))

    async def perform(self, what: What, call_id: str = "") -> News:
        task = Task(RUN, self.claimed.fence, what, call_id, self.known)
        news = await asyncio.wait_for(self.claims.perform(task), 10)
        self.known = news.first + len(unpacked(news.outcomes))
        return news

    async def events(self) -> list[Event]:
        return list((await self.stores.events.read(RUN, 0, 10_000)).events)

    @asynccontextmanager
    async def _crew(self, execution: Execution) -> AsyncIterator[Turn]:
        async with self._make() as agent:
            self.agents.append(agent)
            try:
                yield Turn(agent, execution.submission)
            finally:
                self.left.set()

    async def _tell(self, run_id: str) -> None:
        assert run_id == RUN
        self.told.set()


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[list[Stores]]:
    """Of two processes."""
    both = [await open_stores(f"sqlite:///{tmp_path / 'a.db'}", now=time.time) for _ in range(2)]
    assert both[0].executions is not None
    await both[0].executions.submit(Submission(RUN, LOCAL_IDENTITY, "s", "r", "Do it."))
    yield both
    for each in both:
        await each.aclose()


@pytest.fixture
async def worker(stores: list[Stores], ran: Path) -> AsyncIterator[Worker]:
    worker = Worker(stores[0], lambda: durable_agent(ran, "manual"))
    yield worker
    await worker.claims.aclose()


@pytest.fixture
async def other(stores: list[Stores], ran: Path) -> AsyncIterator[Worker]:
    other = Worker(stores[1], lambda: durable_agent(ran, "manual"))
    yield other
    await other.claims.aclose()


async def test_nothing_happens_before_the_workflow_asks_for_it(worker: Worker, ran: Path) -> None:
    state = await worker.claim()
    assert isinstance(next_action(state), CallModel)
    news = await worker.perform("model")
    assert [form["type"] for form in unpacked(news.outcomes)] == ["model_answered"]
    assert ran_in(ran) == []
    call_id = outcome_from_json(unpacked(news.outcomes)[0]).calls[1].id  # type: ignore[union-attr]
    news = await worker.perform("tool", call_id)
    assert [form["type"] for form in unpacked(news.outcomes)] == ["calls_started", "call_settled"]
    assert ran_in(ran) == [("look-right", call_id)]


async def test_who_was_given_up_writes_nothing_more(
    worker: Worker, other: Worker, ran: Path
) -> None:
    await worker.claim()
    await worker.perform("model")
    state = await other.claim()
    before, steps = await other.events(), len(await other.executions.steps(RUN))
    for _ in range(2):
        with pytest.raises(LeaseLost):
            await worker.perform("tool", state.calls[0].id)
    await worker.stores.events.flush(RUN)
    assert await other.events() == before
    assert len(await other.executions.steps(RUN)) == steps
    # A call that may not be repeated is not started by who does not have the run.
    assert ran_in(ran) == []


async def test_an_agent_that_does_not_fit_the_run_does_nothing_with_it(
    stores: list[Stores], ran: Path
) -> None:
    executions = stores[0].executions
    assert executions is not None
    fitting = fitting_of(durable_agent(ran, "manual"))
    await executions.withdraw(RUN)
    await executions.submit(Submission(RUN, LOCAL_IDENTITY, "s", "r", "Do it.", (), fitting))
    bare = Worker(stores[0], lambda: agent_for(says("There is no tool."), tools=ToolRegistry()))
    with pytest.raises(HarnessError, match="look is missing") as refused:
        await bare.claim()
    assert refused.value.code == "runtime_differs"
    found = await executions.find(RUN)
    assert found is not None
    assert (found.status, found.fence, found.steps) == ("submitted", 0, 0)
    # One that was stopped only ends, whoever has it.
    await executions.answer(RUN, STOP)
    await bare.claim()
    await bare.claims.aclose()


async def test_what_was_written_is_known_to_whoever_claims_next(
    worker: Worker, other: Worker, ran: Path
) -> None:
    """The worker performed it, and the workflow never heard of it."""
    state = await worker.claim()
    await worker.perform("model")
    first = await other.claim()
    assert first.iterations == 1
    await other.perform("tool", first.calls[0].id)
    second = await worker.claim()
    assert [call.status for call in second.calls] == ["settled", "ready"]
    assert isinstance(next_action(second), RunTools)
    assert len(ran_in(ran)) == 1
    assert state.iterations == 0


async def test_an_answer_is_taken_when_the_workflow_says_that_there_is_one(worker: Worker) -> None:
    state = await worker.claim()
    await worker.perform("model")
    for call_id in [call.id for call in (await worker_state(worker, state)).calls]:
        await worker.perform("tool", call_id)
    await worker.perform("model")
    key = next(
        each.body.key for each in await worker.events() if isinstance(each.body, ApprovalRequired)
    )
    await worker.executions.answer(RUN, GivenAnswer("decision", key, {"decision": "allow"}))
    news = await worker.perform("answers")
    assert [outcome_from_json(form) for form in unpacked(news.outcomes)] == [Decided(key, "allow")]


async def test_a_workflow_is_told_of_what_it_did_not_ask_for(
    stores: list[Stores], ran: Path
) -> None:
    """An approver of the agent's own answers, while nobody waits for the worker."""
    asked, said = asyncio.Event(), asyncio.Event()

    async def approver(question: ApprovalRequired) -> str:
        asked.set()
        await said.wait()
        return "allow"

    def make() -> Agent:
        agent = durable_agent(ran)
        agent.approver = approver  # type: ignore[assignment]
        return agent

    worker = Worker(stores[0], make)
    state = await worker.claim()
    await worker.perform("model")
    for call_id in [call.id for call in (await worker_state(worker, state)).calls]:
        await worker.perform("tool", call_id)
    await worker.perform("model")
    await asyncio.wait_for(asked.wait(), 20)
    assert not worker.told.is_set()
    said.set()
    await asyncio.wait_for(worker.told.wait(), 20)
    news = await worker.perform("answers")
    assert [form["type"] for form in unpacked(news.outcomes)] == ["decided"]
    await worker.claims.aclose()


async def test_a_run_that_waits_long_is_let_go_and_claimed_again(
    stores: list[Stores], ran: Path
) -> None:
    worker = Worker(stores[0], lambda: durable_agent(ran), idle=0.0)
    await worker.claim()
    await asyncio.wait_for(worker.left.wait(), 20)
    with pytest.raises(LeaseLost):
        await worker.perform("model")
    await worker.claim()
    await worker.claims.aclose()
    assert len(worker.agents) == 2
    # A workflow that hears of it would have it claimed again at once, and that for ever.
    assert not worker.told.is_set()


async def test_a_run_whose_claim_was_cut_off_is_let_go_in_its_time(
    stores: list[Stores], ran: Path
) -> None:
    worker = Worker(stores[0], lambda: durable_agent(ran), idle=0.1)
    await worker.claim()
    again = asyncio.ensure_future(worker.claim())
    await asyncio.sleep(0)
    again.cancel()
    with pytest.raises(asyncio.CancelledError):
        await again
    await asyncio.wait_for(worker.left.wait(), 20)
    await worker.claims.aclose()


async def test_a_pause_that_came_while_no_worker_had_the_run_is_heard(worker: Worker) -> None:
    await worker.executions.answer(RUN, GivenAnswer("pause", "pause-1"))
    await worker.claim(before=0)
    # What comes of it may come after this answer; then the workflow is told, and asks again.
    while not (await worker.perform("answers")).paused:
        await asyncio.wait_for(worker.told.wait(), 20)
        worker.told.clear()
    # Whoever resumes it then does not want it to pause again.
    await worker.claim(before=1)
    assert not (await worker.perform("model")).paused


async def worker_state(worker: Worker, state: RunState) -> RunState:
    execution = await worker.executions.find(RUN)
    assert execution is not None
    assert execution.state is not None
    return execution.state


async def test_a_run_that_has_its_result_already_is_finished_after_its_answers_were_read(
    worker: Worker, other: Worker
) -> None:
    """As where its process was killed between the result and what is committed with it."""
    await worker.claim()
    await worker.executions.answer(RUN, GivenAnswer("cancel", "cancel"))
    await worker.perform("answers")
    await worker.perform("cancel")
    await worker.perform("finish")
    state = await other.claim()
    assert state.ending is not None
    await other.perform("answers")
    await other.perform("finish")
    with pytest.raises(LeaseLost):
        await other.perform("finish")
