"""What the page shows of a run that was cut off: nothing twice, nothing that is not known."""

from __future__ import annotations

import pytest

from tests.support.transcript_page import C, M, Page
from web.chats.parts.halted_kinds import Halted, Recovery
from web.chats.parts.kinds import Answer, Call, CallStatus, Foot, Notice, PartData
from web.chats.transcript.asked import AskedQuestions, find_asked, find_uncertain
from web.chats.transcript.transcript import ALONE, UNREACHABLE
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    EventBody,
    InputRequired,
    NestedEvent,
    Note,
    RecoveryAnswered,
    RecoveryRequired,
    Resolution,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    ToolResult,
    UsageReport,
    Waiting,
)
from web.harness.values.usage import Usage

KEY = f"{C}-recovery-1"
STARTED = ToolCallStart(C, "pay", {"sum": 5}, M)
UNCERTAIN = RecoveryRequired(KEY, C, "pay", {"sum": 5})


def notices(page: Page) -> list[str]:
    return [data.text for data in page.log() if isinstance(data, Notice)]


def halted(page: Page) -> list[Halted]:
    return [data for data in page.log() if isinstance(data, Halted)]


def test_an_uncertain_call_asks_and_the_chat_waits_for_the_person() -> None:
    page = Page().happens(STARTED, ToolProgress(C, 1, 2), UNCERTAIN)
    call = page.call()
    assert (call.status, call.recovery, call.waits) == ("unknown", Recovery(KEY), True)
    assert (call.arguments, call.progress) == ({"sum": 5}, None)
    status = page.transcript.status
    assert (status.state, status.questions) == ("asking", 1)
    assert "pay" in status.text
    # Told twice it is the same question.
    page.happens(UNCERTAIN)
    assert page.call() == call


def test_a_run_that_is_left_to_workers_says_so_while_none_is_there() -> None:
    page = Page().happens(TextDelta(M, "The first half. "))
    for _ in range(2):
        page.transcript.stand_alone("r", "worker")
    assert notices(page) == ["No worker is there; the answer goes on when one is."]
    status = page.transcript.status
    assert (status.state, status.text) == ("working", "Waiting for a worker")
    # One is there again: before anything is heard of it, or with what it says.
    page.transcript.stand_alone("r", "")
    assert (notices(page), page.transcript.status.text) == ([], "Working")
    page.transcript.stand_alone("r", "worker")
    page.happens(TextDelta(M, "The second."))
    assert (notices(page), page.transcript.status.text) == ([], "Writing")
    page.transcript.stand_alone("r", "worker")
    page.happens(RunResult("cancelled", "", Usage(), None, reason="stopped"))
    assert ALONE not in notices(page)
    page.transcript.stand_alone("r", "worker")
    assert (ALONE not in notices(page), page.transcript.status.state) == (True, "idle")


def test_while_temporal_does_not_answer_the_page_says_so_whatever_is_still_heard() -> None:
    page = Page().happens(TextDelta(M, "The first half. "))
    page.transcript.stand_alone("r", "temporal")
    page.happens(TextDelta(M, "The second."))
    assert (notices(page), page.transcript.missing("r")) == ([UNREACHABLE], "temporal")
    # It is there again, and a worker is not.
    page.transcript.stand_alone("r", "worker")
    assert notices(page) == [ALONE]
    page.transcript.stand_alone("r", "temporal")
    page.happens(RunResult("completed", "All.", Usage(), None))
    assert (UNREACHABLE not in notices(page), page.transcript.missing("r")) == (True, "")


def test_who_has_to_answer_is_asked_also_while_no_worker_is_there() -> None:
    page = Page().happens(STARTED, UNCERTAIN)
    page.transcript.stand_alone("r", "worker")
    assert notices(page) == [ALONE]
    assert "Needs your answer" in page.transcript.status.text
    page.transcript.halt("r", "paused")
    assert notices(page) == []
    status = page.transcript.status
    assert (status.state, status.text) == ("paused", "Paused")


