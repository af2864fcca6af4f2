"""A conversation told again: the same messages under new ids, and events that show them."""

from __future__ import annotations

import itertools
from typing import Any

from tests.harness.values.test_codec import conversation
from tests.support.pictures import picture
from web.chats.transcript.retold import RetoldRun, pictures_of, renamed_ids, retold
from web.harness.memory.summaries import summary_message
from web.harness.values.codec import check_conversation
from web.harness.values.events import (
    Note,
    PlanStep,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)


def told(*messages: Message) -> list[RetoldRun]:
    ids = itertools.count(1)
    return list(retold(messages, lambda: f"x{next(ids)}"))


def said(text: str, message_id: str, role: str = "user") -> Message:
    return Message(message_id, role, (TextBlock(text),))  # type: ignore[arg-type]


def test_each_turn_is_a_run_and_its_messages_have_ids_of_that_run() -> None:
    runs = told(*conversation(), said("More", "m"), said("Sure.", "n", "assistant"))
    assert [run.run_id for run in runs] == ["x1", "x2"]
    named = [message for run in runs for message in run.messages]
    assert [message.id for message in named] == ["x1-0", "x1-1", "x1-2", "x1-3", "x2-0", "x2-1"]
    parents = [message.parent_id for message in named]
    assert parents == [None, *(message.id for message in named[:-1])]
    check_conversation(named)


def test_calls_get_ids_of_their_message_and_results_follow() -> None:
    [run] = told(*conversation())
    uses = run.messages[1].tool_uses
    assert [use.id for use in uses] == ["x1-1-0", "x1-1-1"]
    assert [(use.name, use.malformed) for use in uses] == [("read", None), ("read", '{"path": ')]


def test_only_ids_change() -> None:
    messages = conversation()
    [run] = told(*messages)
    for new, old in zip(run.messages, messages, strict=True):
        assert (new.role, new.text, new.pictures) == (old.role, old.text, old.pictures)
    assert renamed_ids(messages, [run]) == {
        old.id: new.id for old, new in zip(messages, run.messages, strict=True)
    }


def test_the_events_show_what_the_messages_hold() -> None:
    [run] = told(*conversation())
    kinds = [type(body) for body in run.bodies]
    assert kinds == [
        ThinkingDelta,
        TextDelta,
        ToolCallStart,
        ToolCallStart,
        ToolResult,
        ToolResult,
        TextDelta,
        RunResult,
    ]
    first, second = (body for body in run.bodies if isinstance(body, ToolResult))
    assert [part.kind for part in first.parts] == ["text", "image"]
    assert first.parts[1].sha256 == picture("plan.png").sha256
    assert (second.is_error, second.text, second.parts) == (True, "no JSON", ())
    assert run.text == "Look at these."
    assert len(run.attachments) == 3
    assert all(each.data for each in pictures_of(run))
    assert len(pictures_of(run)) == 2


def test_a_summary_is_told_of_and_goes_with_the_turn_after_it() -> None:
    summary = summary_message("s", "They like red.")
    runs = told(summary, said("Hi", "a"), said("Hello", "b", "assistant"), said("Bye", "c"))
    assert [run.text for run in runs] == ["Hi", "Bye"]
    [note] = [body for body in runs[0].bodies if isinstance(body, Note)]
    assert note.detail == "They like red."
    assert runs[0].messages[0].attachments == summary.attachments
    assert [type(body) for body in runs[1].bodies] == [RunResult]


def test_an_odd_conversation_is_told_as_it_is() -> None:
    begun_by_model = said("Welcome.", "a", "assistant")
    assert [run.text for run in told(begun_by_model)] == [""]
    assert told() == []
    image = picture("a.png")
    only_picture = Message("p", "user", (image,))
    [run] = told(only_picture)
    assert (run.text, run.attachments) == ("", (image,))
    assert isinstance(run.attachments[0], ImageBlock)
    assert not any(isinstance(block, ToolUseBlock) for block in run.messages[0].content)


def test_a_plan_is_shown_again_and_one_that_is_none_is_not() -> None:
    steps = [{"text": "read", "status": "completed"}, {"text": "write"}]
    tries: list[tuple[dict[str, Any], tuple[PlanStep, ...]]] = [
        ({"steps": steps}, (PlanStep("read", "completed"), PlanStep("write"))),
        ({"steps": [{"text": 1}]}, ()),
        ({"steps": [{"text": "x", "status": "maybe"}]}, ()),
        ({"steps": ["x"]}, ()),
        ({"steps": [steps[1]] * 60}, ()),
        ({}, ()),
    ]
    for given, shown in tries:
        use = ToolUseBlock("c", "update_plan", given)
        [run] = told(
            said("Plan it", "a"),
            Message("b", "assistant", (use,)),
            Message("c", "tool", (ToolResultBlock("c", (TextBlock("ok"),)),)),
        )
        [result] = [body for body in run.bodies if isinstance(body, ToolResult)]
        assert result.plan == shown
