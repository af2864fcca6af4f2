"""What sub-agents do, and what agents plan, as parts of the page."""

from __future__ import annotations

from typing import Self

from tests.support import transcript_page
from web.chats.parts.kinds import Answer, Call, Foot, MarkdownBlock, Notice, PartData
from web.chats.parts.listed_calls import all_calls
from web.chats.parts.plan_kinds import Plan
from web.chats.transcript.inputs import find_input
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ErrorReport,
    EventBody,
    InputAnswered,
    InputRequired,
    NestedEvent,
    PlanStep,
    RunResult,
    TextDelta,
    ToolCallStart,
    ToolResult,
    UsageReport,
)
from web.harness.values.usage import Usage

C = "r-1-0"
"""The call of run `r` in which a sub-agent works; its own first call is `D`."""
S = f"{C}-s1"
D = f"{S}-1-0"
START = ToolCallStart(C, "delegate", {"task": "x"}, "r-1")
INNER_START = ToolCallStart(D, "save", {"text": "y"}, f"{S}-1")
ASKS = ApprovalRequired("key", D, "save", {"text": "y"}, f"{S}-1")
END = RunResult("completed", "done", Usage(5, 6))
STEPS = (PlanStep("read", "completed"), PlanStep("write", "in_progress"))


class Page(transcript_page.Page):
    """A chat whose run `r` has begun and called a sub-agent."""

    def __init__(self) -> None:
        super().__init__()
        self.happens(START)

    def inside(self, *bodies: EventBody) -> Self:
        return self.happens(*(NestedEvent(C, body) for body in bodies))

    def data(self, slot: str) -> list[PartData]:
        return [part.data for part in self.channel.slot(slot)]

    def call(self, call_id: str = C) -> Call:
        part = self.channel.get(f"c-{call_id}")
        assert part is not None
        assert isinstance(part.data, Call)
        return part.data

    @property
    def status(self) -> tuple[str, str]:
        return self.transcript.status.state, self.transcript.status.text


def test_its_text_and_calls_lie_inside_the_call_and_the_status_says_who_works() -> None:
    page = Page().inside(TextDelta("I save it.", f"{S}-1"))
    assert page.call().nested == "working"
    assert page.status == ("working", "delegate: Writing")
    page.inside(INNER_START)
    assert page.status == ("working", "delegate: Running save")
    assert [type(data) for data in page.data(f"c-{C}")] == [Answer, Call]
    blocks = page.data(f"a-{S}-1")
    assert [data.block.source for data in blocks if isinstance(data, MarkdownBlock)] == [
        "I save it."
    ]
    assert len(page.data("log")) == 2, "the message and the one call"


def test_its_end_leaves_a_foot_with_what_it_used_and_the_call_goes_on_until_its_result() -> None:
    page = Page().inside(UsageReport(f"{S}-1", Usage(5, 6), "demo:other"), END)
    foot = page.data(f"c-{C}")[-1]
    assert isinstance(foot, Foot)
    assert (foot.usage, foot.model) == (Usage(5, 6), "demo:other")
    assert (page.call().status, page.call().nested) == ("running", "done")
    page.happens(ToolResult(C, "delegate", "done"), RunResult("completed", "ok"))
    assert (page.call().status, page.call().nested) == ("done", "done")
    assert page.status == ("idle", "Done")


def test_its_question_makes_the_whole_chat_ask_until_it_is_answered() -> None:
    page = Page().inside(ASKS)
    assert page.status == ("asking", "Needs your answer: save")
    assert page.transcript.status.run_id == "r"
    assert page.call().nested == "asking"
    assert page.call(D).run_id == "r", "programs find it under the run they know"
    page.inside(INNER_START)
    assert page.status == ("working", "delegate: Running save")
    assert page.call().nested == "working"


def test_what_its_tool_asks_for_is_found_among_the_inputs_of_the_chat() -> None:
    page = Page().inside(INNER_START, InputRequired("in", D, {"mode": "form", "message": "?"}))
    assert page.status[0] == "asking"
    assert find_input(page.channel, "in") is not None
    page.inside(InputAnswered("in", D, "accept"))
    assert find_input(page.channel, "in") is None
    assert [call.name for call in all_calls(page.channel)] == ["delegate", "save"]


def test_a_sub_agent_in_a_sub_agent_lies_in_its_call_and_is_named_in_the_status() -> None:
    page = Page().inside(
        ToolCallStart(D, "helper", {}, f"{S}-1"),
        NestedEvent(D, TextDelta("deep", f"{D}-s1-1")),
        NestedEvent(D, ApprovalRequired("key", f"{D}-s1-1-0", "save", {}, f"{D}-s1-1")),
    )
    assert page.status == ("asking", "Needs your answer: save")
    assert (page.call().nested, page.call(D).nested) == ("asking", "asking")
    assert [type(data) for data in page.data(f"c-{D}")] == [Answer, Call]


