"""What a write would change, as lines that a person can read."""

from __future__ import annotations

import difflib
from collections import Counter
from typing import NamedTuple

from web.harness.values.messages import JsonObject

MAX_LINES = 400
"""Of one preview; words say how many more there are."""
MAX_LINE_CHARS = 500
CONTEXT_LINES = 3

_MAX_PAIRS = 20_000
_MAX_COMPARED = 5_000
_NO_NEWLINE = "The line above does not end with a line break."

Row = list[str]
"""`[kind, text]`, where the kind is same, add, cut or gap."""


class _Change(NamedTuple):
    """Lines `first[a:b]` become lines `second[c:d]`."""

    a: int
    b: int
    c: int
    d: int


class _Rows:
    """The first `MAX_LINES` rows, and how many more there would be."""

    def __init__(self) -> None:
        self.kept: list[Row] = []
        self.more = 0

    def add(self, kind: str, lines: list[str]) -> None:
        room = MAX_LINES - len(self.kept)
        self.kept += [[kind, line] for line in lines[:room]]
        self.more += max(0, len(lines) - room)


def new_file_preview(path: str, content: str) -> JsonObject:
    """The whole content as added lines, in the shape of `change_preview`."""
    return _whole_preview(path, "New file", content)


def replacement_preview(path: str, content: str) -> JsonObject:
    """For a file that exists and is no text, so that there is nothing to compare."""
    return _whole_preview(path, "The file exists and is not text. All of it is replaced.", content)


def deletion_preview(path: str, content: str | None) -> JsonObject:
    """All lines as cut ones; words alone for a file that is no text (None)."""
    rows = _Rows()
    rows.add("cut", _lines(content or ""))
    note = "The file is deleted. It can be brought back."
    return _preview(path, note if content is not None else f"{note} It is not text.", rows)


def _whole_preview(path: str, note: str, content: str) -> JsonObject:
    rows = _Rows()
    rows.add("add", _lines(content))
    return _preview(path, note, rows)


def change_preview(path: str, before: str, after: str) -> JsonObject:
    """`{"kind": "diff", "path", "note", "lines": [["same" | "add" | "cut" | "gap", text], ...]}`.

    Changed lines with three lines around them; what lies between is a gap in words. At most
    `MAX_LINES` rows, each of at most `MAX_LINE_CHARS` characters.
    """
    if before == after:
        return _preview(path, "No change", _Rows())
    first, second = _lines(before), _lines(after)
    changes = _changes(first, second)
    count = sum(max(change.b - change.a, change.d - change.c) for change in changes)
    note = f"The file exists. {_count(count, 'line changes', 'lines change')}."
    return _preview(path, note, _rows(first, second, changes))


def _lines(text: str) -> list[str]:
    """Lines with their line breaks, split at newlines alone, so that joining gives the text."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _changes(first: list[str], second: list[str]) -> list[_Change]:
    """What differs, in order. Like ends are set aside first, since most edits are small."""
    start = 0
    shorter = min(len(first), len(second))
    while start < shorter and first[start] == second[start]:
        start += 1
    end = 0
    while end < shorter - start and first[-1 - end] == second[-1 - end]:
        end += 1
    old, new = first[start : len(first) - end], second[start : len(second) - end]
    if _costly(old, new):
        return [_Change(start, start + len(old), start, start + len(new))]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        _Change(start + a, start + b, start + c, start + d)
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]


def _costly(old: list[str], new: list[str]) -> bool:
    """Whether comparing could take long: very many lines, or lines repeated very often."""
    if max(len(old), len(new)) > _MAX_COMPARED:
        return True
    times = Counter(new)
    return sum(times[line] for line in old) > _MAX_PAIRS


def _rows(first: list[str], second: list[str], changes: list[_Change]) -> _Rows:
    rows = _Rows()
    shown = 0
    next_begins = [*(change.a for change in changes[1:]), len(first)]
    for change, next_begin in zip(changes, next_begins, strict=True):
        begin = max(shown, change.a - CONTEXT_LINES)
        _add_gap(rows, begin - shown)
        rows.add("same", first[begin : change.a])
        rows.add("cut", first[change.a : change.b])
        rows.add("add", second[change.c : change.d])
        shown = min(next_begin, change.b + CONTEXT_LINES)
        rows.add("same", first[change.b : shown])
    _add_gap(rows, len(first) - shown)
    return rows


def _add_gap(rows: _Rows, lines: int) -> None:
    if lines > 0:
        rows.add("gap", [_count(lines, "unchanged line", "unchanged lines")])


def _preview(path: str, note: str, rows: _Rows) -> JsonObject:
    lines: list[Row] = []
    for kind, text in rows.kept:
        # A carriage return would be lost in HTML, and with it the reason for a change.
        line = text.removesuffix("\n").replace("\r", "\N{SYMBOL FOR CARRIAGE RETURN}")
        lines.append([kind, _shortened(line)])
        # Otherwise a change of only the last line break would show two equal lines.
        if kind in ("add", "cut") and not text.endswith("\n"):
            lines.append(["gap", _NO_NEWLINE])
    if rows.more:
        lines.append(["gap", f"{_count(rows.more, 'more line is', 'more lines are')} not shown"])
    return {"kind": "diff", "path": path, "note": note, "lines": lines}


def _shortened(line: str) -> str:
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]}… ({len(line) - MAX_LINE_CHARS:,} more characters)"


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
