"""What every backend promises to those who run agents on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.harness.runtime.runtimes import session
from tests.support.backends import BACKENDS, BackendPlace
from tests.support.durable_run import ANSWER, durable_agent, ran_in
from tests.support.kept import until
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import executions_of
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.questions import Question
from web.harness.runtime.run_info import RunInfo
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.errors import DecisionRefused, HarnessError, NotFound, SessionConflict
from web.harness.values.events import (
    ApprovalRequired,
    Event,
    RecoveryRequired,
    RunResult,
    ToolResult,
)

pytestmark = pytest.mark.anyio


EVERYWHERE = pytest.mark.parametrize("place", list(BACKENDS), indirect=True)
"""Of the few that run over all backends also in the quick suite; the others only over SQLite."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name == "sqlite" else [pytest.mark.full])
        for name in BACKENDS
    ]
)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BackendPlace]:
    place = await BACKENDS[request.param](tmp_path)
    yield place
    await place.aclose()


@pytest.fixture
async def one(place: BackendPlace, ran: Path) -> AsyncIterator[AgentRuntime]:
    async with AgentRuntime(durable_agent(ran), backend=await place.backend()) as runtime:
        yield runtime


@pytest.fixture
async def other(place: BackendPlace, ran: Path) -> AsyncIterator[AgentRuntime]:
    """As in another process: nothing in memory is shared."""
    async with AgentRuntime(durable_agent(ran), backend=await place.backend()) as runtime:
        yield runtime


@pytest.fixture
async def beside(one: AgentRuntime, ran: Path) -> AsyncIterator[AgentRuntime]:
    """In the same process: it hears of everything at once."""
    async with AgentRuntime(durable_agent(ran), backend=one.backend) as runtime:
        yield runtime


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "ran"


async def first_question(handle: RunHandle) -> Question:
    async with asyncio.timeout(20), aclosing(handle.stream()) as events:
        async for event in events:
            if isinstance(event.body, ApprovalRequired | RecoveryRequired):
                return event.body
    raise AssertionError("nothing was asked")


async def ended(handle: RunHandle) -> RunResult:
    return await asyncio.wait_for(handle.result(), 20)


async def all_events(handle: RunHandle, after: int = 0) -> list[Event]:
    async with asyncio.timeout(20), aclosing(handle.stream(after)) as events:
        return [event async for event in events]


@EVERYWHERE
async def test_a_run_ends_with_its_history_committed_once(one: AgentRuntime, ran: Path) -> None:
    handle = await one.submit("Do it.")
    await one.approve(await first_question(handle))
    result = await ended(handle)
    assert (result.status, result.text) == ("completed", ANSWER)
    kept = await session(one.backend)
    assert (kept.revision, kept.replayable) == (1, True)
    assert [message.role for message in kept.history] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    events = await all_events(handle)
    assert [event.number for event in events][-1] >= len(events)
    assert isinstance(events[-1].body, RunResult)
    assert sorted(name for name, _ in ran_in(ran)) == ["look-left", "look-right", "save"]
    with pytest.raises(NotFound):
        await one.resume()
    execution = await executions_of(await one.backend.open()).find(handle.run_id)
    assert execution is not None
    assert (execution.status, execution.result_status) == ("ended", "completed")


async def test_a_request_is_run_once_whoever_sends_it_again(
    one: AgentRuntime, other: AgentRuntime, ran: Path
) -> None:
    handle = await one.submit("Do it.", request_id="r")
    question = await first_question(handle)
    again, elsewhere = (
        await one.submit("Do it.", request_id="r"),
        await other.submit("Do it.", request_id="r"),
    )
    assert {again.run_id, elsewhere.run_id} == {handle.run_id}
    for runtime in (one, other):
        with pytest.raises(HarnessError) as refused:
            await runtime.submit("Do something else.", request_id="r")
        assert refused.value.code == "request_id_reused"
    await other.approve(question)
    assert await ended(elsewhere) == await ended(handle) == await ended(again)
    later = await other.submit("Do it.", request_id="r")
    assert await ended(later) == await ended(handle)
    assert len(ran_in(ran)) == 3
    assert (await session(one.backend)).revision == 1


@EVERYWHERE
async def test_a_question_is_answered_from_another_process_and_once(
    one: AgentRuntime, other: AgentRuntime
) -> None:
    handle = await one.submit("Do it.")
    question = await first_question(handle)

    async def asked() -> RunInfo | None:
        """How it stands, once the answer is whole: what it asks is told while it is coming."""
        info = await other.status()
        return info if info is not None and info.iterations == 2 else None

    info = await until(asked)
    assert (info.pending, info.is_here) == ((question,), False)
    assert info.status == "waiting"
    followed = await other.approve(question)
    with pytest.raises(DecisionRefused):
        await other.decline(question)
    with pytest.raises(DecisionRefused):
        await one.approve(f"{handle.run_id}-9-0-0123456789abcdef")
    assert (await ended(followed)).text == (await ended(handle)).text == ANSWER
    with pytest.raises(DecisionRefused):
        await other.approve(question)


