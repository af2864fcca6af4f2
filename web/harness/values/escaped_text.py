"""A text without its escapes, that knows where in the escaped one each character stands."""

from __future__ import annotations

import re
from bisect import bisect_left

_ESCAPE = re.compile(r"""\\(?:u([0-9A-Fa-f]{4})|(["'\\/bfnrt]))""")
_MEANT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Unescaped:
    """`text` as it reads without its outermost escapes, also where it is no JSON as a whole.

    A pair of surrogates stays two characters: this is for looking, not for keeping.
    """

    def __init__(self, escaped: str) -> None:
        pieces: list[str] = []
        self._at: list[int] = []
        self._more: list[int] = [0]
        end = length = 0
        for found in _ESCAPE.finditer(escaped):
            number, letter = found.groups()
            pieces += (
                escaped[end : found.start()],
                chr(int(number, 16)) if number else _MEANT.get(letter, letter),
            )
            length += found.start() - end
            self._at.append(length)
            length += 1
            end = found.end()
            self._more.append(end - length)
        pieces.append(escaped[end:])
        self.text = "".join(pieces)

    def place(self, index: int) -> int:
        """Where in the escaped text the character at `index` begins; the end for its length."""
        return index + self._more[bisect_left(self._at, index)]
