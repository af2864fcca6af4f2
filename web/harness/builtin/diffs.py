"""What a write would change, as lines that a person can read: all of them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from web.harness.values.messages import JsonObject

CONTEXT_LINES = 3

_MAX_PAIRS = 20_000
_MAX_COMPARED = 5_000
_MAX_LOOKED_AT = 4_000_000
"""Lines, each as often as it is looked at: about a second."""
_NO_NEWLINE = "The line above does not end with a line break."

Block = list[str]
"""`[kind, text]`, where the kind is same, add, cut or gap. The text is one line or several, with
their line breaks."""


class _Change(NamedTuple):
    """Lines `first[a:b]` become lines `second[c:d]`."""

    a: int
    b: int
    c: int
    d: int


def new_file_preview(path: str, content: str) -> JsonObject:
    """The whole content as added lines, in the shape of `change_preview`."""
    return _whole_preview(path, "New file", content)


def replacement_preview(path: str, content: str) -> JsonObject:
    """For a file that exists and is no text, or too large a one, so that it is not compared."""
    note = "The file exists and is not text that can be compared. All of it is replaced."
    return _whole_preview(path, note, content)


def deletion_preview(path: str, content: str | None) -> JsonObject:
    """All lines as cut ones; words alone for a file that is no text, or a very large one (None)."""
    note = "The file is deleted. It can be brought back."
    if content is None:
        note += " What it holds is not shown: it is no text, or too large."
    return _preview(path, note, [["cut", content]] if content else [])


def _whole_preview(path: str, note: str, content: str) -> JsonObject:
    return _preview(path, note, [["add", content]] if content else [])


def change_preview(path: str, before: str, after: str) -> JsonObject:
    """`{"kind": "diff", "path", "note", "lines": [["same" | "add" | "cut" | "gap", text], ...]}`.

    All changed lines with three lines around them; what lies between is a gap in words. A text is
    one line or several of a kind. Comparing takes up to seconds: for use in a thread.
    """
    if before == after:
        return _preview(path, "No change", [])
    start = _like_start(before, after)
    end = _like_end(before, after, start)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    try:
        first, second = _compared(old, new)
        changes = _changes(first, second)
        cut = sum(change.b - change.a for change in changes)
        added = sum(change.d - change.c for change in changes)
    except _TooCostly:
        first, second = _one(old), _one(new)
        changes = [_Change(0, len(first), 0, len(second))]
        cut, added = _count_lines(old), _count_lines(new)
    note = f"The file exists. {_count(cut, 'line', 'lines')} taken out, {added:,} put in."
    around = (before[:start], before[len(before) - end :])
    return _preview(path, note, _blocks(first, second, changes, around))


def _lines(text: str) -> list[str]:
    """Lines with their line breaks, split at newlines alone, so that joining gives the text."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _one(text: str) -> list[str]:
    return [text] if text else []


def _count_lines(text: str) -> int:
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def _like_start(before: str, after: str) -> int:
    """How many characters of the lines they begin with are the same. Like ends are set aside
    first, since most edits are small, and as texts: of a large one no list of lines is made."""
    size = _like(lambda size: before[:size] == after[:size], min(len(before), len(after)))
    return before.rfind("\n", 0, size) + 1


def _like_end(before: str, after: str, start: int) -> int:
    """The same of the lines they end with, beyond `start`."""
    shorter = min(len(before), len(after))
    size = _like(
        lambda size: before[len(before) - size :] == after[len(after) - size :], shorter - start
    )
    if all(text[len(text) - size - 1 : len(text) - size] in ("", "\n") for text in (before, after)):
        return size
    line = before.find("\n", len(before) - size) + 1
    return len(before) - line if line else 0


def _like(is_like: Callable[[int], bool], most: int) -> int:
    """The largest size up to `most` that is like; each smaller one is."""
    like, unlike = 0, most + 1
    while unlike - like > 1:
        middle = (like + unlike) // 2
        like, unlike = (middle, unlike) if is_like(middle) else (like, middle)
    return like


class _TooCostly(Exception):
    """Comparing would take long: all of it is shown as changed then."""


class _Matcher(difflib.SequenceMatcher[str]):
    """One that gives up: where each line stands alone, it looks at all the others for each."""

    _left = _MAX_LOOKED_AT

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        self._left -= (ahi or 0) - alo
        if self._left < 0:
            raise _TooCostly
        return super().find_longest_match(alo, ahi, blo, bhi)


def _changes(first: list[str], second: list[str]) -> list[_Change]:
    """What differs, in order."""
    matcher = _Matcher(None, first, second, autojunk=False)
    return [_Change(*places) for tag, *places in matcher.get_opcodes() if tag != "equal"]


def _compared(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines of both, unless they are very many, or the same ones repeated very often."""
    if max(_count_lines(old), _count_lines(new)) > _MAX_COMPARED:
        raise _TooCostly
    first, second = _lines(old), _lines(new)
    times = Counter(second)
    if sum(times[line] for line in first) > _MAX_PAIRS:
        raise _TooCostly
    return first, second


def _blocks(
    first: list[str], second: list[str], changes: list[_Change], around: tuple[str, str]
) -> list[Block]:
    """`around` is what stays before and after both."""
    blocks: list[Block] = []

    def add(kind: str, text: str) -> None:
        if text:
            blocks.append([kind, text])

    before, after = around
    context = _last_lines(before)
    add("gap", _gap(before.count("\n", 0, len(before) - len(context))))
    add("same", context)
    shown = 0
    next_begins = [*(change.a for change in changes[1:]), len(first)]
    for change, next_begin in zip(changes, next_begins, strict=True):
        begin = max(shown, change.a - CONTEXT_LINES)
        add("gap", _gap(begin - shown))
        add("same", "".join(first[begin : change.a]))
        add("cut", "".join(first[change.a : change.b]))
        add("add", "".join(second[change.c : change.d]))
        shown = min(next_begin, change.b + CONTEXT_LINES)
        add("same", "".join(first[change.b : shown]))
    add("same", context := _first_lines(after))
    add("gap", _gap(_count_lines(after[len(context) :])))
    return blocks


def _last_lines(text: str) -> str:
    """The last lines of a text that ends with one, as many as are shown around a change."""
    start = len(text)
    for _ in range(CONTEXT_LINES):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
    return text[start:]


def _first_lines(text: str) -> str:
    end = 0
    for _ in range(CONTEXT_LINES):
        end = text.find("\n", end) + 1 or len(text)
    return text[:end]


def _gap(lines: int) -> str:
    return _count(lines, "unchanged line", "unchanged lines") if lines > 0 else ""


def _preview(path: str, note: str, blocks: list[Block]) -> JsonObject:
    lines: list[Block] = []
    for kind, text in blocks:
        # A carriage return would be lost in HTML, and with it the reason for a change.
        lines.append([kind, text.replace("\r", "\N{SYMBOL FOR CARRIAGE RETURN}")])
        # Otherwise a change of only the last line break would show two equal lines.
        if kind in ("add", "cut") and not text.endswith("\n"):
            lines.append(["gap", _NO_NEWLINE])
    return {"kind": "diff", "path": path, "note": note, "lines": lines}


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
