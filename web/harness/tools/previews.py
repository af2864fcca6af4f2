"""What a person is shown before a call runs: whole, line by line, and in short for an event.

A tool makes its preview whole. The events of a run carry the short form of it; whoever keeps the
question keeps the whole, see `KeepQuestion`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from web.harness.tools.glyphs import BLANKS
from web.harness.values.events import ApprovalRequired
from web.harness.values.messages import JsonObject

MAX_SHORT_LINES = 400
MAX_SHORT_LINE_CHARS = 500
MAX_SHORT_CHARS = 4_000
"""Of the text of a preview in short; of a difference there are lines instead."""

MAX_WHOLE_CHARS = 6 * 1024 * 1024
"""Of a preview as it is kept: a text of any size that can be compared, and what replaces it."""

KeepQuestion = Callable[[ApprovalRequired], None]
"""Takes each question as it is put, with its preview whole, for a person to see all of it."""


class Block(NamedTuple):
    """One line of a preview or several, of the kind same, add, cut, gap, or text."""

    kind: str
    text: str


class Row(NamedTuple):
    """What is shown in one line, and how many lines of the preview it stands for."""

    kind: str
    text: str
    lines: int = 1


MAX_BLANK_LINES = 10
_BLANK_LINES = re.compile(rf"(?:[{BLANKS}]*+[\r\N{{SYMBOL FOR CARRIAGE RETURN}}]?\n)++")
_LOOK_CHARS = 64 * 1024
"""So far it is looked for more of them at once: nothing else runs meanwhile, in no thread."""
_OF_KIND = {"add": " are added", "cut": " are removed", "same": " stay"}


def bounded(preview: JsonObject) -> JsonObject:
    """The preview with at most `MAX_WHOLE_CHARS`; `left_out` counts the characters beyond."""
    if preview_chars(preview) <= MAX_WHOLE_CHARS:
        return preview
    kept = dict(preview)
    room = MAX_WHOLE_CHARS
    if "text" in preview:
        kept["text"] = str(preview["text"])[:room]
        room -= len(kept["text"])
    for name in ("lines", "files"):
        if name in preview:
            kept[name] = []
            for title, text in preview[name]:
                kept[name].append([title, text[:room]])
                room -= len(kept[name][-1][1])
    return {**kept, "left_out": preview_chars(preview) - preview_chars(kept)}


def preview_chars(preview: JsonObject) -> int:
    """The length of all texts in it."""
    pairs = (*preview.get("lines", ()), *preview.get("files", ()))
    return len(str(preview.get("text", ""))) + sum(len(text) for _, text in pairs)


def in_short(preview: JsonObject) -> JsonObject:
    """The beginning of it. `more` counts what is not, or not wholly, in there: the characters of a
    text, the lines of a difference, after which words say how many there are."""
    if preview.get("kind") != "diff":
        short = {name: value for name, value in preview.items() if name != "files"}
        if "text" in preview:
            short["text"] = str(preview["text"])[:MAX_SHORT_CHARS]
        more = preview_chars(preview) - preview_chars(short)
        return {**short, "more": more} if more else short
    rows: list[list[str]] = []
    hidden = shortened = 0
    for block in preview_blocks(preview):
        hidden += count_lines(block.text)
        for kind, line, lines in islice(rows_of(block), MAX_SHORT_LINES - len(rows)):
            shortened += len(line) > MAX_SHORT_LINE_CHARS
            rows.append([kind, _shortened(line)])
            hidden -= lines
    if hidden:
        what = "1 more line is" if hidden == 1 else f"{hidden:,} more lines are"
        rows.append(["gap", f"{what} not shown here"])
    more = hidden + shortened
    return {**preview, "lines": rows, "more": more} if more else {**preview, "lines": rows}


def preview_blocks(preview: JsonObject) -> Iterator[Block]:
    """All of it but what lies in `files`, in order."""
    if preview.get("kind") == "diff":
        yield from (Block(kind, text) for kind, text in preview.get("lines", ()))
    elif preview.get("text"):
        yield Block("text", str(preview["text"]))


def rows_of(block: Block) -> Iterator[Row]:
    """Its lines; of more than `MAX_BLANK_LINES` blank ones, a gap that says how many they are.

    Each row costs no more than what it stands for, and the rows that nobody takes cost nothing.
    """
    kind, text = block
    start = 0
    while start < len(text):
        end = _blank_end(text, start)
        lines = text.count("\n", start, end)
        if lines > MAX_BLANK_LINES:
            yield Row("gap", f"{lines:,} blank lines{_OF_KIND.get(kind, '')}", lines)
        elif lines:
            yield from (Row(kind, line) for line in lines_of(text[start:end]))
        else:
            end = text.find("\n", start) + 1 or len(text)
            yield Row(kind, text[start:end].removesuffix("\n"))
        start = end
    if not text:
        yield Row(kind, "")


def _blank_end(text: str, start: int) -> int:
    """Where the blank lines end that begin there; `start` itself where there are none."""
    while start < len(text):
        line_end = text.find("\n", start + _LOOK_CHARS) + 1
        found = _BLANK_LINES.match(text, start, line_end or len(text))
        if found is None:
            break
        start = found.end()
        if start != line_end:
            break
    return start


def count_lines(text: str) -> int:
    """How many `lines_of` gives."""
    return text.count("\n") + (not text.endswith("\n"))


def lines_of(text: str) -> Iterator[str]:
    """Lines without their breaks, split at newlines alone; of a last break nothing follows."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    if start < len(text) or not text:
        yield text[start:]


def _shortened(line: str) -> str:
    if len(line) <= MAX_SHORT_LINE_CHARS:
        return line
    more = len(line) - MAX_SHORT_LINE_CHARS
    return f"{line[:MAX_SHORT_LINE_CHARS]}… ({more:,} more characters)"
