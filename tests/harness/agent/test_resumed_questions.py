"""What a person is asked, and answers, over the end of a process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.harness.agent.lives import Lives, Person, World
from tests.support.scripted_provider import calls, says
from tests.support.written_run import WrittenRun
from web.harness.agent.agent import Agent
from web.harness.agent.questions import Answer
from web.harness.sessions.journal import Step
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    EventBody,
    RecoveryAnswered,
    RecoveryRequired,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.model import ModelRequest

pytestmark = pytest.mark.anyio


async def uncertain(how: Any) -> Lives:
    """A run whose manual tool was running as the process ended; a person says `how` to go on."""
    lives = Lives(World("manual"), person=Person(how=how))
    lives.ends_after("calls_started")
    assert await lives.live() is None
    return lives


async def asking(person: Person | None = None) -> Lives:
    """A run whose process ended while the question about its third call was open."""
    lives = Lives(person=person)
    answers, lives.person = lives.person, None
    lives.ends_after("answered", 2)
    assert await lives.live() is None
    lives.person = answers
    return lives


def results(lives: Lives) -> dict[str, ToolResult]:
    return {each.call_id: each for each in lives.written.of(ToolResult)}


async def test_the_result_that_a_person_gives_is_what_the_model_reads() -> None:
    lives = await uncertain("result")
    result = await lives.live()
    assert result is not None
    assert (result.status, result.text) == ("completed", "All done.")
    assert results(lives)["r-1-0"].text.startswith("given by hand\n")
    assert lives.world.times("act", begun=True) == 0
    (asked,) = lives.written.of(RecoveryRequired)
    assert (asked.key, asked.name, asked.arguments) == (
        "r-1-0-recovery-1",
        "act",
        {"what": "one"},
    )
    assert lives.written.of(RecoveryAnswered) == [RecoveryAnswered(asked.key, "r-1-0", "result")]


async def test_a_call_is_run_again_where_a_person_says_so() -> None:
    lives = await uncertain("retry")
    assert await lives.live() is not None
    assert lives.world.done.count(("act", "r-1-0")) == 1
    assert [each.call_id for each in lives.written.of(ToolCallStart)].count("r-1-0") == 2


async def test_a_call_that_dies_again_is_asked_about_again() -> None:
    lives = await uncertain("retry")
    # The safe tool beside it starts first.
    lives.ends_after("calls_started", 2)
    assert await lives.live() is None
    assert await lives.live() is not None
    asked = lives.written.of(RecoveryRequired)
    assert [each.key for each in asked] == ["r-1-0-recovery-1", "r-1-0-recovery-2"]


async def test_giving_up_ends_the_run_and_says_that_nobody_knows() -> None:
    lives = await uncertain("abort")
    result = await lives.live()
    assert result is not None
    assert (result.status, result.reason) == ("cancelled", "given_up")
    told = results(lives)["r-1-0"]
    assert told.is_error
    assert "nobody knows whether it ran" in told.text
    assert lives.world.times("act", begun=True) == 0


async def test_a_question_of_recovery_stays_the_same_until_it_is_answered() -> None:
    lives = await uncertain("result")
    person, lives.person = lives.person, None
    # The tool beside it runs again and is done; then the process ends once more.
    lives.ends_after("call_settled")
    assert await lives.live() is None
    lives.person = person
    assert await lives.live() is not None
    (asked,) = lives.written.of(RecoveryRequired)
    assert person is not None
    assert person.resolved == [asked.key]


async def test_a_result_given_by_a_person_is_not_asked_for_twice() -> None:
    lives = await uncertain("result")
    lives.ends_after("resolved")
    assert await lives.live() is None
    result = await lives.live()
    assert result is not None
    assert result.text == "All done."
    assert len(lives.written.of(RecoveryRequired)) == 1
    assert results(lives)["r-1-0"].text.startswith("given by hand\n")


async def test_answers_about_a_call_are_checked() -> None:
    lives = await uncertain("result")
    lives.person = None
    told: list[str] = []
    key: Any = "r-1-0-recovery-1"

    def answer(agent: Agent, entry: EventBody | Step) -> None:
        if not (isinstance(entry, Step) and entry.kind == "resumed"):
            return
        for wrong in (("r-1-0-recovery-2", "retry"), (key, "maybe")):
            with pytest.raises(DecisionRefused) as refused:
                agent.resolve(*wrong)
            told.append(refused.value.message)
        agent.resolve(key, "result", "")
        with pytest.raises(DecisionRefused, match="already"):
            agent.resolve(key, "retry")
        lives.person = Person()

    lives.before = answer
    assert await lives.live() is not None
    assert told == ["This question is not open.", '"maybe" is no answer to whether a call ran.']
    assert results(lives)["r-1-0"].text == "The person says that it ran, and gave no result."


async def test_an_approval_waits_over_the_end_of_the_process_and_is_not_asked_anew() -> None:
    lives = await asking()
    result = await lives.live()
    assert result is not None
    assert result.text == "All done."
    assert len(lives.written.of(ApprovalRequired)) == 1
    assert lives.world.times("save") == 1


@pytest.mark.parametrize("again", [False, True])
async def test_arguments_that_a_person_edited_are_those_it_runs_with(again: bool) -> None:
    lives = await asking(Person(arguments={"what": "else"}))
    if again:
        lives.ends_after("decided")
        assert await lives.live() is None
    assert await lives.live() is not None
    told = results(lives)["r-3-0"]
    assert told.text.startswith("save else\nThe person changed the arguments")
    assert lives.written.of(ToolCallStart)[-1].edited


@pytest.mark.parametrize("again", [False, True])
async def test_a_call_that_a_person_refused_stays_refused(again: bool) -> None:
    lives = await asking(Person("deny"))
    if again:
        lives.ends_after("calls_started")
        assert await lives.live() is None
    assert await lives.live() is not None
    told = results(lives)["r-3-0"]
    assert (told.text, told.decision) == ("The person refused this call.", "deny")
    assert lives.world.times("save", begun=True) == 0
    assert not lives.written.of(RecoveryRequired)


def saves(request: ModelRequest) -> list[Any]:
    count = sum(message.role == "tool" for message in request.messages)
    return calls(("save", {"what": str(count)})) if count < 3 else says("Saved.")


async def test_a_tool_that_was_allowed_for_the_whole_chat_asks_no_more() -> None:
    lives = Lives(person=Person("allow_chat"), script=saves)
    lives.ends_after("answered", 2)
    assert await lives.live() is None
    lives.person = None
    result = await lives.live()
    assert result is not None
    assert result.text == "Saved."
    assert lives.agent is not None
    assert lives.agent.permissions.grants == ["save"]
    assert lives.world.times("save") == 3
    assert len(lives.written.of(ApprovalRequired)) == 1


async def test_a_grant_that_its_keeper_took_back_does_not_return_with_the_run() -> None:
    lives = Lives(person=Person("allow_chat"), script=saves, grants=())
    lives.ends_after("call_settled")
    assert await lives.live() is None
    assert await lives.live() is not None
    assert len(lives.written.of(ApprovalRequired)) == 2


async def test_a_question_that_was_taken_back_has_another_key_when_it_is_put_again() -> None:
    lives = Lives()
    lives.person = None

    def cut(agent: Agent, entry: EventBody | Step) -> None:
        if isinstance(entry, ApprovalRequired):
            lives.written.over.set()
            lives.before = lambda agent, entry: None

    lives.before = cut
    assert await lives.live() is None
    lives.person = Person()
    assert await lives.live() is not None
    first, second = lives.written.of(ApprovalRequired)
    assert (first.call_id, first.arguments) == (second.call_id, second.arguments)
    assert first.key != second.key
    assert AttemptReset("r-3", 1, lives.written.of(AttemptReset)[0].reason) in lives.written.events


async def test_an_approver_and_the_keeper_of_previews_are_told_of_open_questions_again() -> None:
    lives = await asking()
    lives.person = None
    kept: list[ApprovalRequired] = []

    async def approver(question: ApprovalRequired) -> Answer:
        await asyncio.sleep(0)
        return Answer("allow")

    result = await lives.live(approver=approver, keep_question=kept.append)
    assert result is not None
    assert result.text == "All done."
    assert [each.key for each in kept] == [each.key for each in lives.written.of(ApprovalRequired)]


async def test_what_was_asked_can_be_answered_as_soon_as_the_run_goes_on() -> None:
    lives = await asking()
    lives.person = None
    (asked,) = lives.written.of(ApprovalRequired)
    written = WrittenRun(lives.written.entries)
    agent = Agent(provider=lives.model, tools=lives.world.tools(written))
    recorded = written.recorded
    performing = asyncio.ensure_future(
        agent.perform("", run_id="r", emit=written.emit, journal=written, recorded=recorded)
    )
    await asyncio.sleep(0)
    agent.decide(asked.key, "allow")
    async with asyncio.timeout(20):
        assert (await performing).text == "All done."
