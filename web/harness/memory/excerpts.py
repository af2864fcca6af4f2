"""The part of a text that tells most of what was asked."""

from __future__ import annotations

import re

from web.harness.memory.words import fold, words_of

_PIECE = re.compile(r"\S+")
_MAX_LOOKED_AT = 20_000
"""Pieces between white space of a long text that are looked at."""


def excerpt(text: str, query: str, chars: int) -> str:
    """At most `chars` characters of the text, with as many of the query's words as there are in
    any one place; marked where something is left out."""
    if len(text) <= chars:
        return text
    start = _start(text, set(words_of(query, asked=True)), chars)
    end = start + chars
    if end < len(text):
        end = max(start + chars // 2, text.rfind(" ", start, end))
    cut = text[start:end].strip()
    return f"{'… ' if start else ''}{cut}{' …' if end < len(text) else ''}"


def _start(text: str, wanted: set[str], chars: int) -> int:
    found: list[tuple[int, str]] = []
    for _, piece in zip(range(_MAX_LOOKED_AT), _PIECE.finditer(text), strict=False):
        # A piece of a script without spaces may be a whole paragraph.
        words = wanted.intersection(words_of(piece[0])) if len(piece[0]) < 200 else wanted
        for word in words:
            at = fold(piece[0]).find(word)
            if at >= 0:
                found.append((piece.start() + min(at, len(piece[0]) - 1), word))
    best, most = 0, 0
    first = 0
    for last in range(len(found)):
        while found[last][0] - found[first][0] > chars * 2 // 3:
            first += 1
        inside = len({word for _, word in found[first : last + 1]})
        if inside > most:
            best, most = found[first][0], inside
    # A little of what stands before, from the beginning of a word.
    start = max(0, best - chars // 6)
    if start:
        space = text.find(" ", start, best)
        start = space + 1 if space >= 0 else start
    return start
