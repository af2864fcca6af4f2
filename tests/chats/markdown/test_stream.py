"""What a stream hands out, and when."""

from __future__ import annotations

import pytest

from web.chats.markdown import Block, Limits, MarkdownStream, Removed

SMALL = Limits(cut=40, piece=20, line=30)


def settle(stream: MarkdownStream) -> list[Block | Removed]:
    changes = stream.settle()
    while stream.pending:
        changes += stream.settle()
    return changes


def fed(*pieces: str, limits: Limits | None = None) -> list[list[Block | Removed]]:
    """The changes after each piece, and after the end of the text."""
    stream = MarkdownStream(limits or Limits())
    found = []
    for piece in pieces:
        stream.feed(piece)
        found.append(settle(stream))
    stream.finish()
    found.append(settle(stream))
    return found


def keys(changes: list[Block | Removed]) -> list[str]:
    return [f"-{change.key}" if isinstance(change, Removed) else change.key for change in changes]


def sources(changes: list[Block | Removed]) -> list[str]:
    return [change.source for change in changes if isinstance(change, Block)]


def test_a_closed_block_is_not_handed_out_again() -> None:
    first, second, third, end = fed("one\n\n", "two\n\n", "three")
    assert keys(first) == ["0"]
    assert keys(second) == ["0", "1"]
    assert [change.open for change in second if isinstance(change, Block)] == [False, True]
    assert keys(third) == ["2"]
    assert keys(end) == ["1", "2"]


def test_nothing_new_is_nothing_handed_out() -> None:
    stream = MarkdownStream()
    stream.feed("text")
    assert settle(stream)
    assert settle(stream) == []


@pytest.mark.parametrize(
    "held",
    [
        "`",
        "``",
        "```",
        "```py",
        "~~",
        "#",
        "##",
        "-",
        "1",
        "12.",
        "=",
        "--",
        "|",
        "| a",
        "  ",
        "- [",
        "- [ ] - [ ]",
        "1. [x] > - [",
        "> `",
    ],
)
def test_what_may_become_a_marker_is_held_back_until_it_is_decided(held: str) -> None:
    _, second, end = fed("text\n\n", held)
    assert sources(second) in ([], ["text"])
    assert end


@pytest.mark.parametrize(
    "shown", ["a", "`a", "#a", "-a", "1a", "=a", "**b", "> a", "- a", "## a", "5 a"]
)
def test_what_is_decided_is_shown_at_once(shown: str) -> None:
    _, second, _ = fed("text\n\n", shown)
    assert sources(second)[-1] == shown


def test_a_header_is_held_back_until_its_delimiter_row_is_there() -> None:
    first, second, third, _ = fed("| a | b |\n", "|--", "-|---|\n")
    assert first == second == []
    (table,) = third
    assert isinstance(table, Block)
    assert table.kind == "table"


def test_a_closing_fence_is_held_back_and_never_shown_as_code() -> None:
    _, second, third, _ = fed("```\ncode\n", "``", "`\n")
    assert second == []
    assert sources(third) == ["code\n"]


def test_a_definition_that_comes_later_hands_out_those_who_mention_it() -> None:
    *_, last, end = fed("[a] one\n\n", "[b] two\n\n", "three\n\n", "[A]: http://x.y\n\n")
    changed = [c for c in last + end if isinstance(c, Block) and c.references]
    assert [(c.key, c.references) for c in changed] == [("0", (("A", "http://x.y", ""),))]


def test_the_first_definition_of_a_label_stays() -> None:
    *_, end = fed("[a]\n\n[a]: http://one\n\n[a]: http://two\n\n[a] again")
    references = {c.references for c in end if isinstance(c, Block)}
    assert references == {(("A", "http://one", ""),)}


def test_a_long_list_is_cut_and_changes_in_its_last_items_only() -> None:
    first, second, third, _ = fed("- one\n- two two two\n", "- three\n", "- four\n", limits=SMALL)
    assert keys(first)[:2] == ["0", "0-0"]
    assert keys(second) == ["0-1", "0-2"]
    assert keys(third) == ["0-2", "0-3"]


def test_a_list_that_turns_loose_hands_out_its_items_once() -> None:
    first, second, third, _ = fed(
        "- one one\n- two two\n", "\n- three\n", "\n- four\n", limits=SMALL
    )
    assert keys(first) == ["0", "0-0", "0-1"]
    assert keys(second) == ["0-0", "0-1", "0-2"]
    assert keys(third) == ["0-2", "0-3"]


def test_a_long_paragraph_under_an_underline_comes_again_as_a_heading() -> None:
    text = "\n".join(f"line {number} of some" for number in range(8))
    first, second, _ = fed(text + "\n", "===\n", limits=SMALL)
    shell, *pieces = second
    assert isinstance(shell, Block)
    assert (shell.kind, shell.info) == ("paragraphs", "h1")
    assert keys(pieces) == [c.key for c in first if isinstance(c, Block) and c.parent == "0"]


def test_a_short_code_block_that_was_cut_becomes_whole_again_at_its_end() -> None:
    first, second, _ = fed("```\n" + "code line\n" * 6, "```\n", limits=SMALL)
    assert keys(first)[0] == "0"
    assert keys(second) == [*(f"-{key}" for key in reversed(keys(first)[1:])), "0"]
    assert sources(second) == ["code line\n" * 6]


def test_the_text_is_kept_with_plain_line_ends() -> None:
    stream = MarkdownStream()
    for piece in ("a\r", "\nb\r", "c\0", "\ud83d", "\r"):
        stream.feed(piece)
    stream.finish()
    assert stream.text == "a\nb\nc\ufffd\ufffd\n"
    with pytest.raises(ValueError, match="complete"):
        stream.feed("more")


def test_one_settle_looks_at_a_bounded_part() -> None:
    stream = MarkdownStream()
    stream.feed("word " * 40_000)
    stream.finish()
    rounds = 0
    while stream.pending:
        changes = stream.settle()
        assert sum(len(c.source) for c in changes if isinstance(c, Block)) < 8192
        rounds += 1
    assert rounds > 50


def test_a_long_quote_is_looked_at_less_often_and_whole_as_soon_as_the_text_pauses() -> None:
    stream = MarkdownStream()
    stream.feed("> quoted words\n" * 60)
    settle(stream)
    seen = 0
    for _ in range(20):
        stream.feed("> more\n")
        seen += bool(stream.settle())
    assert 0 < seen <= 3
    stream.feed("> last word\n")
    stream.settle()
    assert stream.pending
    assert sources(stream.settle())[-1].endswith("> last word\n")
    assert not stream.pending
