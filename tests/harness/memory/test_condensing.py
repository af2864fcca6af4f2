"""What is cleared and summarised: calls stay with their results, and what must stay does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from tests.harness.memory.conversations import answer, conversations, person, round_of
from web.harness.memory.condensing import (
    CLEARED,
    Cleared,
    clear_results,
    count_cleared,
    linked,
    plan,
    turn_place,
    units,
    without_old_thinking,
)
from web.harness.memory.summaries import is_summary, summary_message
from web.harness.values.codec import check_conversation
from web.harness.values.messages import ImageBlock, Message, ThinkingBlock, ToolResultBlock
from web.harness.values.tokens import message_tokens


def total(messages: Sequence[Message]) -> int:
    return sum(map(message_tokens, messages))


def results(messages: Sequence[Message]) -> list[str]:
    return [
        "cleared" if block.text.startswith(CLEARED) else "kept"
        for message in messages
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]


PINS = st.sets(st.sampled_from(["u0", "a0", "t0.0", "t0.0r", "u1", "t1.0r", "gone"]))


@given(conversations(), st.integers(0, 3000), PINS)
def test_any_plan_keeps_calls_with_their_results_and_what_must_stay(
    messages: list[Message], budget: int, pinned: set[str]
) -> None:
    planned = plan(messages, budget=budget, pinned=pinned)
    check_conversation(linked(planned.old))
    check_conversation(linked(planned.kept))
    said = [message for message in messages if not is_summary(message)]
    order = {message.id: at for at, message in enumerate(said)}
    assert sorted((m.id for m in (*planned.old, *planned.kept)), key=order.__getitem__) == [
        message.id for message in said
    ]
    kept = {message.id for message in planned.kept}
    assert messages[turn_place(messages, None)].id in kept
    assert messages[-1].id in kept
    assert {message.id for message in said} & pinned <= kept
    for part in (planned.old, planned.kept):
        assert all(order[one.id] < order[two.id] for one, two in itertools.pairwise(part))


@given(conversations(), st.integers(0, 3000))
def test_what_is_kept_fits_or_is_what_must_stay(messages: list[Message], budget: int) -> None:
    planned = plan(messages, budget=budget)
    must = {messages[turn_place(messages, None)].id}
    last = units(messages)[-1]
    must |= {messages[at].id for at in last}
    assert total(planned.kept) <= budget or {m.id for m in planned.kept} == must


@given(conversations(), st.integers(0, 3000), st.integers(0, 4), PINS)
def test_clearing_takes_the_oldest_results_and_no_more_than_asked(
    messages: list[Message], goal: int, keep: int, pinned: set[str]
) -> None:
    cleared = clear_results(messages, goal=goal, keep_rounds=keep, pinned=pinned)
    check_conversation(linked(cleared.messages))
    assert [message.id for message in cleared.messages] == [message.id for message in messages]
    changed = [at for at, message in enumerate(messages) if cleared.messages[at] is not message]
    rounds = [at for at, message in enumerate(messages) if message.role == "tool"]
    assert set(changed) <= set(rounds[: max(len(rounds) - keep, 0)])
    assert results(cleared.messages).count("cleared") == cleared.results
    if changed:
        # Without the last round that was cleared, the goal was not reached.
        before = [*cleared.messages]
        before[changed[-1]] = messages[changed[-1]]
        assert total(before) > goal
    assert count_cleared(cleared.messages, {m.id: m for m in messages}) == cleared.results
    assert count_cleared(cleared.messages, {m.id: m for m in cleared.messages}) == 0
    again = clear_results(cleared.messages, goal=goal, keep_rounds=keep, pinned=pinned)
    assert again == Cleared(cleared.messages, 0)


def test_the_call_its_error_and_its_size_are_left_of_what_is_cleared() -> None:
    use, result = round_of("t", 100)
    block = result.content[0]
    assert isinstance(block, ToolResultBlock)
    picture = ImageBlock("image/png", "0", b"x", width=10, height=10)
    failed = ToolResultBlock(block.call_id, (*block.content, picture), is_error=True)
    messages = [person("u"), use, Message("tr", "tool", (failed,))]
    (cleared,) = clear_results(messages, keep_rounds=0).messages[2].content
    assert isinstance(cleared, ToolResultBlock)
    assert (cleared.call_id, cleared.is_error, cleared.pictures) == (failed.call_id, True, ())
    assert "400 characters and 1 picture" in cleared.text


def test_small_results_and_pinned_rounds_stay() -> None:
    messages = [person("u"), *round_of("a", 5), *round_of("b", 500), *round_of("c", 500)]
    cleared = clear_results(messages, keep_rounds=0, pinned={"b"})
    assert results(cleared.messages) == ["kept", "kept", "cleared"]
    assert clear_results(messages, keep_rounds=0, pinned={"br"}).messages[4] is messages[4]


def test_thoughts_go_with_the_turn_that_they_led_to() -> None:
    messages = [person("u"), answer("a"), person("v"), answer("b")]
    slim = without_old_thinking(messages, "v")
    thoughts = [any(isinstance(b, ThinkingBlock) for b in message.content) for message in slim]
    assert thoughts == [False, False, False, True]
    only = Message("t", "assistant", (ThinkingBlock("hm"),))
    assert without_old_thinking([person("u"), only, person("v")], "v")[1] is only


def test_whole_turns_are_kept_where_they_fit() -> None:
    messages = [
        *(person("u0"), answer("a0", 50)),
        *(person("u1"), *round_of("t1", 50), answer("a1", 50)),
        *(person("u2"), answer("a2", 50), person("u3")),
    ]
    kept = plan(messages, budget=total(messages[4:]), turn_id="u3").kept
    assert kept[0].id == "u2"
    assert plan(messages, budget=total(messages[2:]), turn_id="u3").kept[0].id == "u1"


def test_a_turn_that_is_too_long_by_itself_keeps_its_message_and_its_newest_round() -> None:
    messages = [person("u0"), answer("a0"), person("u1")]
    messages += [message for n in range(4) for message in round_of(f"t{n}", 100)]
    planned = plan(messages, budget=250, turn_id="u1")
    assert [message.id for message in planned.kept] == ["u1", "t3", "t3r"]
    assert [message.id for message in planned.old][:3] == ["u0", "a0", "t0"]


def test_pinned_messages_keep_their_place_before_the_newest() -> None:
    messages = [person("u0"), answer("a0", 100), *round_of("t0", 50), answer("b0")]
    messages += [person("u1"), answer("a1"), person("u2")]
    planned = plan(messages, budget=200, turn_id="u2", pinned={"u0", "t0r"})
    assert [message.id for message in planned.kept][:3] == ["u0", "t0", "t0r"]
    assert "a0" in {message.id for message in planned.old}


def test_a_summary_is_neither_old_nor_kept() -> None:
    messages = [summary_message("n", "notes"), person("u0"), answer("a0", 500), person("u1")]
    planned = plan(messages, budget=100, turn_id="u1")
    assert [message.id for message in planned.old] == ["u0", "a0"]
    assert [message.id for message in planned.kept] == ["u1"]


@pytest.mark.parametrize("messages", [[], [person("u")]])
def test_where_there_is_nothing_old_nothing_is_planned(messages: list[Message]) -> None:
    assert plan(messages, budget=0).old == ()


def test_each_message_is_the_child_of_the_one_before_it() -> None:
    messages = linked([person("a"), person("c")])
    assert [message.parent_id for message in messages] == [None, "a"]
    assert linked(messages)[1] is messages[1]
