"""Texts that a person decides on: what is not drawn in them is spelled out, none of it dropped."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from web.harness.mcp.wording import is_unseen

_ONE_LINE_BLANKS = r" {4,}"
_BLANKS = r"[ \t]{41,}"
_EMPTY_LINES = r"(?:[ \t]*\n){11,}"
"""Beyond these a text could leave the part of the page that is looked at."""

_EMOJI_PARTS = re.compile("(?<=[\u2190-\u2bff\u3030-\u3299\U0001f000-\U0001faff])\ufe0f")
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
        return any(mark for _, mark in _pieces(value, one_line))
    if isinstance(value, dict):
        return hides(value.keys(), one_line) or hides(value.values(), one_line)
    return isinstance(value, Iterable) and any(hides(each, one_line) for each in value)


def exact_json(value: Any) -> str:
    """Indented JSON to be edited, in which each character that is not drawn is an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    for char in _spelled_out(text) - {"\n"}:
        text = text.replace(char, json.dumps(char)[1:-1])
    return text


def _pieces(text: str, one_line: bool) -> Iterable[tuple[str, str]]:
    """Parts of a text and what each is spelled as; '' for those that are shown as they are."""
    pattern, kept = _pattern(text, one_line)
    at = 0
    for match in pattern.finditer(text):
        if match.start() in kept:
            continue
        yield text[at : match.start()], ""
        yield match[0], _mark(match[0])
        at = match.end()
    yield text[at:], ""


def _pattern(text: str, one_line: bool) -> tuple[re.Pattern[str], set[int]]:
    """What is spelled out in this text, and where one of it may stay: within an emoji."""
    chars = _spelled_out(text)
    if one_line:
        chars |= {char for char in set(text) if char in "\n\t" or _is_odd_blank(char)}
        runs = [_ONE_LINE_BLANKS]
    else:
        runs = [_EMPTY_LINES, _BLANKS]
    # A carriage return before a line end is drawn as that line end.
    singles = [r"\r(?!\n)" if char == "\r" and not one_line else re.escape(char) for char in chars]
    kept = {
        match.start()
        for pattern in (_EMOJI_PARTS, _JOINED_EMOJI)
        if chars & {"\ufe0f", "\u200d"}
        for match in pattern.finditer(text)
    }
    return re.compile("|".join([*runs, *sorted(singles)])), kept


def _spelled_out(text: str) -> set[str]:
    return {char for char in set(text) if _is_never_shown(char)}


@lru_cache(maxsize=4096)
def _is_never_shown(char: str) -> bool:
    return char not in "\n\t" and (is_unseen(char) or char in "\u2028\u2029\x85")


def _is_odd_blank(char: str) -> bool:
    return char != " " and unicodedata.category(char) == "Zs"


def _mark(hidden: str) -> str:
    lines = hidden.count("\n")
    if len(hidden) > 1:
        what = f"{lines:,} line ends" if lines else f"{len(hidden):,} blanks"
        return f"⟨{what}⟩" + ("\n" if lines else "")
    return f"⟨U+{ord(hidden):04X}⟩"
