"""Messages as JSON: what was written comes back equal, and nothing is guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.support.pictures import picture
from web.harness.values.codec import (
    MESSAGE_VERSION,
    check_conversation,
    message_from_json,
    message_to_json,
    messages_from_json,
    messages_to_json,
)
from web.harness.values.json_form import JsonRefused, NotSerialisable
from web.harness.values.messages import (
    ContentBlock,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

PLAN = picture("plan.png")
GONE = replace(PLAN, data=b"", length=len(PLAN.data), left_out="newer ones took its place")


def conversation() -> list[Message]:
    """Every kind of block in every place where it may stand."""
    note = ResourceBlock("notes://1", "Note", "text/plain", "Rain.", "notes", 12)
    asked: tuple[ContentBlock, ...] = (note, PLAN, GONE, TextBlock("Look at these."))
    thought: tuple[ContentBlock, ...] = (
        ThinkingBlock("", "sealed", redacted=True),
        ThinkingBlock("Two files.", "seal"),
        TextBlock("I look."),
        ToolUseBlock("c-1", "read", {"path": "a", "deep": [{"x": [1, 2.5, None, True]}]}),
        ToolUseBlock("c-2", "read", {}, malformed='{"path": '),
    )
    results = (
        ToolResultBlock("c-1", (TextBlock("text"), PLAN)),
        ToolResultBlock("c-2", (TextBlock("no JSON"),), is_error=True),
    )
    return [
        Message("r-0", "user", asked),
        Message("r-1", "assistant", thought, "r-0"),
        Message("r-2", "tool", results, "r-1"),
        Message("r-3", "assistant", (TextBlock("Done. ✓ 猫 \x00"),), "r-2"),
    ]


def through_text(value: Any) -> Any:
    return json.loads(json.dumps(value))


def pictures_of(messages: tuple[Message, ...]) -> list[bytes]:
    results = [block for each in messages for block in each.content]
    own = [block.data for block in results if isinstance(block, ImageBlock)]
    inner = [each.data for b in results if isinstance(b, ToolResultBlock) for each in b.pictures]
    return own + inner


def test_every_block_comes_back_as_it_went_bytes_included() -> None:
    messages = conversation()
    back = messages_from_json(through_text(messages_to_json(messages)))
    assert list(back) == messages
    assert pictures_of(back) == pictures_of(tuple(messages))


def test_a_message_says_the_version_of_its_form_and_leaves_out_what_is_default() -> None:
    form = message_to_json(Message("a", "user", (TextBlock("hi"),)))
    content = [{"type": "text", "text": "hi"}]
    assert form == {"v": MESSAGE_VERSION, "id": "a", "role": "user", "content": content}


def test_pictures_can_be_kept_elsewhere_and_are_written_once_by_their_hash() -> None:
    kept: dict[str, bytes] = {}
    forms = through_text(messages_to_json(conversation(), kept.__setitem__))
    assert kept == {PLAN.sha256: PLAN.data}
    assert "data" not in json.dumps(forms)
    back = messages_from_json(forms, kept.__getitem__)
    assert pictures_of(back) == pictures_of(tuple(conversation()))


@pytest.mark.parametrize("store", [None, {}, {PLAN.sha256: b"short"}])
def test_a_picture_whose_kept_bytes_are_gone_is_refused(store: dict[str, bytes] | None) -> None:
    forms = messages_to_json([conversation()[0]], lambda sha256, data: None)
    load = None if store is None else store.__getitem__
    with pytest.raises(JsonRefused, match=r"messages\[0\]\.content\[1\] is a picture whose"):
        messages_from_json(forms, load)


def test_arguments_that_json_cannot_hold_are_refused_and_not_turned_to_text() -> None:
    for value, said in [
        ({1, 2}, "a set"),
        (float("nan"), "nan"),
        ((1, 2), "a tuple"),
        (b"x", "a bytes"),
    ]:
        use = ToolUseBlock("c-1", "read", {"deep": [value]})
        with pytest.raises(NotSerialisable, match=said) as refused:
            message_to_json(Message("r-1", "assistant", (use,)))
        assert "call c-1 in message r-1.deep[0]" in refused.value.message


def test_what_is_written_shares_nothing_with_the_message() -> None:
    arguments: dict[str, Any] = {"list": []}
    form = message_to_json(Message("a", "assistant", (ToolUseBlock("c", "t", arguments),)))
    arguments["list"].append(1)
    assert form["content"][0]["arguments"] == {"list": []}


def test_a_message_of_a_later_form_is_refused_as_such() -> None:
    form = {**message_to_json(conversation()[0]), "v": MESSAGE_VERSION + 1}
    with pytest.raises(JsonRefused, match="in form 2; this version reads up to 1") as refused:
        message_from_json(form)
    assert refused.value.code == "from_the_future"


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"v": 0}, "no such form"),
    ({"v": True}, "message.v is true"),
    ({"v": None}, "message.v is null"),
    ({"id": ""}, "message.id is empty"),
    ({"id": 3}, "message.id is the number 3"),
    ({"role": "system"}, "no role"),
    ({"content": "hi"}, "has to be a list"),
    ({"content": [{"type": "video"}]}, "no block"),
    ({"content": [{"type": "text"}]}, r"content\[0\].text is missing"),
    ({"content": [{"type": "text", "text": "a", "colour": 1}]}, "not known: .*colour"),
    ({"content": ["hi"]}, "has to be an object"),
    ({"parent_id": 1}, "parent_id"),
    ({"mood": "good"}, "not known: message.mood"),
    ({"content": [{"type": "tool_use", "id": "", "name": "x"}]}, "id is empty"),
    ({"content": [{"type": "tool_use", "id": "1", "name": "x", "arguments": []}]}, "an object"),
    ({"content": [{"type": "resource", "uri": "", "name": "", "text": ""}]}, "media_type"),
    (
        {"content": [{"type": "tool_result", "call_id": "1", "content": [{"type": "thinking"}]}]},
        "text is missing",
    ),
    (
        {"content": [{"type": "image", "media_type": "image/png", "sha256": "0", "data": "!"}]},
        "no base64",
    ),
    (
        {"content": [{"type": "image", "media_type": "image/png", "sha256": "0", "data": "aaaa"}]},
        "other bytes",
    ),
    ({"content": [{"type": "image", "media_type": "image/png", "sha256": "0"}]}, "without its"),
]


@pytest.mark.parametrize(("change", "said"), BROKEN)
def test_a_broken_message_is_refused_by_the_name_of_its_field(
    change: dict[str, Any], said: str
) -> None:
    form = message_to_json(Message("a", "user", (TextBlock("hi"),)))
    with pytest.raises(JsonRefused, match=said):
        message_from_json({**form, **change})


def test_arguments_nested_without_end_are_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"a": deep}
    form = message_to_json(Message("a", "assistant", (ToolUseBlock("c", "t"),)))
    form["content"][0]["arguments"] = deep
    with pytest.raises(JsonRefused, match="nested more than 64 deep"):
        message_from_json(form)


def test_a_conversation_in_which_calls_and_results_do_not_meet_is_refused() -> None:
    asked, called, results, done = conversation()
    other = Message("r-2", "tool", (*reversed(results.content),), "r-1")
    for messages, said in [
        ([asked, called], "ends with 2 calls"),
        ([asked, called, done], "0 results where the answer before it made 2"),
        ([asked, results], "2 results"),
        ([asked, called, other], "another order"),
        ([asked, asked], "id occurs twice"),
        ([asked, called, results, replace(called, id="x")], "id of a call twice"),
        ([replace(asked, role="assistant")], "message of the assistant and holds a resource"),
        ([replace(done, role="tool")], "message of the tool and holds a text"),
        ([replace(called, role="user")], "message of the user and holds a thinking"),
    ]:
        with pytest.raises(JsonRefused, match=said):
            check_conversation(messages)
    check_conversation(conversation())
    check_conversation([])


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, values, max_size=4), texts, st.none() | texts)
def test_any_arguments_and_texts_come_back_equal(
    arguments: dict[str, Any], text: str, malformed: str | None
) -> None:
    use = ToolUseBlock("c", text, arguments, malformed)
    message = Message("a", "assistant", (TextBlock(text), use))
    back = message_from_json(through_text(message_to_json(message)))
    assert back == message
