"""A conversation counts its messages once, keeps pins, and clears results when asked."""

from __future__ import annotations

import pytest

from tests.harness.memory.conversations import answer, person, round_of
from web.harness.memory.conversation import Conversation
from web.harness.values.errors import NotFound
from web.harness.values.json_form import JsonRefused
from web.harness.values.message_view import MessageView
from web.harness.values.messages import ImageBlock, Message, TextBlock, ToolResultBlock
from web.harness.values.tokens import message_tokens


def test_its_tokens_are_the_sum_of_its_messages_whatever_is_done_to_it() -> None:
    conversation = Conversation([person("u"), answer("a")])
    assert conversation.tokens == sum(map(message_tokens, conversation.get_messages()))
    conversation.append(person("v", 77))
    assert conversation.tokens == sum(map(message_tokens, conversation.get_messages()))
    picture = ImageBlock("image/png", "0", b"x" * 10, width=1000, height=1000)
    conversation.append(Message("w", "user", (picture,)))
    assert conversation.tokens == sum(map(message_tokens, conversation.get_messages()))
    conversation.set_messages([person("x", 5)])
    assert conversation.tokens == message_tokens(person("x", 5))


def test_old_results_are_pruned_and_the_newest_rounds_stay() -> None:
    rounds = [message for n in range(4) for message in round_of(f"t{n}", 100)]
    conversation = Conversation([person("u"), *rounds, answer("a")])
    conversation.pin("t0")
    assert conversation.prune_tool_results() == 1
    texts = [
        block.text[:3]
        for message in conversation.get_messages()
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
    assert texts == ["rrr", "[Cl", "rrr", "rrr"]
    assert conversation.tokens == sum(map(message_tokens, conversation.get_messages()))
    assert conversation.prune_tool_results() == 0
    assert conversation.prune_tool_results(keep_rounds=0) == 2
    with pytest.raises(ValueError, match="keep_rounds"):
        conversation.prune_tool_results(keep_rounds=-1)


def test_a_pin_holds_until_it_is_taken_out_or_its_message_is_gone() -> None:
    conversation = Conversation([person("u"), answer("a")], pinned=["u"])
    conversation.pin("a")
    conversation.pin("a")
    assert conversation.pinned == {"u", "a"}
    conversation.unpin("u")
    conversation.unpin("u")
    assert conversation.pinned == {"a"}
    conversation.set_messages([person("u")])
    assert conversation.pinned == frozenset()
    with pytest.raises(NotFound):
        conversation.pin("a")


def test_what_no_model_can_be_sent_is_refused_and_nothing_is_changed() -> None:
    conversation = Conversation([person("u")])
    orphan = Message("t", "tool", (ToolResultBlock("c", (TextBlock("x"),)),))
    for bad in (
        "abc",
        [None],
        ["hi"],
        [{"role": "user", "content": "x"}],
        None,
        [person("a"), person("a")],
        [person("a"), orphan],
    ):
        with pytest.raises(JsonRefused):
            conversation.set_messages(bad)  # type: ignore[arg-type]
    assert [message.id for message in conversation.get_messages()] == ["u"]
    with pytest.raises(JsonRefused, match="message_from_json"):
        Conversation([{"role": "user"}])  # type: ignore[list-item]


def test_what_a_model_was_sent_does_not_change_and_is_no_copy() -> None:
    conversation = Conversation([person(f"u{number}") for number in range(5)])
    sent = conversation.sent
    conversation.append(person("v"))
    assert [message.id for message in sent] == [f"u{number}" for number in range(5)]
    assert (sent[-1].id, len(sent), sent[1:3]) == ("u4", 5, tuple(sent)[1:3])
    assert conversation.sent[-1].id == "v"
    assert sent == tuple(sent)
    assert isinstance(sent, MessageView)