def test_a_run_that_goes_on_and_only_waits_for_its_person_stands_still_no_more() -> None:
    page = Page().happens(STARTED, UNCERTAIN)
    page.transcript.halt("r", "stopped")
    assert len(halted(page)) == 1
    page.transcript.go_on("r")
    assert halted(page) == []
    assert not page.transcript.halted
    status = page.transcript.status
    assert (status.state, status.questions) == ("asking", 1)


def test_what_it_asked_for_before_it_was_cut_off_is_not_open_any_more() -> None:
    page = Page().happens(STARTED, InputRequired("k", C, {"message": "?"}), UNCERTAIN)
    assert page.call().inputs == ()


@pytest.mark.parametrize(
    ("how", "following", "status"),
    [
        ("result", ToolResult(C, "pay", "paid"), "done"),
        ("retry", STARTED, "running"),
        ("abort", ToolResult(C, "pay", "Nobody knows.", is_error=True), "unknown"),
    ],
)
def test_an_answer_closes_the_question_and_is_remembered(
    how: Resolution, following: EventBody, status: CallStatus
) -> None:
    page = Page().happens(STARTED, UNCERTAIN, RecoveryAnswered(KEY, C, how))
    assert (page.call().recovery, page.call().resolved) == (None, how)
    assert page.transcript.status.state == "working"
    page.happens(following)
    assert (page.call().status, page.call().resolved) == (status, how)


def test_a_run_that_is_stopped_leaves_an_uncertain_call_unknown() -> None:
    withdrawn = RecoveryAnswered(KEY, C, "withdrawn")
    page = Page().happens(
        STARTED, UNCERTAIN, withdrawn, ToolResult(C, "pay", "Stopped.", is_error=True, stopped=True)
    )
    assert (page.call().status, page.call().recovery) == ("unknown", None)
    page = Page().happens(STARTED, UNCERTAIN, RunResult("cancelled", "", reason="given_up"))
    assert (page.call().status, page.call().recovery) == ("unknown", None)
    assert notices(page) == [
        "Given up, as it is not known if a tool ran. What was done before is kept."
    ]


def test_all_of_an_uncertain_calls_arguments_can_be_looked_at_while_it_asks() -> None:
    page = Page().happens(STARTED, UNCERTAIN)
    asked = find_asked(page.channel, AskedQuestions(), KEY)
    assert asked is not None
    assert (asked.state, asked.question.arguments, asked.whole) == ("unknown", {"sum": 5}, True)
    page.happens(RecoveryAnswered(KEY, C, "retry"), STARTED)
    assert find_uncertain(page.channel, KEY) is None
    assert find_asked(page.channel, AskedQuestions(), KEY) is None


def test_a_reset_takes_back_all_of_the_attempt_and_nothing_of_the_one_before() -> None:
    before: list[PartData] = (
        Page().happens(TextDelta("First.", M), UsageReport(M, Usage(), "m")).log()
    )
    page = Page().happens(TextDelta("First.", M), UsageReport(M, Usage(), "m"))
    dead, call = "r-2", "r-2-0"
    page.happens(
        ThinkingDelta("hm", dead),
        TextDelta("Half of an ans", dead),
        ToolCallDelta("r-2-1", "look", '{"at', dead),
        ApprovalRequired(f"{call}-1", call, "pay", {}, dead),
        ToolCallStart("r-2-2", "look", {}, dead),
        ToolResult("r-2-2", "look", "found"),
        Waiting("busy", 20.0),
    )
    page.happens(AttemptReset(dead, 1, "The server was stopped."))
    kept = [data for data in page.log() if not isinstance(data, Notice)]
    assert kept == before
    assert len(notices(page)) == 1
    assert page.transcript.status.state == "working"
    page.happens(TextDelta("Whole.", dead))
    assert page.text("a-r-2") == "Whole."
    assert sum(isinstance(data, Answer) for data in page.log()) == 2