async def test_arguments_that_a_person_edited_are_those_that_run(
    one: AgentRuntime, beside: AgentRuntime
) -> None:
    handle = await one.submit("Do it.")
    question = await first_question(handle)
    with pytest.raises(DecisionRefused) as refused:
        await beside.approve(question, arguments={"word": "changed"})
    assert refused.value.code == "invalid_arguments"
    await beside.approve(question, arguments={"text": "changed"})
    result = await ended(handle)
    assert result.text.startswith("All is done: left right changed")


async def test_a_call_that_is_declined_does_not_run(
    one: AgentRuntime, beside: AgentRuntime, ran: Path
) -> None:
    handle = await one.submit("Do it.")
    await beside.decline(await first_question(handle), "not today")
    result = await ended(handle)
    assert "not today" in result.text
    assert sorted(name for name, _ in ran_in(ran)) == ["look-left", "look-right"]


async def test_a_question_that_waited_while_no_process_ran_is_answered_and_the_run_goes_on(
    one: AgentRuntime, beside: AgentRuntime, ran: Path
) -> None:
    handle = await one.submit("Do it.")
    question = await first_question(handle)
    before = (await handle.events()).events
    await one.aclose()
    info = await beside.status()
    assert info is not None
    assert info.pending == (question,)
    goes_on = await beside.approve(question)
    assert (await ended(goes_on)).text == ANSWER
    after = await all_events(goes_on, before[-1].number)
    assert after[0].number == before[-1].number + 1
    # It is not put once more.
    assert not [event for event in after if isinstance(event.body, ApprovalRequired)]
    assert sorted(name for name, _ in ran_in(ran)) == ["look-left", "look-right", "save"]


async def test_a_run_that_was_paused_goes_on_when_it_is_resumed(
    one: AgentRuntime, beside: AgentRuntime, ran: Path
) -> None:
    handle = await one.submit("Do it.")
    question = await first_question(handle)
    await beside.pause()
    with pytest.raises(HarnessError) as paused:
        await ended(handle)
    assert paused.value.code == "run_paused"
    info = await beside.status()
    assert info is not None
    assert (info.status, info.pending) == ("paused", (question,))
    with pytest.raises(SessionConflict) as refused:
        await one.submit("Something else.")
    assert refused.value.code == "run_unfinished"
    goes_on = await beside.resume()
    await one.approve(question)
    assert (await ended(goes_on)).text == ANSWER
    assert len(ran_in(ran)) == 3


async def test_a_run_is_cancelled_by_another_runtime(
    one: AgentRuntime, beside: AgentRuntime, ran: Path
) -> None:
    handle = await one.submit("Do it.")
    await first_question(handle)
    followed = await beside.cancel()
    assert (await ended(followed)).status == (await ended(handle)).status == "cancelled"
    kept = await session(beside.backend)
    assert (kept.revision, kept.replayable) == (1, False)
    assert kept.history[-1].role == "tool"
    assert await beside.status() is None
    assert len(ran_in(ran)) == 2


async def test_a_run_that_was_cut_off_is_cancelled_without_being_resumed(
    one: AgentRuntime, place: BackendPlace, tmp_path: Path
) -> None:
    handle = await one.submit("Do it.")
    await first_question(handle)
    await one.aclose()
    # Whatever the agent is: this one would not fit the run.
    unlike = durable_agent(tmp_path / "ran", "idempotent")
    async with AgentRuntime(unlike, backend=await place.backend()) as runtime:
        assert (await ended(await runtime.cancel(wait=5))).status == "cancelled"
        assert await runtime.status() is None


async def test_one_of_two_processes_that_resume_a_run_wins(
    one: AgentRuntime, place: BackendPlace, ran: Path
) -> None:
    handle = await one.submit("Do it.")
    question = await first_question(handle)
    await one.aclose()
    runtimes = [AgentRuntime(durable_agent(ran), backend=await place.backend()) for _ in range(2)]
    tried = await asyncio.gather(
        *(runtime.resume() for runtime in runtimes), return_exceptions=True
    )
    won = [each for each in tried if isinstance(each, RunHandle)]
    lost = [each for each in tried if isinstance(each, SessionConflict)]
    assert (len(won), len(lost)) == (1, 1)
    assert lost[0].code == "session_conflict"
    await runtimes[0].approve(question)
    assert (await ended(won[0])).text == ANSWER
    for runtime in runtimes:
        await runtime.aclose()
    assert len(ran_in(ran)) == 3


