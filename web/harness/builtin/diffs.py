"""What a write would change, as lines that a person can read: all of them."""

from __future__ import annotations

import difflib
from collections import Counter
from typing import NamedTuple

from web.harness.values.messages import JsonObject

CONTEXT_LINES = 3

_MAX_PAIRS = 20_000
_MAX_COMPARED = 5_000
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
    one line or several of a kind.
    """
    if before == after:
        return _preview(path, "No change", [])
    first, second = _lines(before), _lines(after)
    changes = _changes(first, second)
    count = sum(max(change.b - change.a, change.d - change.c) for change in changes)
    note = f"The file exists. {_count(count, 'line changes', 'lines change')}."
    return _preview(path, note, _blocks(first, second, changes))


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


def _blocks(first: list[str], second: list[str], changes: list[_Change]) -> list[Block]:
    blocks: list[Block] = []

    def add(kind: str, lines: list[str]) -> None:
        if lines:
            blocks.append([kind, "".join(lines)])

    shown = 0
    next_begins = [*(change.a for change in changes[1:]), len(first)]
    for change, next_begin in zip(changes, next_begins, strict=True):
        begin = max(shown, change.a - CONTEXT_LINES)
        add("gap", _gap(begin - shown))
        add("same", first[begin : change.a])
        add("cut", first[change.a : change.b])
        add("add", second[change.c : change.d])
        shown = min(next_begin, change.b + CONTEXT_LINES)
        add("same", first[change.b : shown])
    add("gap", _gap(len(first) - shown))
    return blocks


def _gap(lines: int) -> list[str]:
    return [_count(lines, "unchanged line", "unchanged lines")] if lines > 0 else []


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
