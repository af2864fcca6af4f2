"""What every keeper of executions promises: one body over SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.steps import (
    ANN,
    BOB,
    END,
    PICTURE,
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
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import Executions, GivenAnswer, Step
from web.harness.sessions.opening import Stores
from web.harness.values.errors import (
    HarnessError,
    LeaseLost,
    NotFound,
    StoreError,
)
from web.harness.values.events import Event
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import ImageBlock, ToolUseBlock

pytestmark = pytest.mark.anyio


async def test_a_message_is_taken_once_whoever_sends_it_again(
    place: SqlPlace, runs: Executions
) -> None:
    there = runs_of(await place.backend())
    taken = await asyncio.gather(*(each.submit(submission()) for each in (runs, there) * 5))
    assert {each.submission.run_id for each in taken} == {"r"}
    again = await there.submit(submission("other run"))
    assert replace(again, changed_at=taken[0].changed_at) == taken[0]
    assert again.submission == submission()
    assert again.submission.attachments[0].data == PICTURE.data  # type: ignore[union-attr]
    # Whoever has it from a journal has of a picture its name alone.
    named = replace(PICTURE, data=b"", length=len(PICTURE.data))
    others = again.submission.attachments[1:]
    heard = await there.submit(replace(submission(), attachments=(named, *others)))
    assert heard.submission == submission()
    assert (again.status, again.fence, again.steps, again.state) == ("submitted", 0, 0, None)
    assert again.created_at > 1_000_000_000


async def test_a_message_is_withdrawn_until_somebody_is_about_to_begin_with_it(
    place: SqlPlace, runs: Executions
) -> None:
    there = runs_of(await place.backend())
    await runs.submit(submission())
    await there.submit(submission("other run"))
    assert await there.withdraw("r")
    assert not await runs.withdraw("r")
    assert await runs.find("r") is None
    await runs.submit(submission())
    await there.set_status("r", "running", 0)
    assert not await runs.withdraw("r")
    await runs.submit(submission("t", "another request"))
    await there.begin("t")
    assert not await runs.withdraw("t")
    assert [each.submission.run_id for each in await there.unfinished()] == ["r", "t"]


async def test_messages_of_a_session_keep_the_order_they_were_taken_in(runs: Executions) -> None:
    names = ["9", "b", "1", "5", "a", "0"]
    for name in names:
        await runs.submit(submission(name, name))
    assert [each.submission.run_id for each in await runs.unfinished(ANN, "s")] == names


async def test_the_same_request_for_another_message_is_refused(runs: Executions) -> None:
    await runs.submit(submission())
    others = [
        submission("other", text="else"),
        replace(submission("other"), attachments=()),
        submission("r", "another request"),
    ]
    for other in others:
        with pytest.raises(HarnessError) as refused:
            await runs.submit(other)
        assert refused.value.code == "request_id_reused"
    found = await runs.find("r")
    assert found is not None
    assert found.submission == submission()
    # In another session it is another request.
    elsewhere = await runs.submit(submission("other", session_id="t"))
    assert elsewhere.submission.run_id == "other"


async def test_what_was_never_submitted_is_not_there(runs: Executions) -> None:
    for run_id in ("r", "\x00", "\ud800"):
        assert await runs.find(run_id) is None
    assert await runs.recorded("r") is None
    assert await runs.steps("r") == []
    assert await runs.answers("r") == []
    for act in (
        lambda: runs.begin("r"),
        lambda: runs.set_status("r", "paused", 1),
        lambda: runs.answer("r", GivenAnswer("cancel", "k")),
        lambda: runs.end("r", 1, "completed"),
    ):
        with pytest.raises(NotFound):
            await act()
    await asyncio.wait_for(runs.wait_for_answers("r", 0), 20)
    await runs.forget("r")


async def test_unfinished_runs_are_found_by_whom_and_where_they_belong_to(
    runs: Executions,
) -> None:
    for run_id, session_id in (("a", "s"), ("b", "t"), ("c", "s")):
        await runs.submit(submission(run_id, run_id, session_id=session_id))
    await runs.submit(replace(submission("d", "d"), identity=BOB))
    execution, _ = await runs.begin("a")
    await runs.end("a", execution.fence, "completed")

    async def found(identity: HarnessIdentity | None = None, session: str | None = None) -> str:
        return "".join(each.submission.run_id for each in await runs.unfinished(identity, session))

    assert await found() == "bcd"
    assert await found(ANN) == "bc"
    assert await found(ANN, "s") == "c"
    assert await found(BOB, "s") == "d"
    assert await found(BOB, "t") == ""


async def test_steps_come_back_equal_and_in_order_with_the_events_before_them(
    here: Stores, runs: Executions
) -> None:
    journal = await begun(runs)
    written: list[Step] = [Step("begun", messages=(message("u"),)), *round_of_calls(1)]
    for at, step in enumerate(written):
        here.events.append("r", texts("x", "y"))
        journal.write(step, state(at))
    await journal.settled()
    steps = await runs.steps("r")
    assert [each.step for each in steps] == written
    assert [each.number for each in steps] == [1, 2, 3, 4, 5]
    assert [each.cursor for each in steps] == [2, 4, 6, 8, 10]
    assert {each.at for each in steps} == {12.5}
    assert [each.number for each in await runs.steps("r", 2, 2)] == [3, 4]
    assert await runs.steps("r", 5) == []
    picture = steps[-1].step.messages[0].content[0].content[1]  # type: ignore[union-attr]
    assert isinstance(picture, ImageBlock)
    assert picture.data == PICTURE.data
    assert await numbers(here) == list(range(1, 11))
    found = await runs.find("r")
    assert found is not None
    assert (found.steps, found.status, found.state) == (5, "running", state(4))


async def test_what_was_recorded_is_what_goes_on(runs: Executions) -> None:
    journal = await begun(runs)
    assert await runs.recorded("r") is None
    first, second = round_of_calls(1), round_of_calls(2)
    short = (message("summary"), message("kept"))
    steps = [
        Step("begun", messages=(message("u"),)),
        *first,
        Step("condensed", replaced=short),
        *second,
    ]
    for at, step in enumerate(steps):
        journal.write(step, state(at))
    await journal.settled()
    recorded = await runs.recorded("r")
    assert recorded is not None
    assert recorded.state == state(len(steps) - 1)
    assert recorded.replaced == short
    assert [each.id for each in recorded.messages] == ["a2", "t2"]
    assert list(recorded.calls) == ["c2"]
    assert recorded.calls["c2"] == second[-1].calls[0]
    journal.write(Step("condensed", replaced=()), state(99))
    await journal.settled()
    recorded = await runs.recorded("r")
    assert recorded is not None
    assert (recorded.replaced, recorded.messages) == ((), ())
    assert list(recorded.calls) == ["c2"]


async def test_who_had_a_run_before_writes_neither_steps_nor_events(
    place: SqlPlace, here: Stores, runs: Executions
) -> None:
    told: list[str] = []
    told_of_other = asyncio.Event()

    def listener(_: str, events: Sequence[Event]) -> None:
        told.extend(getattr(event.body, "text", "") for event in events)
        if "b" in told:
            told_of_other.set()

    there = await place.backend(listener)
    late = await begun(runs_of(there))
    there.events.append("r", texts("a"))
    late.write(Step("begun"), state(0))
    await late.settled()
    execution, journal = await runs.begin("r")
    assert (execution.fence, execution.steps, execution.state) == (2, 1, state(0))
    here.events.append("r", texts("b"))
    journal.write(Step("resumed"), state(1))
    await journal.settled()
    there.events.append("r", texts("late"))
    late.write(Step("model_call"), state(66))
    with pytest.raises(LeaseLost):
        await late.settled()
    there.events.append("r", [*texts("later"), END])
    late.write(Step("model_call"), state(77))
    with pytest.raises(LeaseLost):
        await late.settled()
    assert [each.step.kind for each in await runs.steps("r")] == ["begun", "resumed"]
    assert await numbers(here) == [1, 2]
    found = await runs.find("r")
    assert found is not None
    assert found.state == state(1)
    with pytest.raises(LeaseLost):
        await runs_of(there).set_status("r", "paused", 1)
    with pytest.raises(LeaseLost):
        await runs_of(there).end("r", 1, "completed")
    # What the other writes is told here too.
    await asyncio.wait_for(told_of_other.wait(), 10)
    assert told == ["a", "b"]


async def test_who_has_begun_it_again_in_the_same_process_goes_on_alone(
    here: Stores, runs: Executions
) -> None:
    late = await begun(runs)
    late.write(Step("begun"), state(0))
    _, journal = await runs.begin("r")
    late.write(Step("model_call"), state(66))
    here.events.append("r", texts("a"))
    journal.write(Step("resumed"), state(1))
    await journal.settled()
    with pytest.raises(LeaseLost):
        await late.settled()
    assert [each.step.kind for each in await runs.steps("r")] == ["begun", "resumed"]
    assert await numbers(here) == [1]


async def test_a_status_is_set_by_whoever_has_the_run(runs: Executions) -> None:
    await begun(runs)
    await runs.set_status("r", "paused", 1)
    found = await runs.find("r")
    assert found is not None
    assert (found.status, found.fence) == ("paused", 1)
    execution, _ = await runs.begin("r")
    assert (execution.status, execution.fence) == ("running", 2)


async def test_a_step_that_json_cannot_hold_is_refused_and_the_run_is_as_before(
    runs: Executions,
) -> None:
    journal = await begun(runs)
    (_, answered, started, _) = round_of_calls(1)
    use = ToolUseBlock("c1", "look", {"x": object()})
    with pytest.raises(NotSerialisable, match="call c1"):
        journal.write(replace(started, calls=(replace(started.calls[0], use=use),)), state(1))
    journal.write(answered, state(2))
    await journal.settled()
    assert [each.step for each in await runs.steps("r")] == [answered]


async def test_what_a_step_holds_is_what_it_held_when_it_was_written(runs: Executions) -> None:
    journal = await begun(runs)
    use = ToolUseBlock("c1", "look", {"list": [1]})
    record = replace(round_of_calls(1)[2].calls[0], use=use)
    journal.write(Step("calls_started", calls=(record,)), state(1))
    use.arguments["list"].append(2)
    await journal.settled()
    (found,) = await runs.steps("r")
    assert found.step.calls[0].use.arguments == {"list": [1]}


async def test_a_journal_of_a_closed_store_does_not_say_that_it_is_settled(
    here: Stores, runs: Executions
) -> None:
    journal = await begun(runs)
    journal.write(Step("begun"), state(1))
    await here.events.aclose()
    journal.write(Step("model_call"), state(2))
    with pytest.raises(StoreError) as closed:
        await journal.settled()
    assert closed.value.code == "store_closed"
    assert [each.step.kind for each in await runs.steps("r")] == ["begun"]


async def test_a_large_text_is_written_whole(runs: Executions) -> None:
    journal = await begun(runs)
    large = message("u", "ä\x00" * 300_000)
    journal.write(Step("begun", messages=(large,)), state(1))
    await journal.settled()
    recorded = await runs.recorded("r")
    assert recorded is not None
    assert recorded.messages == (large,)