async def test_an_agent_that_does_not_fit_the_run_does_nothing_with_it(
    one: AgentRuntime, place: BackendPlace, tmp_path: Path
) -> None:
    handle = await one.submit("Do it.")
    await first_question(handle)
    await one.aclose()
    unlike = durable_agent(tmp_path / "ran", "manual")
    unlike.tools.remove("save")
    backend = await place.backend()
    before = await executions_of(await backend.open()).find(handle.run_id)
    async with AgentRuntime(unlike, backend=backend) as runtime:
        with pytest.raises(HarnessError) as refused:
            await runtime.resume(wait=5)
    assert refused.value.code == "runtime_differs"
    assert "the tool save is missing" in refused.value.message
    assert "the tool look is manual to repeat, and was safe" in refused.value.message
    assert await executions_of(await backend.open()).find(handle.run_id) == before


CUT: dict[ReplayPolicy, list[str]] = {
    "safe": ["look-left", "look-right", "save", "save"],
    "idempotent": ["look-left", "look-right", "save", "save"],
    "manual": ["look-left", "look-right", "save"],
}
"""What has run in the end if `save` was cut off while it ran, and a person gave its result."""


@pytest.mark.parametrize("replay", CUT)
async def test_a_call_that_was_cut_off_follows_its_replay_policy(
    place: BackendPlace, tmp_path: Path, replay: ReplayPolicy
) -> None:
    ran, started = tmp_path / "ran", asyncio.Event()
    cut = durable_agent(ran, replay)
    _never_ends(cut, started)
    async with AgentRuntime(cut, backend=await place.backend()) as runtime:
        handle = await runtime.submit("Do it.")
        await runtime.approve(await first_question(handle))
        await asyncio.wait_for(started.wait(), 20)
        runtime.pause_seconds = 0
    fresh = durable_agent(ran, replay)
    async with AgentRuntime(fresh, backend=await place.backend()) as runtime:
        handle = await runtime.resume(wait=5)
        if replay == "manual":
            question = await first_recovery(handle)
            assert question.name == "save"
            assert [name for name, _ in ran_in(ran)].count("save") == 1
            await runtime.resolve_tool(question, "result", "kept")
        assert (await ended(handle)).text.startswith(ANSWER)
    assert sorted(name for name, _ in ran_in(ran)) == CUT[replay]
    assert len({key for name, key in ran_in(ran) if name == "save"}) == 1


@pytest.mark.parametrize(
    ("how", "status", "runs"), [("retry", "completed", 2), ("abort", "cancelled", 1)]
)
async def test_a_person_says_what_is_done_about_an_uncertain_call(
    place: BackendPlace, tmp_path: Path, how: Any, status: str, runs: int
) -> None:
    ran, started = tmp_path / "ran", asyncio.Event()
    cut = durable_agent(ran, "manual")
    _never_ends(cut, started)
    async with AgentRuntime(cut, backend=await place.backend()) as runtime:
        handle = await runtime.submit("Do it.")
        await runtime.approve(await first_question(handle))
        await asyncio.wait_for(started.wait(), 20)
        runtime.pause_seconds = 0
    fresh = durable_agent(ran, "manual")
    async with AgentRuntime(fresh, backend=await place.backend()) as runtime:
        handle = await runtime.resume(wait=5)
        question = await first_recovery(handle)
        with pytest.raises(DecisionRefused):
            await runtime.approve(question)
        await runtime.resolve_tool(question, how)
        result = await ended(handle)
        assert result.status == status
        if how == "abort":
            assert result.reason == "given_up"
            told = [e.body for e in await all_events(handle) if isinstance(e.body, ToolResult)]
            assert told[-1].is_error
    assert [name for name, _ in ran_in(ran)].count("save") == runs


async def first_recovery(handle: RunHandle) -> RecoveryRequired:
    async with asyncio.timeout(20), aclosing(handle.stream()) as events:
        async for event in events:
            if isinstance(event.body, RecoveryRequired):
                return event.body
    raise AssertionError("nothing was asked")


def _never_ends(agent: Any, started: asyncio.Event) -> None:
    """Makes `save` of an agent hang once it has run."""
    from dataclasses import replace

    tool = agent.tools.get("save")

    async def hangs(arguments: Any, context: Any) -> Any:
        await tool.handler(arguments, context)
        started.set()
        await asyncio.Event().wait()

    agent.tools.remove("save")
    agent.tools.add(replace(tool, handler=hangs))
