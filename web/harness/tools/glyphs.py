"""Which characters are drawn as nothing, as a blank, or upon the letter before them."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_UNSEEN = frozenset(
    # Default ignorable by the Unicode standard, though letters or marks.
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
    # An empty pattern of dots, a place for an object, fillers, a note without a head.
    "\u2800\ufffc\U00013441\U00013442\U00016fe4\U0001d159"
)
_SELECTORS = (("\ufe00", "\ufe0f"), ("\U000e0100", "\U000e01ef"))

BLANKS = "\t" + "".join(
    char for char in map(chr, range(0x10000)) if unicodedata.category(char) == "Zs"
)
"""All that only leave room within a line; none lies beyond the first plane."""

_WIDE = frozenset("\u2001\u2003\u3000")


@lru_cache(maxsize=4096)
def is_unseen(char: str) -> bool:
    """Whether a character is drawn as nothing, or changes only how others are drawn.

    Line ends and tabs are among them; blanks are not, see `BLANKS`.
    """
    if char.isascii():
        return not char.isprintable()
    return (
        unicodedata.category(char) in _UNSEEN_CATEGORIES
        or char in _UNSEEN
        or any(first <= char <= last for first, last in _SELECTORS)
    )


@lru_cache(maxsize=4096)
def is_mark(char: str) -> bool:
    """Whether it is drawn upon the letter before it, so that many reach over other lines."""
    return unicodedata.category(char)[0] == "M" and not is_unseen(char)


def columns(blanks: str) -> int:
    """About how many spaces are as wide as these blanks are at most."""
    return len(blanks) + 3 * blanks.count("\t") + sum(char in _WIDE for char in blanks)
