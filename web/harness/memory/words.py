"""The words of a text in any language, in the form by which they are found.

Case, accents and forms of the same letter do not matter. Scripts that put no space between words
(Chinese, Japanese, Thai, ...) are cut into pairs of neighbouring letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

MAX_WORD_CHARS = 64
"""Of a longer one, such as an address or a key, the beginning counts."""

# Vowel signs that belong to a word and are no letters to Python.
_SIGNS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0963\u0971-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84"
    "\u102b-\u103e\u17b4-\u17d3\u1a55-\u1a7f\u1dc0-\u1dff"
)
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_WORD = re.compile(rf"(?:[^\W_]|[{_SIGNS}])+")

# Marks that are written or left out as one likes: accents, Hebrew and Arabic vowels.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0640]"
)
_ALIKE = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe"}
)

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_PIECE = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")


def fold(text: str) -> str:
    """The text in the form in which texts are compared: no case, no accents, one form a letter."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", plain).translate(_ALIKE)


def words_of(text: str, *, asked: bool = False) -> Iterator[str]:
    """The words of a text, in order and as often as they are there.

    Of a script without spaces these are pairs of letters, and in a text that is kept single letters
    too, so that one that is `asked` for alone is found.
    """
    if text.isascii():
        for word in _ASCII_WORD.findall(text.lower()):
            yield word[:MAX_WORD_CHARS]
        return
    for match in _WORD.finditer(fold(text)):
        word = match[0]
        if word.isascii() or not _IS_UNSPACED.search(word):
            yield word[:MAX_WORD_CHARS]
            continue
        for piece in _PIECE.findall(word):
            if _IS_UNSPACED.match(piece):
                yield from _pairs(piece, asked)
            else:
                yield piece[:MAX_WORD_CHARS]


def _pairs(piece: str, asked: bool) -> Iterator[str]:
    for first, second in pairwise(piece):
        yield first + second
    if not asked or len(piece) == 1:
        yield from piece


def is_pair(word: str) -> bool:
    """Whether it is made of letters of a script without spaces: nothing begins with it."""
    return not word.isascii() and _IS_UNSPACED.match(word) is not None
