"""Which questions of a run are open is read from its events, wherever it runs."""

from __future__ import annotations

from web.harness.runtime.questions import Unanswered
from web.harness.sessions.journal import GivenAnswer
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    Event,
    EventBody,
    InputAnswered,
    InputRequired,
    NestedEvent,
    RecoveryAnswered,
    RecoveryRequired,
    RunResult,
    ToolCallStart,
    ToolResult,
)

APPROVAL = ApprovalRequired("c-1", "c", "save", {}, "m")
OTHER = ApprovalRequired("d-1", "d", "save", {}, "m")
INPUT = InputRequired("c-in1", "c", {"mode": "form"})
RECOVERY = RecoveryRequired("c-recovery-1", "c", "save", {})
START = ToolCallStart("c", "save", {}, "m")
RESULT = ToolResult("c", "save", "done")
WITHIN = NestedEvent("c", ApprovalRequired("c-0-1", "c-0", "send", {}, "c-m"))


def open_after(*bodies: EventBody, answers: tuple[str, ...] = ()) -> list[str]:
    unanswered = Unanswered()
    unanswered.take(Event(number, 0.0, body) for number, body in enumerate(bodies, 1))
    unanswered.answered([GivenAnswer("decision", key) for key in answers])
    return [question.key for question in unanswered.questions]


def test_a_question_is_open_until_its_call_starts_or_has_a_result() -> None:
    assert open_after(APPROVAL, OTHER) == ["c-1", "d-1"]
    assert open_after(APPROVAL, OTHER, START) == ["d-1"]
    assert open_after(APPROVAL, OTHER, RESULT) == ["d-1"]


def test_a_question_that_has_an_answer_is_not_open_though_the_run_has_not_heard_of_it() -> None:
    assert open_after(APPROVAL, OTHER, answers=("c-1",)) == ["d-1"]


def test_what_was_taken_back_or_is_over_asks_nothing() -> None:
    assert open_after(APPROVAL, AttemptReset("m", 1, "died")) == []
    assert open_after(APPROVAL, AttemptReset("n", 1, "died")) == ["c-1"]
    assert open_after(APPROVAL, INPUT, RECOVERY, RunResult("cancelled", "")) == []


def test_what_a_tool_asks_for_is_open_until_it_was_given_or_the_call_ends() -> None:
    assert open_after(START, INPUT) == ["c-in1"]
    assert open_after(START, INPUT, InputAnswered("c-in1", "c", "accept")) == []
    assert open_after(START, INPUT, RESULT) == []
    # A call that asked with a state is started anew, and its question is the same.
    assert open_after(START, INPUT, START) == ["c-in1"]


def test_of_a_call_that_nobody_knows_of_only_that_is_asked() -> None:
    assert open_after(START, INPUT, WITHIN, RECOVERY) == ["c-recovery-1"]
    assert open_after(START, RECOVERY, RecoveryAnswered("c-recovery-1", "c", "retry")) == []
    assert open_after(START, RECOVERY, START) == []


def test_a_question_of_a_sub_agent_ends_with_the_call_around_it() -> None:
    assert open_after(START, WITHIN) == ["c-0-1"]
    assert (
        open_after(START, WITHIN, NestedEvent("c", ToolCallStart("c-0", "send", {}, "c-m"))) == []
    )
    assert open_after(START, WITHIN, RESULT) == []
    # Its own end is not that of the run.
    assert open_after(APPROVAL, NestedEvent("d", RunResult("completed", ""))) == ["c-1"]
