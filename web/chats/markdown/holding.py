"""What of the last, unfinished line is not shown yet, because it may still become a marker.

A line that begins with two backticks may be code in a sentence or the start of a code block. Until
that is decided it is held back, so that nothing is shown as text first and as code later.
"""

from __future__ import annotations

import re

from .white import BLANK

_PREFIX = re.compile(
    r"(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t])(?:[ \t]+\[[ xX]\](?=[ \t]))?))*[ \t]*"
)
"""Quotes, bullets and numbers, and a task after one: inside a task there may be a list."""
_MARKER = re.compile(
    r"""(?:
        [ \t]*                              # indentation
      | `{1,2} | `{3,}[^`]*                 # the start of a fence
      | ~{1,2} | ~{3,}.*
      | \#{1,6}[ \t]*                       # a heading
      | [-+*_=|: \t]+                       # a bullet, a rule, an underline, a delimiter row
      | \d{1,9}[.)]?[ \t]*                  # a number
      | \[(?:[ xX](?:\][ \t]*)?)?           # a task
      | \[(?:[^\[\]\\]|\\.)+\]:.*           # a definition
      | \${1,2}[ \t]* | \\\[?[ \t]*         # display math
    )\Z""",
    re.VERBOSE,
)
_ROW = re.compile(r"[ \t>]*[|:\-][-:| \t]*\Z|[ \t>]*\Z")
_HEADER = re.compile(r"[ \t>]*\|")


def shown(text: str, header: bool = True) -> int:
    """How much of a text that ends with an unfinished line can be shown, as an offset.

    `header`: whether a line that begins with `|` may be the header of a table.
    """
    begin = text.rfind("\n") + 1
    end = len(text)
    if begin < end:
        inner = _PREFIX.match(text, begin)
        if _MARKER.match(text, inner.end() if inner else begin):
            end = begin
    above = text.rfind("\n", 0, max(begin - 1, 0)) + 1
    if not header:
        return end
    if above < begin and _HEADER.match(text, above) and _ROW.match(text, begin):
        before = text.rfind("\n", 0, max(above - 1, 0)) + 1
        return min(end, _header(text, above, before))
    if _HEADER.match(text, begin):
        return min(end, _header(text, begin, above))
    return end


def _header(text: str, line: int, above: int) -> int:
    """The line's begin, if it may be a table's header; the text's end if it is one more row."""
    if above < line and _HEADER.match(text, above):
        return len(text)
    return line


def fence_shown(text: str, marker: str) -> int:
    """As `shown`, inside a code block that `marker` opened: only its end has to be held back."""
    begin = text.rfind("\n") + 1
    rest = text[begin:].strip(BLANK)
    return begin if not rest.strip(marker[0]) else len(text)