def test_stopping_ends_all_that_is_open_inside() -> None:
    page = Page().inside(TextDelta("I sa", f"{S}-1"), ASKS)
    page.happens(
        ToolResult(C, "delegate", "Stopped.", is_error=True, stopped=True),
        RunResult("cancelled", "", reason="stopped"),
    )
    assert (page.call().status, page.call().nested) == ("cancelled", "done")
    assert (page.call(D).status, page.call(D).question) == ("cancelled", None)
    assert page.status == ("idle", "Stopped")
    version = page.channel.clock.version
    page.inside(TextDelta("late", f"{S}-1"))
    assert page.channel.clock.version == version


def test_a_failure_inside_is_a_line_there_and_not_one_of_the_chat() -> None:
    page = Page().inside(
        AttemptReset(f"{S}-1", 1, "overloaded"),
        ErrorReport("provider_overloaded", "The model is overloaded.", "Wait."),
        RunResult("failed", "", reason="provider_overloaded"),
    )
    notices = [data for data in page.data(f"c-{C}") if isinstance(data, Notice)]
    assert [(data.text, data.detail) for data in notices] == [
        ("Attempt 1 was dropped and starts again.", "overloaded"),
        ("Failed: The model is overloaded.", "Wait."),
    ]
    assert page.status[0] == "working"


def test_a_repetition_that_ended_a_run_is_said_in_words() -> None:
    page = Page().happens(RunResult("limit", "", reason="max_repeats"))
    notices = [data.text for data in page.data("log") if isinstance(data, Notice)]
    assert "the same calls brought the same results" in notices[0]


def test_a_second_sub_agent_in_the_same_call_follows_the_first() -> None:
    page = Page().inside(TextDelta("one", f"{S}-1"), END)
    page.inside(TextDelta("two", f"{C}-s2-1"), END)
    assert [type(data) for data in page.data(f"c-{C}")] == [Answer, Foot, Answer, Foot]


def test_taking_a_run_back_takes_what_is_inside_its_calls() -> None:
    page = Page().inside(TextDelta("I save it.", f"{S}-1"), INNER_START)
    page.transcript.take_back("r")
    assert {part.id for part in page.channel.parts()} == {"status-line"}
    assert page.channel.settled()


def test_a_plan_is_one_card_that_changes_in_its_place_and_its_calls_are_not_shown() -> None:
    page = Page()
    for number, steps in enumerate((STEPS[:1], STEPS)):
        call_id = f"r-3-{number}"
        page.happens(
            ToolCallStart(call_id, "update_plan", {}, "r-3"),
            ToolResult(call_id, "update_plan", "shown", plan=steps),
            TextDelta("text", f"r-{5 + number}"),
        )
    kinds = [type(data) for data in page.data("log")]
    assert kinds.count(Plan) == 1
    assert kinds.index(Plan) < kinds.index(Answer)
    part = page.channel.get("p-r")
    assert part is not None
    assert part.data == Plan(STEPS, is_live=True)
    assert [call.name for call in all_calls(page.channel)] == ["delegate"]
    page.happens(RunResult("completed", ""))
    part = page.channel.get("p-r")
    assert part is not None
    assert part.data == Plan(STEPS, is_live=False)


def test_a_plan_stands_where_its_call_was_also_when_a_later_call_ends_before_it() -> None:
    page = Page().happens(
        ToolCallStart("r-3-0", "update_plan", {}, "r-3"),
        ToolCallStart("r-3-1", "save", {}, "r-3"),
        ToolResult("r-3-1", "save", "saved"),
        ToolResult("r-3-0", "update_plan", "shown", plan=STEPS),
    )
    assert [part.id for part in page.channel.slot("log")] == ["u-r", f"c-{C}", "p-r", "c-r-3-1"]


def test_a_plan_of_a_sub_agent_lies_in_its_call() -> None:
    page = Page().inside(
        ToolCallStart(D, "update_plan", {}, f"{S}-1"),
        ToolResult(D, "update_plan", "shown", plan=STEPS),
    )
    assert page.data(f"c-{C}") == [Plan(STEPS, is_live=True)]
    page.inside(END)
    assert page.data(f"c-{C}")[0] == Plan(STEPS, is_live=False)


def test_a_plan_that_was_refused_or_asked_about_keeps_its_call() -> None:
    page = Page().happens(
        ToolCallStart("r-3-0", "update_plan", {}, "r-3", decision="allow"),
        ToolResult("r-3-0", "update_plan", "shown", plan=STEPS, decision="allow"),
        ToolCallStart("r-3-1", "update_plan", {}, "r-3"),
        ToolResult("r-3-1", "update_plan", "no", is_error=True),
    )
    assert [call.status for call in all_calls(page.channel)] == ["running", "done", "failed"]
