"""Events are folded into parts: what a page shows at each moment of a run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.transcript_page import C, M, Page
from web.chats.parts.condensed_kinds import Condensed
from web.chats.parts.kinds import (
    Call,
    Failure,
    Foot,
    MarkdownBlock,
    Notice,
    Progress,
    Question,
    ShownPart,
    Thinking,
    UserMessage,
)
from web.chats.transcript.run_words import NOT_RUN
from web.chats.transcript.shown_calls import SHOWN_RESULT_CHARS
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    ErrorReport,
    Event,
    EventBody,
    InputAnswered,
    InputRequired,
    Note,
    ResultPart,
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
from web.ui.markdown import render_block


def test_a_turn_begins_with_the_message_and_works() -> None:
    page = Page()
    assert page.log() == [UserMessage("hello", 100.0)]
    assert page.transcript.status.state == "working"
    assert page.transcript.status.run_id == "r"


def test_text_becomes_blocks_in_its_answer_and_a_closed_block_stays_as_it_is() -> None:
    page = Page().happens(TextDelta("one\n\ntw", M))
    assert page.text("a-r-1") == "one\n|tw" or page.text("a-r-1") == "one|tw"
    (first, second) = page.channel.slot("a-r-1")
    version = first.version
    page.happens(TextDelta("o", M))
    (first, second) = page.channel.slot("a-r-1")
    assert first.version == version
    assert second.version > version


def test_nothing_is_split_before_somebody_looks() -> None:
    page = Page().happens(TextDelta("a", M))
    version = page.channel.clock.version
    page.happens(TextDelta("b", M), TextDelta("c", M))
    assert page.channel.clock.version == version
    assert len(page.channel.changes(version).changes) == 1


def test_thinking_lies_in_a_part_of_its_own_and_rests_when_the_answer_comes() -> None:
    page = Page().happens(ThinkingDelta("hm", M))
    (thinking,) = page.channel.slot("a-r-1")
    assert thinking.data == Thinking(busy=True)
    page.happens(TextDelta("yes", M))
    first, second = page.channel.slot("a-r-1")
    assert first.data == Thinking(busy=False)
    assert page.text(first.id) == "hm"
    assert isinstance(second.data, MarkdownBlock)


def test_a_call_is_written_started_and_settled_in_one_part() -> None:
    page = Page().happens(ToolCallDelta(C, "add", '{"a"', M), ToolCallDelta(C, "", ": 1}", M))
    assert page.call() == Call("r", C, "add", "writing", written=8)
    page.happens(ToolCallStart(C, "add", {"a": 1}, M))
    assert page.call().status == "running"
    page.happens(ToolResult(C, "add", "2", seconds=0.5))
    assert page.call() == Call(
        "r", C, "add", "done", {"a": 1}, result="2", result_size=1, seconds=0.5
    )


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (ToolResult(C, "add", "no", is_error=True), "failed"),
        (ToolResult(C, "add", "no", is_error=True, decision="deny"), "denied"),
        (ToolResult(C, "add", NOT_RUN, is_error=True), "not_run"),
        (ToolResult(C, "add", NOT_RUN), "done"),
        (ToolResult(C, "add", "no", is_error=True, stopped=True), "cancelled"),
        (ToolResult(C, "add", "no", is_error=True, decision="allow", stopped=True), "cancelled"),
    ],
)
def test_a_call_says_how_it_ended(result: ToolResult, status: str) -> None:
    assert Page().happens(result).call().status == status


def test_a_long_result_is_shown_in_part_with_its_whole_length() -> None:
    page = Page().happens(ToolResult(C, "add", "x" * (SHOWN_RESULT_CHARS + 5)))
    assert len(page.call().result or "") == SHOWN_RESULT_CHARS
    assert page.call().result_size == SHOWN_RESULT_CHARS + 5


def test_parts_of_a_result_are_shown_with_the_host_that_a_link_leads_to() -> None:
    link = ResultPart("link", uri="https://a.example/x", title="X")
    hidden = ResultPart("link", uri="javascript:x", title="Y")
    page = Page().happens(
        ToolCallStart(C, "add", {}, M, hints=("read-only",)),
        ToolResult(C, "add", "two links", parts=(link, hidden)),
    )
    assert page.call().parts == (ShownPart(link, "a.example"), ShownPart(hidden))
    assert page.call().hints == ("read-only",)


def test_a_question_waits_in_its_call_until_it_is_answered() -> None:
    page = Page().happens(ApprovalRequired("k", C, "add", {"a": 1}, M, {"kind": "text"}, ("x",)))
    assert page.call().question == Question("k", {"kind": "text"})
    assert page.call().hints == ("x",)
    assert page.transcript.status.state == "asking"
    assert page.transcript.status.questions == 1
    page.happens(ToolCallStart(C, "add", {"a": 2}, M, "allow", edited=True))
    call = page.call()
    assert (call.question, call.arguments, call.edited) == (None, {"a": 2}, True)
    assert page.states == ["working", "asking", "working"]


def test_while_one_question_is_open_a_running_tool_does_not_hide_it() -> None:
    page = Page().happens(
        ApprovalRequired("k", C, "add", {}, M),
        ToolCallStart("r-1-1", "other", {}, M),
        ToolResult("r-1-1", "other", "x"),
    )
    assert page.transcript.status.state == "asking"


def test_how_far_a_call_is_is_shown_while_it_runs() -> None:
    page = Page().happens(ToolCallStart(C, "count", {}, M), ToolProgress(C, 1, 3, "one"))
    assert page.call().progress == Progress(1, 3, "one")
    assert Progress(1, 3, "one").words == "33 %, one"
    assert Progress(1234567, None).words == "1234567"
    page.happens(ToolResult(C, "count", "done"), ToolProgress(C, 2, 3))
    assert page.call().progress is None


def test_what_a_tool_asks_for_stays_in_its_call_until_it_is_answered() -> None:
    form = {"mode": "form", "server": "s", "message": "m", "schema": {"properties": {"a": {}}}}
    visit = {"mode": "url", "server": "s", "message": "m", "url": "https://a.example/b"}
    page = Page().happens(
        ToolCallStart(C, "order", {}, M),
        InputRequired("k1", C, form),
        InputRequired("k2", C, visit),
    )
    one, two = page.call().inputs
    assert ([field.name for field in one.fields], one.address) == (["a"], None)
    assert two.address is not None
    assert two.address.host == "a.example"
    assert page.transcript.status.state == "asking"
    assert page.transcript.status.text == "Needs your answer: order"
    page.happens(InputAnswered("k1", C, "accept"))
    assert page.transcript.status.state == "asking"
    page.happens(InputAnswered("k2", C, "withdrawn"))
    assert (page.call().inputs, page.call().answered) == ((), ("accept",))
    assert page.transcript.status.text == "Running order"
    page.happens(InputRequired("k3", C, form), RunResult("cancelled", ""))
    assert page.call().inputs == ()


def test_a_dropped_attempt_takes_its_text_and_calls_back_and_says_so() -> None:
    page = Page().happens(TextDelta("wrong", M), ToolCallDelta(C, "add", "{", M))
    page.happens(AttemptReset(M, 1, "The connection was lost."), Waiting("lost", 2.0))
    assert page.log()[1:] == [
        Notice("Attempt 1 was dropped and starts again.", "The connection was lost."),
        Notice("Waiting 2 s", "lost", until=105.0),
    ]
    page.happens(TextDelta("right", M))
    assert page.text("a-r-1") == "right"
    assert not any(isinstance(data, Notice) and data.until for data in page.log())


def test_what_the_model_is_not_sent_any_more_is_one_part_with_its_notes() -> None:
    page = Page().happens(Waiting("Earlier messages are summarised", 0.0, "summary"))
    assert page.transcript.status.text == "Summarising earlier messages"
    assert len(page.log()) == 1
    page.happens(
        ContextCondensed(7000, 3000, "- one\n- two\n\nThree.", cleared=2, summarised=9),
        TextDelta("and on", M),
    )
    assert page.log()[1] == Condensed(7000, 3000, cleared=2, summarised=9)
    assert page.text("s-r-1") == "- one\n- two\n\n|Three."
    assert page.text("a-r-1") == "and on"
    page.happens(RunResult("failed", ""))
    page.transcript.take_back("r")
    assert page.channel.slot("s-r-1") == []


def test_a_reader_that_saw_the_dropped_attempt_ends_with_the_new_text_alone() -> None:
    page = Page().happens(TextDelta("wrong\n\nstart", M))
    cursor = page.channel.changes(0).version
    page.happens(AttemptReset(M, 1, "lost"), TextDelta("right", M))
    changes = page.channel.changes(cursor).changes
    gone = {change.id for change in changes if change.part is None}
    shown = {change.id for change in changes if change.part is not None}
    assert "a-r-1" in shown
    assert not gone & shown


def test_a_failed_run_keeps_its_text_and_says_what_to_do() -> None:
    page = Page().happens(
        TextDelta("half", M),
        ErrorReport("provider_auth", "The key is wrong.", "Set it."),
        RunResult("failed", "half", reason="provider_auth"),
    )
    assert page.text("a-r-1") == "half"
    assert Failure("r", "provider_auth", "The key is wrong.", "Set it.") in page.log()
    assert page.transcript.status.state == "failed"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (RunResult("cancelled", "", reason="stopped"), "Stopped"),
        (RunResult("limit", "", reason="max_iterations"), "limit of model calls"),
        (RunResult("limit", "", reason="max_cost_dollars"), "cost limit"),
        (RunResult("completed", "", reason="max_tokens"), "was cut"),
        (RunResult("completed", "", reason="refusal"), "declined"),
        (RunResult("completed", "", reason="empty_answer"), "empty answer"),
    ],
)
def test_an_unusual_end_is_said_in_words(result: RunResult, words: str) -> None:
    page = Page().happens(result)
    (notice,) = [data for data in page.log() if isinstance(data, Notice)]
    assert words in notice.text
    assert page.transcript.status.state == "idle"


def test_the_foot_tells_time_tokens_cost_and_model() -> None:
    page = Page().happens(RunResult("completed", "x", Usage(3, 4), 0.5))
    assert page.log()[-1] == Foot(3.0, Usage(3, 4), 0.5, "demo:demo")


def test_calls_without_a_result_are_closed_with_their_run() -> None:
    page = Page().happens(
        ApprovalRequired("k", C, "add", {}, M), RunResult("cancelled", "", reason="stopped")
    )
    assert page.call().status == "cancelled"
    assert page.call().question is None


def test_taking_a_run_back_removes_all_it_showed_and_nothing_else() -> None:
    page = Page().happens(TextDelta("x", M), ToolResult(C, "add", "2"), RunResult("failed", ""))
    page.transcript.begin("s", "next", 200.0, "demo:demo")
    page.transcript.take_back("r")
    assert page.log() == [UserMessage("next", 200.0)]
    assert page.channel.slot("a-r-1") == []


def test_a_long_text_that_comes_at_once_is_split_a_little_at_a_time() -> None:
    text = "Some words of a long answer.\n\n" * 2_000
    page = Page().happens(
        TextDelta(text, M), UsageReport(M, Usage(), "m"), RunResult("completed", "")
    )
    assert page.transcript.status.state == "idle"
    looks = 0
    while True:
        before = page.channel.clock.version
        page.channel.changes(before)
        assert page.channel.clock.version - before < 200
        looks += 1
        if not page.channel.left:
            break
    assert looks > 10
    assert page.text("a-r-1").count("Some words") == 2_000


def test_what_ends_before_it_is_split_stays_before_what_follows() -> None:
    page = Page().happens(
        TextDelta("First words.\n\n" * 500, M), ThinkingDelta("hm", M), TextDelta("last", M)
    )
    while True:
        page.channel.changes(0)
        if not page.channel.left:
            break
    shown = [part.data for part in page.channel.slot("a-r-1")]
    assert len(shown) == 502
    assert isinstance(shown[-2], Thinking)
    assert page.text("a-r-1").endswith("|last")


def test_a_text_that_is_taken_back_before_it_was_split_does_not_come_back() -> None:
    page = Page().happens(TextDelta("Some words.\n\n" * 2_000, M), AttemptReset(M, 1, "lost"))
    page.happens(TextDelta("right", M), UsageReport(M, Usage(), "m"))
    for _ in range(100):
        page.channel.changes(0)
    assert page.text("a-r-1") == "right"


def test_events_of_a_run_that_is_not_known_change_nothing() -> None:
    page = Page()
    version = page.channel.clock.version
    page.transcript.fold("other", [Event(1, 1.0, TextDelta("x", "other-1"))])
    assert page.channel.changes(version).changes == []


texts = st.lists(st.text("ab *_`\n#-1.|", min_size=1, max_size=8), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(texts, st.data())
def test_looking_at_any_moment_changes_nothing_of_the_end(
    pieces: list[str], data: st.DataObject
) -> None:
    looked, unseen = Page(), Page()
    for piece in pieces:
        looked.happens(TextDelta(piece, M))
        unseen.happens(TextDelta(piece, M))
        if data.draw(st.booleans()):
            looked.channel.changes(0)
    end: list[EventBody] = [UsageReport(M, Usage(), "m"), RunResult("completed", "x")]
    looked.happens(*end)
    unseen.happens(*end)
    assert as_shown(looked) == as_shown(unseen)


def as_shown(page: Page) -> list[tuple[str, str]]:
    """The blocks of an answer as HTML: a table that was cut shows what one does that was not."""
    shown = [
        (part.id, render_block(part.data.block))
        for part in page.channel.slot("a-r-1")
        if isinstance(part.data, MarkdownBlock)
    ]
    return [(id_, (it.before + it.after).replace(' data-slot=""', "")) for id_, it in shown]


def test_a_remark_stays_in_the_log() -> None:
    page = Page().happens(Note("Not sent: plan.png.", "Too large."), TextDelta("Hm.", M))
    page.happens(RunResult("completed", "Hm."))
    assert Notice("Not sent: plan.png.", "Too large.") in page.log()
