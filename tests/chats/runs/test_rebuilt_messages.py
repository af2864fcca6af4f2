"""The messages of a run, made of its events."""

from __future__ import annotations

from web.chats.chat import Turn
from web.chats.runs.rebuilt_messages import rebuilt
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    Event,
    EventBody,
    NestedEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import (
    Message,
    ResourceBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

FILE = ResourceBlock("a.txt", "a.txt", "text/plain", "some text")


def made(*bodies: EventBody, text: str = "Hi", attached: tuple[ResourceBlock, ...] = ()) -> object:
    turn = Turn("r", text, "demo:demo", "q", attached)
    events = [Event(number, 0.0, body) for number, body in enumerate(bodies, 1)]
    messages = rebuilt(turn, events, "before")
    assert [each.parent_id for each in messages] == ["before", *(m.id for m in messages[:-1])]
    return [(each.id, each.role, each.content) for each in messages]


SAID = ("r-0", "user", (TextBlock("Hi"),))


def test_a_text_that_was_cut_off_is_kept_as_far_as_it_came() -> None:
    assert made(ThinkingDelta("Hm", "r-1"), TextDelta("Half ", "r-1"), TextDelta("of", "r-1")) == [
        SAID,
        ("r-1", "assistant", (TextBlock("Half of"),)),
    ]


def test_of_a_run_that_said_nothing_the_message_of_the_person_is_left() -> None:
    assert made() == made(ThinkingDelta("Hm", "r-1"), TextDelta("\n", "r-1")) == [SAID]
    assert made(text=" ", attached=(FILE,)) == [("r-0", "user", (FILE,))]


def test_calls_have_their_result_or_are_left_out() -> None:
    started = ToolCallStart("r-1-0", "write", {"path": "b"}, "r-1")
    assert made(
        TextDelta("I write.", "r-1"),
        ToolCallDelta("r-1-0", "write", "{", "r-1"),
        ApprovalRequired("k", "r-1-0", "write", {"path": "a"}, "r-1"),
        ApprovalRequired("l", "r-1-1", "drop", {}, "r-1"),
        ApprovalRequired("m", "r-1-2", "open", {}, "r-1"),
        started,
        NestedEvent("r-1-0", TextDelta("inside", "n-1")),
        ToolResult("r-1-0", "write", "written"),
        ToolResult("r-1-1", "drop", "no", is_error=True, decision="deny"),
        ToolResult("r-1-9", "unknown", "?"),
        TextDelta("Then", "r-3"),
    ) == [
        SAID,
        (
            "r-1",
            "assistant",
            (
                TextBlock("I write."),
                ToolUseBlock("r-1-0", "write", {"path": "b"}),
                ToolUseBlock("r-1-1", "drop", {}),
            ),
        ),
        (
            "r-2",
            "tool",
            (
                ToolResultBlock("r-1-0", (TextBlock("written"),)),
                ToolResultBlock("r-1-1", (TextBlock("no"),), is_error=True),
            ),
        ),
        ("r-3", "assistant", (TextBlock("Then"),)),
    ]


def test_what_was_taken_back_is_not_there() -> None:
    assert made(
        TextDelta("Lost", "r-1"),
        ApprovalRequired("k", "r-1-0", "write", {}, "r-1"),
        AttemptReset("r-1", 1, "lost"),
        ToolResult("r-1-0", "write", "late"),
        TextDelta("Kept", "r-1"),
    ) == [
        SAID,
        ("r-1", "assistant", (TextBlock("Kept"),)),
    ]


def test_messages_are_such_as_a_run_makes() -> None:
    (first,) = rebuilt(Turn("r", "Hi", "demo:demo", "q"), [], None)
    assert first == Message("r-0", "user", (TextBlock("Hi"),), None)
