"""What every keeper of executions promises of answers and of the end: over both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.steps import (
    ANN,
    END,
    begun,
    message,
    numbers,
    round_of_calls,
    runs_of,
    state,
    submission,
    texts,
)
from tests.support.stores import SqlPlace
from web.harness.sessions.journal import Executions, GivenAnswer, Step
from web.harness.sessions.opening import Stores
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.errors import (
    DecisionRefused,
    HarnessError,
    LeaseLost,
)
from web.harness.values.json_form import NotSerialisable

pytestmark = pytest.mark.anyio


async def test_an_answer_is_given_once_from_any_server(
    place: SqlPlace, here: Stores, runs: Executions
) -> None:
    await begun(runs)
    there = runs_of(await place.backend())
    answers = [GivenAnswer("decision", "k", {"decision": word}) for word in ("allow", "deny") * 5]
    outcomes = await asyncio.gather(
        *(
            each.answer("r", answer)
            for each, answer in zip((runs, there) * 5, answers, strict=True)
        ),
        return_exceptions=True,
    )
    refused = [each for each in outcomes if each is not None]
    assert len(refused) == 9
    assert all(isinstance(each, DecisionRefused) for each in refused)
    given = answers[outcomes.index(None)]
    await there.answer(
        "r", GivenAnswer("input", "other", {"action": "accept", "content": {"a": "\x00 日"}})
    )
    assert await runs.answers("r") == [
        given,
        GivenAnswer("input", "other", {"action": "accept", "content": {"a": "\x00 日"}}),
    ]
    with pytest.raises(NotSerialisable):
        await runs.answer("r", GivenAnswer("cancel", "z", {"x": object()}))


async def test_an_answer_from_another_server_wakes_whoever_waits(
    place: SqlPlace, here: Stores, runs: Executions
) -> None:
    await begun(runs)
    there = runs_of(await place.backend())
    await place.heard_by_all()
    waiting = asyncio.ensure_future(runs.wait_for_answers("r", 0))
    other = asyncio.ensure_future(runs.wait_for_answers("r", 1))
    await runs.answers("r")  # By now they wait.
    assert not waiting.done()
    await there.answer("r", GivenAnswer("decision", "k", {"decision": "allow"}))
    await asyncio.wait_for(waiting, 10)
    assert not other.done()
    await runs.answer("r", GivenAnswer("pause", "p"))
    await asyncio.wait_for(other, 20)
    await asyncio.wait_for(runs.wait_for_answers("r", 1), 20)


async def test_waiting_for_answers_ends_with_the_run(place: SqlPlace, runs: Executions) -> None:
    for run_id in ("r", "s"):
        await begun(runs, run_id)
    there = runs_of(await place.backend())
    await place.heard_by_all()
    waiting = [asyncio.ensure_future(there.wait_for_answers(run_id, 0)) for run_id in ("r", "s")]
    await there.answers("r")
    await runs.end("r", 1, "completed")
    await runs.forget("s")
    await asyncio.wait_for(asyncio.gather(*waiting), 10)


async def test_a_run_that_has_ended_keeps_its_steps_and_takes_nothing_more(
    here: Stores, runs: Executions
) -> None:
    journal = await begun(runs)
    await runs.answer("r", GivenAnswer("decision", "k", {"decision": "allow"}))
    journal.write(Step("begun", messages=(message("u"),)), state(1))
    here.events.append("r", [END])
    await runs.end("r", 1, "completed")
    await runs.end("r", 1, "completed")
    found = await runs.find("r")
    assert found is not None
    assert (found.status, found.result_status, found.state) == ("ended", "completed", None)
    assert found.steps == len(await runs.steps("r")) == 1
    assert await runs.recorded("r") is None
    assert await runs.answers("r") == []
    with pytest.raises(DecisionRefused):
        await runs.answer("r", GivenAnswer("decision", "k", {"decision": "allow"}))
    with pytest.raises(HarnessError) as refused:
        await runs.begin("r")
    assert refused.value.code == "run_ended"
    journal.write(Step("model_call"), state(2))
    with pytest.raises(LeaseLost):
        await journal.settled()
    assert len(await runs.steps("r")) == 1
    # The same request is still known.
    assert (await runs.submit(submission("x", "request of r"))).submission.run_id == "r"


async def test_an_ended_run_keeps_what_a_person_was_asked_and_nothing_of_the_answer(
    runs: Executions,
) -> None:
    journal = await begun(runs)
    asked = replace(
        round_of_calls(1)[2].calls[0],
        input={"key": "k", "request": {"mode": "form"}, "state": "sealed"},
    )
    typed = {"action": "accept", "content": {"pin": "1234"}}
    answered = replace(asked, input={**(asked.input or {}), "answer": typed})
    journal.write(Step("input_asked", calls=(asked,)), state(1))
    journal.write(Step("input_answered", calls=(answered,)), state(1))
    journal.write(round_of_calls(1)[1], state(2))
    await journal.settled()
    assert (await runs.steps("r"))[0].step.calls == (asked,)
    await runs.end("r", 1, "completed")
    first, second, third = await runs.steps("r")
    for each in (first, second):
        assert each.step.calls[0].input == {"key": "k", "request": {"mode": "form"}}
    assert third.step == round_of_calls(1)[1]


async def test_a_run_whose_result_was_written_before_it_died_takes_steps_and_no_second_result(
    place: SqlPlace, here: Stores, runs: Executions
) -> None:
    journal = await begun(runs)
    here.events.append("r", [*texts("a"), END])
    journal.write(Step("answered"), state(1))
    await journal.settled()
    there = await place.backend()
    _, again = await runs_of(there).begin("r")
    there.events.append("r", [*texts("b"), END])
    again.write(Step("resumed"), state(2))
    await again.settled()
    assert await numbers(here) == [1, 2]
    assert [each.step.kind for each in await runs.steps("r")] == ["answered", "resumed"]
    await runs_of(there).end("r", 2, "completed")


async def test_the_end_of_a_run_and_the_commit_of_its_session_are_one(
    place: SqlPlace, here: Stores, runs: Executions
) -> None:
    await begun(runs)
    snapshot = SessionSnapshot((message("u"),), state={"n": 1})
    async with await here.sessions.acquire(ANN, "s") as lease:
        kept = await runs.end_with(lease, snapshot, "r", 1, "completed")
        assert kept == replace(snapshot, revision=1)
        assert await lease.read() == kept
    found = await runs.find("r")
    assert found is not None
    assert found.status == "ended"
    await begun(runs, "t")
    await runs_of(await place.backend()).begin("t")
    async with await here.sessions.acquire(ANN, "s") as lease:
        with pytest.raises(LeaseLost):
            await runs.end_with(lease, SessionSnapshot((message("v"),)), "t", 1, "completed")
    async with await here.sessions.acquire(ANN, "s", wait=20) as lease:
        assert await lease.read() == kept
    # Of another database one follows the other.
    other = await place.backend()
    async with await other.sessions.acquire(ANN, "s", wait=20) as lease:
        assert (await runs.end_with(lease, snapshot, "t", 2, "failed")).revision == 2
    assert await runs.unfinished() == []


async def test_a_forgotten_run_is_as_if_it_had_never_been(
    place: SqlPlace, here: Stores, runs: Executions
) -> None:
    for run_id, forget in (("r", here.events.forget), ("s", runs.forget)):
        journal = await begun(runs, run_id)
        journal.write(round_of_calls(1)[-1], state(1))
        await runs.answer(run_id, GivenAnswer("decision", "k", {"decision": "allow"}))
        await journal.settled()
        await forget(run_id)
        await forget(run_id)
        # Whoever still performs it brings nothing of it back.
        here.events.append(run_id, [*texts("late"), END])
        journal.write(Step("model_call"), state(2))
        with pytest.raises(LeaseLost):
            await journal.settled()
        assert await numbers(here, run_id) == []
        assert await runs.find(run_id) is None
        assert await runs.steps(run_id) == []
    for table in ("steps", "answers", "run_pictures", "executions"):
        (row,) = await place.run(f"SELECT count(*) FROM harness_{table}")
        assert row[0] == 0


async def test_runs_go_with_their_session(here: Stores, runs: Executions) -> None:
    async with await here.sessions.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot((message("u"),)))
    await begun(runs)
    here.events.append("r", texts("a"))
    await here.events.flush("r")
    await here.sessions.rename(ANN, "s", "new")
    (found,) = await runs.unfinished(ANN, "new")
    assert found.submission.run_id == "r"
    assert found.submission.session_id == "new"
    assert await numbers(here, "r") == [1]
    await here.sessions.delete(ANN, "new")
    assert await runs.find("r") is None
    # Nobody could find them any more, to forget them.
    assert await numbers(here, "r") == []