def test_results_of_earlier_messages_stay_where_an_attempt_is_taken_back() -> None:
    page = Page().happens(STARTED, ToolResult(C, "pay", "paid"), AttemptReset("r-2", 1, ""))
    assert page.call().status == "done"
    page = Page().happens(STARTED, ToolResult(C, "pay", "paid"), AttemptReset(M, 1, ""))
    assert [data for data in page.log() if isinstance(data, Call)] == []


def inner(body: EventBody) -> NestedEvent:
    return NestedEvent(C, body)


def test_a_sub_agent_that_begins_again_is_shown_once() -> None:
    page = Page().happens(
        ToolCallStart(C, "delegate", {"task": "t"}, M),
        inner(TextDelta("Of the dead one, and a good deal longer.\n\nTwo blocks.", f"{C}-m-1")),
        inner(ToolCallStart(f"{C}-m-1-0", "look", {}, f"{C}-m-1")),
    )
    page.happens(
        ToolCallStart(C, "delegate", {"task": "t"}, M), inner(TextDelta("Anew.", f"{C}-m-1"))
    )
    page.channel.settled()
    assert [part.id for part in page.channel.slot(f"c-{C}")] == [f"a-{C}-m-1"]
    assert page.text(f"a-{C}-m-1") == "Anew."
    page.happens(inner(RunResult("completed", "Anew.")), ToolResult(C, "delegate", "Anew."))
    assert page.call().nested == "done"


def test_an_uncertain_call_with_a_sub_agent_asks_itself() -> None:
    page = Page().happens(
        ToolCallStart(C, "delegate", {}, M),
        inner(ApprovalRequired("k-1", f"{C}-m-1-0", "pay", {}, f"{C}-m-1")),
        RecoveryRequired(KEY, C, "delegate", {}),
    )
    assert page.transcript.status.text == "Needs your answer: delegate"
    inside = page.channel.get(f"c-{C}-m-1-0")
    assert inside is not None
    assert isinstance(inside.data, Call)
    assert inside.data.status == "cancelled"


def test_a_run_that_was_cut_off_asks_whether_it_goes_on_until_it_does() -> None:
    page = Page().happens(TextDelta("Half", M), STARTED, Waiting("busy", 20.0))
    page.transcript.halt("r", "stopped")
    assert halted(page) == [Halted("r", "stopped")]
    assert (page.transcript.status.state, page.transcript.status.questions) == ("asking", 1)
    assert (page.call().status, page.call().waits) == ("unknown", False)
    assert notices(page) == []
    page.happens(Note("The server was stopped here; the answer goes on below."), STARTED)
    assert halted(page) == []
    assert page.call().status == "running"
    assert page.transcript.status.state == "working"
    assert notices(page) == ["The server was stopped here; the answer goes on below."]


def test_a_question_that_waited_is_still_there_while_the_run_stands_still() -> None:
    page = Page().happens(ApprovalRequired("k-1", C, "pay", {}, M))
    page.transcript.halt("r", "stopped")
    assert page.call().status == "asking"
    assert page.transcript.status.questions == 2


def test_a_paused_run_says_so_and_one_that_has_ended_cannot_be_halted() -> None:
    page = Page().happens(TextDelta("One", M))
    page.transcript.halt("r", "paused")
    assert page.transcript.status.state == "paused"
    assert halted(page) == [Halted("r", "paused")]
    page.happens(Note("going on"))
    assert (page.transcript.status.state, halted(page)) == ("working", [])
    page.transcript.halt("r", "paused")
    page.happens(RunResult("cancelled", "", reason="stopped"))
    assert halted(page) == []
    page.transcript.halt("r", "paused")
    assert page.transcript.status.text == "Stopped"


def test_the_foot_leads_to_the_steps_where_runs_are_written_down() -> None:
    page = Page().happens(RunResult("completed", ""))
    assert [data.run_id for data in page.log() if isinstance(data, Foot)] == [""]
    page = Page()
    page.transcript.written_down = True
    page.happens(TextDelta("a", M))
    assert page.transcript.status.pauses
    page.happens(RunResult("completed", ""))
    assert [data.run_id for data in page.log() if isinstance(data, Foot)] == ["r"]
