"""Cuts say what is gone, go as far as asked, and leave alone what a person wrote."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tests.harness.memory.conversations import answer, conversations, person, round_of
from web.harness.memory.condensing import linked
from web.harness.memory.shortening import LEAST_TOKENS, cut, shorten, water_line
from web.harness.memory.summaries import is_summary, summary_message
from web.harness.values.codec import check_conversation
from web.harness.values.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.tokens import message_tokens, text_tokens


def total(messages: list[Message]) -> int:
    return sum(map(message_tokens, messages))


@given(st.text(max_size=3000), st.integers(0, 500))
def test_a_cut_text_has_about_the_size_that_was_asked_for(text: str, tokens: int) -> None:
    shown = cut(text, tokens)
    if text_tokens(text) <= tokens:
        assert shown == text
    else:
        assert text_tokens(shown) <= max(tokens, 0) + 40
        assert ("characters left out" if tokens >= LEAST_TOKENS else "…") in shown


def test_a_cut_text_keeps_its_start_and_its_end_and_counts_what_is_gone() -> None:
    text = "start " + "x" * 4000 + " end"
    shown = cut(text, 100)
    assert shown.startswith("start ")
    assert shown.endswith(" end")
    gone = int(shown.partition("[… ")[2].partition(" characters")[0].replace(",", ""))
    kept = shown.replace(shown[shown.index("\n[…") : shown.index("…]\n") + 3], "")
    assert gone + len(kept) == len(text)


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 5000))
def test_the_water_line_is_the_highest_that_fits(sizes: list[int], most: int) -> None:
    line = water_line(sizes, most)
    assert sum(min(size, line) for size in sizes) <= max(most, 0)
    if line < max(sizes, default=0):
        assert sum(min(size, line + 1) for size in sizes) > most


@given(conversations(), st.integers(0, 3000))
def test_what_is_cut_stays_a_conversation_and_the_persons_words_stay(
    messages: list[Message], goal: int
) -> None:
    found, changed = shorten(messages, goal)
    check_conversation(linked(found))
    assert changed == sum(one is not other for one, other in zip(found, messages, strict=True))
    for before, after in zip(messages, found, strict=True):
        assert (before.id, before.role) == (after.id, after.role)
        if before.role == "user" and not is_summary(before):
            assert after is before
    if total(messages) <= goal:
        assert found == messages


def test_the_largest_results_are_cut_and_the_small_stay_whole() -> None:
    messages = [person("u"), *round_of("t", 2000, 30, 2000)]
    found, changed = shorten(messages, 1000)
    assert changed == 1
    assert total(found) <= 1010
    large, small, other = found[2].content
    assert isinstance(large, ToolResultBlock)
    assert isinstance(small, ToolResultBlock)
    assert isinstance(other, ToolResultBlock)
    assert small.text == "r" * 120
    assert abs(len(large.text) - len(other.text)) < 10


def test_long_arguments_and_notes_are_cut_too() -> None:
    messages = [summary_message("n", "n" * 8000), person("u"), *round_of("t", 5, arguments=8000)]
    found, _ = shorten(messages, 800)
    assert total(found) <= 900
    assert is_summary(found[0])
    use = found[2].content[0]
    assert isinstance(use, ToolUseBlock)
    assert "left out" in use.arguments["path"]
    nested = ToolUseBlock("i", "t", {"a": [{"b": "x" * 8000, "c": 3}]})
    (found_one, *_), _ = shorten([Message("m", "assistant", (nested,))], 300)
    block = found_one.content[0]
    assert isinstance(block, ToolUseBlock)
    assert block.arguments["a"][0]["c"] == 3
    assert len(block.arguments["a"][0]["b"]) < 1300


def test_answers_are_cut_only_where_nothing_else_is_enough_and_pinned_messages_never() -> None:
    messages = [*round_of("t", 2000), answer("a", 2000), *round_of("s", 2000)]
    found, changed = shorten(messages, 4_300, pinned={"tr"})
    assert changed == 1
    assert found[:3] == messages[:3]
    found, changed = shorten(messages, 3_000, pinned={"tr"})
    assert changed == 2
    assert found[:2] == messages[:2]
    assert message_tokens(found[4]) < LEAST_TOKENS + 60
    assert "left out" in found[2].text


def test_pictures_of_tools_go_last_and_are_named() -> None:
    picture = ImageBlock("image/png", "0", b"x" * 50, "map.png", 1000, 1000)
    result = ToolResultBlock("t-0", (TextBlock("r" * 400), picture))
    messages = [person("u"), round_of("t", 1)[0], Message("tr", "tool", (result,))]
    whole, changed = shorten(messages, 2000)
    assert (whole, changed) == (messages, 0)
    found, changed = shorten(messages, 300)
    block = found[2].content[0]
    assert isinstance(block, ToolResultBlock)
    assert changed == 1
    assert block.pictures[0].left_out
    assert not block.pictures[0].data
    assert "map.png" in block.pictures[0].line
