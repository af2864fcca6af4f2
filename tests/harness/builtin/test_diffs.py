"""A preview says what a write would change."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from web.harness.builtin.diffs import change_preview, new_file_preview
from web.harness.tools.previews import MAX_SHORT_LINE_CHARS, MAX_SHORT_LINES, in_short, lines_of
from web.harness.values.messages import JsonObject


def by_line(preview: JsonObject) -> list[list[str]]:
    return [[kind, line] for kind, text in preview["lines"] for line in lines_of(text)]


def rows(before: str, after: str) -> list[list[str]]:
    return by_line(change_preview("f", before, after))


def text(*lines: object) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("before", "after", "note", "expected"),
    [
        ("a\n", "a\n", "No change", []),
        ("", "", "No change", []),
        (
            "a\n",
            "b\n",
            "The file exists. 1 line taken out, 1 put in.",
            [["cut", "a"], ["add", "b"]],
        ),
        (
            "a\nb\nc\n",
            "a\nB\nC\nc\n",
            "The file exists. 1 line taken out, 2 put in.",
            [["same", "a"], ["cut", "b"], ["add", "B"], ["add", "C"], ["same", "c"]],
        ),
        ("a\n", "", "The file exists. 1 line taken out, 0 put in.", [["cut", "a"]]),
        (
            "a\n",
            "a",
            "The file exists. 1 line taken out, 1 put in.",
            [["cut", "a"], ["add", "a"], ["gap", "The line above does not end with a line break."]],
        ),
        (
            "a\r\n",
            "a\n",
            "The file exists. 1 line taken out, 1 put in.",
            [["cut", "a␍"], ["add", "a"]],
        ),
    ],
)
def test_the_note_counts_and_the_lines_show(
    before: str, after: str, note: str, expected: list[list[str]]
) -> None:
    preview = change_preview("f", before, after)
    assert in_short(preview) == {"kind": "diff", "path": "f", "note": note, "lines": expected}
    assert by_line(preview) == expected


def test_what_lies_between_changes_is_a_gap_in_words() -> None:
    lines: list[object] = list(range(30))
    changed = [*lines]
    changed[0], changed[15] = "first", "middle"
    assert rows(text(*lines), text(*changed)) == [
        ["cut", "0"],
        ["add", "first"],
        *(["same", str(number)] for number in (1, 2, 3)),
        ["gap", "8 unchanged lines"],
        *(["same", str(number)] for number in (12, 13, 14)),
        ["cut", "15"],
        ["add", "middle"],
        *(["same", str(number)] for number in (16, 17, 18)),
        ["gap", "11 unchanged lines"],
    ]


def test_a_new_file_shows_all_its_lines() -> None:
    assert in_short(new_file_preview("f", "a\n\nb\n")) == {
        "kind": "diff",
        "path": "f",
        "note": "New file",
        "lines": [["add", "a"], ["add", ""], ["add", "b"]],
    }


def test_a_long_preview_is_whole_and_in_short_says_how_much_is_not_shown() -> None:
    whole = new_file_preview("f", "x\n" * 1000)
    assert by_line(whole) == [["add", "x"]] * 1000
    short = in_short(whole)
    assert len(short["lines"]) == MAX_SHORT_LINES + 1
    assert short["lines"][-1] == ["gap", "600 more lines are not shown here"]
    assert short["more"] == 600


def test_a_long_line_is_shortened() -> None:
    short = in_short(new_file_preview("f", "x" * 100_000))
    (kind, line), _ = short["lines"]
    assert kind == "add"
    assert line.startswith("x" * MAX_SHORT_LINE_CHARS + "…")
    assert len(line) < MAX_SHORT_LINE_CHARS + 50
    assert short["more"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n" * 200_000, "b\na\n" * 200_000),
        ("".join(f"{n % 40}\n" for n in range(4000)), "".join(f"{n % 41}\n" for n in range(4000))),
        (text(*range(100_000)), text(*range(100_000, 0, -1))),
        (text(*range(5000)), text(*range(5000, 0, -1))),
    ],
)
def test_no_pair_of_texts_takes_long(before: str, after: str) -> None:
    began = time.process_time()
    change_preview("f", before, after)
    assert time.process_time() - began < 5


def applied(before: str, preview: JsonObject) -> str:
    """The text after a preview, by someone who sees only the old text and the preview."""
    old = before.split("\n")
    new: list[str] = []
    for kind, line in by_line(preview):
        if kind == "gap":
            for _ in range(int(line.split()[0]) if "unchanged" in line else 0):
                new.append(old.pop(0))
        else:
            if kind in ("same", "cut"):
                assert old.pop(0) == line
            if kind in ("same", "add"):
                new.append(line)
    return "\n".join(new)


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "long line"]), max_size=30)


@given(LINES, LINES)
def test_a_preview_holds_all_that_changes(before: list[str], after: list[str]) -> None:
    old, new = text(*before), text(*after)
    preview = change_preview("f", old, new)
    if old == new:
        assert preview["note"] == "No change"
    else:
        assert applied(old, preview) == new.removesuffix("\n")


@pytest.mark.parametrize("blank", ["", " ", "\xa0", "\u3000", "\t\u2003", "\r"], ids=ascii)
def test_blank_lines_do_not_push_the_rest_out_of_what_is_shown(blank: str) -> None:
    lines = f"{blank}\n" * 3_000
    rows = in_short(new_file_preview("f", f"a\n{lines}EVIL\n"))["lines"]
    assert rows == [["add", "a"], ["gap", "3,000 blank lines are added"], ["add", "EVIL"]]
    rows = in_short(change_preview("f", f"a\n{lines}b\n", "a\nb\n"))["lines"]
    assert ["gap", "3,000 blank lines are removed"] in rows


def test_a_few_blank_lines_stay() -> None:
    rows = in_short(new_file_preview("f", "a" + "\n" * 11 + "b\n"))["lines"]
    assert rows == [["add", "a"], *[["add", ""]] * 10, ["add", "b"]]
