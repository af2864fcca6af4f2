"""Texts that a person decides on: what is not drawn in them is spelled out, none of it dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from markupsafe import Markup, escape

from web.harness.tools.glyphs import BLANKS, columns, is_mark, is_unseen

_MOST_ON_ONE_LINE = 3
_MOST_COLUMNS = 40
_MOST_LINE_ENDS = 10
"""So many blanks stay. Beyond these a text could leave the part of the page that is looked at."""
_MOST_MARKS = 5
"""On one letter. Languages need no more; many more reach over the lines around it."""
_MOST_ALIKE = 3
"""Of the same hidden character in a row; more are counted."""

_ONE_LINE_SPACES = rf" {{{_MOST_ON_ONE_LINE + 1},}}"
# No fewer of them can be too many, since no blank is wider than four columns.
_SPACE = rf"(?:[{BLANKS}\n]|\r\n){{{_MOST_LINE_ENDS + 1},}}+"
_TOO_EMPTY = re.compile(rf"(?:[{BLANKS}]*+\r?\n){{{_MOST_LINE_ENDS + 1},}}+")
_BETWEEN_LINE_ENDS = re.compile(rf"[{BLANKS}]++|\r?\n")

_STRETCH_CHARS = 32 * 1024
_MOST_CHARS = 8 * _STRETCH_CHARS
"""A text where so many of them have no place for a cut is no text of any language."""
_CUT = re.compile(r"[\w!-~](?=[\w!-~]|[ \n][\w!-~])")
"""After a character that is drawn, before another or what is one blank only."""

_MANY_BLANKS = re.compile(rf"[ \n]{{{_MOST_LINE_ENDS + 1}}}")

_EMOJI_PARTS = re.compile("(?<=[\u2190-\u2bff\u3030-\u3299\U0001f000-\U0001faff])\ufe0f(?!\ufe0f)")
_JOINED_EMOJI = re.compile(
    "(?<=[\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2600-\u2bff\U0001f000-\U0001faff])"
)


def spelled(text: str, one_line: bool = False) -> str:
    """The text with `⟨U+202E⟩` for each character that is not drawn, `⟨3,000 blanks⟩` for many.

    A text of `one_line` has no line ends, tabs or odd blanks either: of a command they are a part
    as any other. Elsewhere they stay, few as they are.
    """
    return "".join(mark or plain for plain, mark in _pieces(text, one_line))


def visible(text: str, one_line: bool = False) -> Markup:
    """As `spelled`, as HTML that sets what is spelled out apart from the same words in the text."""
    html = "".join(
        f'<span class="spelled">{escape(mark)}</span>' if mark else escape(plain)
        for plain, mark in _pieces(text, one_line)
    )
    return Markup(html)  # noqa: S704 (every piece is escaped)


def hides(value: Any, one_line: bool = False) -> bool:
    """Whether anything has to be spelled out in a text, or in any text of a JSON value."""
    if isinstance(value, str):
        return any(
            mark
            for each in _stretches(value)
            if one_line or not _is_usual(each)
            for _, mark in _pieces(each, one_line)
        )
    if isinstance(value, dict):
        return hides(value.keys(), one_line) or hides(value.values(), one_line)
    return isinstance(value, Iterable) and any(hides(each, one_line) for each in value)


def exact_json(value: Any) -> str:
    """Indented JSON to be edited, in which each character that is not drawn is an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    pattern = "|".join(_singles(_spelled_out(text) - {"\n"}) + _crowds(text))
    return re.sub(pattern, lambda found: json.dumps(found[0])[1:-1], text) if pattern else text


def _is_usual(text: str) -> bool:
    """Whether it is plain to see that nothing in it has to be spelled out; most texts are so."""
    return (
        text.isascii()
        and text.replace("\n", "").isprintable()
        and _MANY_BLANKS.search(text) is None
    )


def _stretches(text: str) -> Iterator[str]:
    """A text in parts, cut only where nothing that is spelled out reaches over the cut. In a thread
    others run in between."""
    start = 0
    while len(text) - start > _STRETCH_CHARS:
        most = start + _MOST_CHARS
        cut = _CUT.search(text, start + _STRETCH_CHARS, most)
        end = cut.end() if cut else most
        yield text[start:end]
        start = end
    yield text[start:]


def _pieces(text: str, one_line: bool) -> Iterator[tuple[str, str]]:
    """Parts of a text and what each is spelled as; '' for those that are shown as they are."""
    kept = _kept(text)
    at = 0
    for match in _pattern(text, one_line).finditer(text):
        if match.start() in kept:
            continue
        yield text[at : match.start()], ""
        yield from _spelled_run(match[0], one_line)
        at = match.end()
    yield text[at:], ""


def _pattern(text: str, one_line: bool) -> re.Pattern[str]:
    """All that may have to be spelled out in this text."""
    chars = _spelled_out(text)
    if one_line:
        chars |= set(text) & {"\n", *BLANKS} - {" "}
        return re.compile("|".join([_ONE_LINE_SPACES, *_crowds(text), *_singles(chars)]))
    # A carriage return before a line end is drawn as that line end.
    returns = [r"(?:\r(?!\n))+"] if "\r" in chars else []
    return re.compile("|".join([_SPACE, *_crowds(text), *returns, *_singles(chars - {"\r"})]))


def _singles(chars: set[str]) -> list[str]:
    """Any of these, with those alike after it. One set: of many characters it is fast too."""
    return [rf"([{''.join(map(re.escape, sorted(chars)))}])\1*"] if chars else []


def _crowds(text: str) -> list[str]:
    marks = "".join(sorted(char for char in set(text) if is_mark(char)))
    return [f"[{marks}]{{{_MOST_MARKS + 1},}}"] if marks else []


def _kept(text: str) -> set[int]:
    """Where one of them is a part of an emoji."""
    if "\ufe0f" not in text and "\u200d" not in text:
        return set()
    patterns = (_EMOJI_PARTS, _JOINED_EMOJI)
    return {match.start() for pattern in patterns for match in pattern.finditer(text)}


def _spelled_out(text: str) -> set[str]:
    return {char for char in set(text) if char not in "\n\t" and is_unseen(char)}


def _spelled_run(run: str, one_line: bool) -> Iterator[tuple[str, str]]:
    first = run[0]
    if is_mark(first):
        yield run[:_MOST_MARKS], ""
        more = run[_MOST_MARKS:]
        yield more, _code(more) if len(more) == 1 else f"⟨{len(more):,} combining marks⟩"
    elif one_line and first == " ":
        yield run, f"⟨{len(run):,} blanks⟩"
    elif not one_line and (first == "\n" or first in BLANKS or run[:2] == "\r\n"):
        yield from _spelled_space(run)
    else:
        alike = f"⟨{len(run):,} times U+{ord(first):04X}⟩"
        yield run, alike if len(run) > _MOST_ALIKE else _code(first) * len(run)


def _spelled_space(space: str) -> Iterator[tuple[str, str]]:
    """Blanks and line ends in a row, of which there may be too many."""
    empty = _TOO_EMPTY.match(space)
    start = empty.end() if empty else 0
    if empty:
        yield empty[0], f"⟨{empty[0].count(chr(10)):,} line ends⟩\n"
    for part in _BETWEEN_LINE_ENDS.findall(space, start):
        yield part, f"⟨{len(part):,} blanks⟩" if columns(part) > _MOST_COLUMNS else ""


def _code(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"
