"""A run that stood still: what its page says of the time, of its questions, and of what is kept."""

from __future__ import annotations

import pytest

from tests.support.transcript_page import C, M, Page
from web.chats.parts.halted_kinds import Halted
from web.chats.parts.kinds import Foot, Notice
from web.chats.transcript.run_words import INTERRUPTED, LEFT, RESUMED, UNPAUSED
from web.harness.agent.run import INTERRUPTED as CUT_OFF, PAUSED
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    EventBody,
    InputAnswered,
    InputRequired,
    NestedEvent,
    Note,
    RecoveryAnswered,
    RecoveryRequired,
    RunResult,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
)

ASKS = ApprovalRequired("k", C, "add", {}, M)
STARTED = ToolCallStart(C, "add", {}, M, decision="allow")
GAVE = ToolResult(C, "add", "3")
OTHER = ToolCallStart("r-1-1", "look", {}, M)
UNCERTAIN = RecoveryRequired("k", C, "add", {})
DONE = RunResult("completed", "Done.")


def times(*happened: tuple[float, EventBody]) -> tuple[float, float]:
    """Seconds of work, and others, of a run that begins at 0, as its foot has them."""
    page = Page()
    for at, body in happened:
        page.happens(body, at=100.0 + at)
    (foot,) = (data for data in page.log() if isinstance(data, Foot))
    return round(foot.seconds, 3), round(foot.still, 3)


def test_time_in_which_a_person_is_waited_for_is_no_work() -> None:
    answered = (902, STARTED), (903, GAVE), (904, DONE)
    assert times((2, ASKS), *answered) == (4, 900)
    # It was written by the model just before.
    assert times((1, ToolCallDelta(C, "add", "{}", M)), (2, ASKS), *answered) == (4, 900)
    asks = InputRequired("i", C, {"message": "?"})
    given = (502, InputAnswered("i", C, "accept")), (503, GAVE), (504, DONE)
    assert times((1, STARTED), (2, asks), *given) == (4, 500)


def test_while_another_tool_runs_a_question_holds_nothing_up() -> None:
    looked = (62, ToolResult("r-1-1", "look", "found"))
    happened = (2, ASKS), (2, OTHER), looked, (902, STARTED), (903, GAVE), (904, DONE)
    assert times(*happened) == (64, 840)


def test_a_sub_agent_that_asks_has_the_run_wait_too() -> None:
    inner = f"{C}-m-1-0"

    def nested(body: EventBody) -> EventBody:
        return NestedEvent(C, body)

    assert times(
        (1, ToolCallStart(C, "delegate", {}, M)),
        (2, nested(ApprovalRequired("k", inner, "pay", {}, f"{C}-m-1"))),
        (302, nested(ToolCallStart(inner, "pay", {}, f"{C}-m-1", decision="allow"))),
        (303, nested(ToolResult(inner, "pay", "paid"))),
        (304, nested(DONE)),
        (304, ToolResult(C, "delegate", "Paid.")),
        (305, DONE),
    ) == (5, 300)


@pytest.mark.parametrize(
    "first",
    [Note(RESUMED), Note(UNPAUSED), AttemptReset(M, 1, CUT_OFF), UNCERTAIN],
)
def test_time_in_which_nobody_performed_it_is_no_work(first: EventBody) -> None:
    assert times((3, STARTED), (7203, first), (7204, GAVE), (7205, DONE))[0] <= 5
    assert times((3, TextDelta("a", M)), (7203, Note(RESUMED)), (7205, DONE)) == (5, 7200)


def test_what_was_left_ended_when_it_was_cut_off() -> None:
    end = RunResult("failed", "", reason=INTERRUPTED.code)
    assert times((3, TextDelta("a", M)), (7203, INTERRUPTED), (7203, end)) == (3, 7200)
    end = RunResult("cancelled", "", reason=LEFT)
    assert times((3, AttemptReset(M, 1, PAUSED)), (7203, end)) == (3, 7200)


def test_a_clock_that_was_set_back_takes_no_time_away() -> None:
    assert times((5, TextDelta("a", M)), (2, Note(RESUMED)), (6, DONE)) == (6, 0)


def test_a_question_that_was_taken_back_is_waited_for_no_more() -> None:
    assert times((2, ASKS), (3, AttemptReset(M, 1, CUT_OFF)), (9, DONE)) == (8, 1)


def test_a_run_that_stood_still_twice_at_the_same_place_says_so_once() -> None:
    half = TextDelta("Half of it", M)
    reset, resumed = AttemptReset(M, 1, CUT_OFF), Note(RESUMED)
    page = Page().happens(half, resumed, reset, half, resumed, reset, TextDelta("All", M))
    assert [data.text for data in page.log() if isinstance(data, Notice)] == [RESUMED]
    assert page.text(f"a-{M}") == "All"
    # Where something stands between, each has its line.
    page.happens(resumed, AttemptReset("r-2", 1, CUT_OFF), Note(UNPAUSED), Note(UNPAUSED))
    told = [data.text for data in page.log() if isinstance(data, Notice)]
    assert told == [RESUMED, RESUMED, UNPAUSED]


@pytest.mark.parametrize("reason", ["stopped", LEFT])
@pytest.mark.parametrize(
    ("happened", "kept"),
    [
        ([], ""),
        ([TextDelta("Half", M)], "What was written so far is kept."),
        ([STARTED, GAVE], "What was done so far is kept."),
        ([STARTED], "What was done so far is kept."),
        ([TextDelta("Half", M), AttemptReset(M, 1, PAUSED)], "what was half written is not."),
        ([TextDelta("Half", M), AttemptReset(M, 1, "busy")], "what was half written is not."),
        (
            [TextDelta("Half", M), AttemptReset(M, 1, PAUSED), Note(UNPAUSED), TextDelta("A", M)],
            "What was written so far is kept.",
        ),
    ],
)
def test_who_ends_a_run_is_told_what_is_kept(
    happened: list[EventBody], kept: str, reason: str
) -> None:
    page = Page().happens(*happened, RunResult("cancelled", "", reason=reason))
    *_, words = (data.text for data in page.log() if isinstance(data, Notice))
    assert words.startswith("Left while it was paused." if reason == LEFT else "Stopped")
    assert words.endswith(kept)
    if not kept:
        assert "kept" not in words


def test_a_card_says_how_many_questions_are_open_and_the_status_names_them() -> None:
    page = Page().happens(ASKS)
    page.transcript.halt("r", "stopped")
    (card,) = (data for data in page.log() if isinstance(data, Halted))
    assert card.questions == 1
    assert page.transcript.status.text == "Needs your answer: add"
    page = Page().happens(STARTED, UNCERTAIN, RecoveryAnswered("k", C, "result"), GAVE)
    page.transcript.halt("r", "stopped")
    (card,) = (data for data in page.log() if isinstance(data, Halted))
    assert card.questions == 0
    assert "shall it go on" in page.transcript.status.text
