"""Where the inline content of a paragraph can be cut.

A cut is a place where no inline construct is open, whatever comes after it: rendering the pieces
one by one gives what rendering the whole gives. The scanner is careful and not clever. It knows
constructs that close in the plain way; at anything else it stops cutting. What stays open for too
long is cut all the same, and `too_heavy` says so of the segment, which is then shown as plain text.
The cuts depend on the text alone, not on the pieces it came in.
"""

from __future__ import annotations

import re

from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace

SHORTEST = 48
HEAVIEST = 3000
_WEIGHT = 16
_SPECIAL = re.compile(r"[`*_~\[\]<$\\]|://")
_COUNTED = re.compile(r"[`*_~\[\]<$\\&@:!/]")
_CUT = re.compile(
    r"(?<=[^\s\\])[ \n](?=\S)"
    r"|(?<=[\u3001\u3002\uff0c\uff01\uff1a\uff1b\uff1f])(?=[\u3040-\u30ff\u4e00-\u9fff])"
)
_BACKTICKS = re.compile(r"`+")
_ANGLE = re.compile(
    r"<(?:br[ \t]?/?>|[A-Za-z][A-Za-z0-9+.\-]{1,31}:[^<>\x00-\x20]*>"
    r"|[^<>\x00-\x20@]+@[^<>\x00-\x20]*>)",
    re.IGNORECASE,
)
_OPEN_ANGLE = re.compile(r"<(?:[^<>\x00-\x20]*|br[ \t]?/?)\Z", re.IGNORECASE)
_LINK_TAIL = re.compile(
    r"\([ \t\n]*(?:<[^<>()\n\\]*>|[^\s<>()\\]*)"
    r"(?:[ \t\n]+(?:\"[^\"()\\]*\"|'[^'()\\]*'))?[ \t\n]*\)"
)
_NO_LINK_TAIL = re.compile(r"\([ \t\n]*[^\s<>()\\\"']+[ \t\n]+[^\s()\"']")
_URL_REST = re.compile(r"[*)\].,;:!?\"']+\Z")
_ODD_URL = re.compile(r"[*~`\[\]$\\<]|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_")
_SPACE = re.compile(r"\s")
_STUCK = ("", 0)
_SURELY_LIGHT = HEAVIEST // (1 + 3 * _WEIGHT)

DOLLAR = re.compile(r"\$(?![\s$])((?:[^$\\\n]|\\[^\n]){1,300})(?<!\s)\$(?![\d$])")
DOLLARS = re.compile(r"\$\$(?!\$)((?:[^$\\]|\\[\s\S]|\$(?!\$)){1,2000})\$\$")
PAREN = re.compile(r"\\\(((?:(?!\\\))[\s\S]){1,1000})\\\)")
BRACKET = re.compile(r"\\\[((?:(?!\\\])[\s\S]){1,2000})\\\]")
MONEY = re.compile(r"\d[\d.,]*[A-Za-z]?\s+[A-Za-z]{2,}")
_OPEN_DOLLAR = re.compile(r"\$(?:(?![\s$])(?:[^$\\\n]|\\[^\n]){0,300}\\?\$?)?\Z")


def too_heavy(segment: str) -> bool:
    """Whether this segment was cut only because nothing in it closed."""
    if len(segment) <= _SURELY_LIGHT:
        return False
    # A bracket counts three times: the parser looks for its end again and again.
    specials = len(_COUNTED.findall(segment)) + 2 * segment.count("[")
    return len(segment) + _WEIGHT * specials > HEAVIEST


def math_at(text: str, at: int, end: int) -> tuple[str, bool, int] | None:
    """The formula that begins at `at`: its source, whether it is display math, and its end."""
    if text.startswith("$$", at):
        found, display = DOLLARS.match(text, at, end), True
    elif text.startswith("$", at):
        found, display = DOLLAR.match(text, at, end), False
        if found and MONEY.match(found.group(1)):
            return None
    elif text.startswith("\\(", at):
        found, display = PAREN.match(text, at, end), False
    elif text.startswith("\\[", at):
        found, display = BRACKET.match(text, at, end), True
    else:
        return None
    return (found.group(1), display, found.end()) if found else None


class InlineScanner:
    """Finds the cuts of a text that grows at its end."""

    def __init__(self, shortest: int = SHORTEST) -> None:
        self._shortest = shortest
        self.cuts: list[int] = []
        self._start = 0
        self._position = 0
        self._open: list[tuple[str, int]] = []
        self._weighed = 0
        self._specials = 0

    def scan(self, text: str) -> None:
        """Look at what is new. `text` is all of the text so far."""
        while True:
            near = min(len(text), self._start + _SURELY_LIGHT)
            if self._advance(text, near):
                continue
            if near == len(text):
                return
            border = self._border(text)
            if self._advance(text, min(len(text), border + 1)):
                continue
            if len(text) <= border:
                return
            self._cut(border)

    def _advance(self, text: str, end: int) -> bool:
        """Go on to `end`, as if the text ended there, or to the next cut: True if there is one."""
        while self._position < end:
            found = _SPECIAL.search(text, self._position, end)
            stop = found.start() if found else end - _begun(text, end)
            if not self._open:
                begin = max(self._start + self._shortest, self._position - 1)
                cut = _CUT.search(text, begin, min(stop + 1, end)) if begin < stop else None
                if cut is not None and cut.start() < stop:
                    self._cut(cut.start())
                    return True
            self._position = stop
            position = self._special(text, stop, found.group(), end) if found else None
            if position is None:
                return False
            self._position = position
        return False

    def _border(self, text: str) -> int:
        """Where the text since the last cut becomes too heavy, if it went on with plain letters."""
        while True:
            border = self._start + HEAVIEST + 1 - _WEIGHT * self._specials
            found = _COUNTED.search(text, self._weighed, max(border, self._weighed))
            if found is None:
                return max(border, self._weighed)
            self._specials += 3 if found.group() == "[" else 1
            self._weighed = found.end()

    def _cut(self, place: int) -> None:
        self.cuts.append(place)
        self._start = self._position = self._weighed = place
        self._specials = 0
        self._open.clear()

    def _special(self, text: str, at: int, mark: str, end: int) -> int | None:
        """Step over the construct at `at`; None if it cannot be told yet where it ends."""
        match mark:
            case "`":
                return self._code(text, at, end)
            case "\\":
                return self._escape(text, at, end)
            case "$":
                return self._math(text, at, end)
            case "<":
                return self._angle(text, at, end)
            case "://":
                return self._address(text, at, end)
            case "[":
                self._open.append(("[", at))
                return at + 1
            case "]":
                return self._bracket(text, at, end)
            case _:
                return self._delimiter(text, at, end)

    def _code(self, text: str, at: int, end: int) -> int | None:
        run = _BACKTICKS.match(text, at, end)
        if run is None or run.end() == end:
            return None
        for closing in _BACKTICKS.finditer(text, run.end(), end):
            if len(closing.group()) == len(run.group()) and closing.end() < end:
                return closing.end()
        return None

    def _escape(self, text: str, at: int, end: int) -> int | None:
        if at + 1 >= end:
            return None
        pattern, most = {"(": (PAREN, 1004), "[": (BRACKET, 2004)}.get(text[at + 1], (None, 1))
        found = pattern.match(text, at, end) if pattern else None
        if found:
            return found.end()
        return at + 2 if end > at + most else None

    def _math(self, text: str, at: int, end: int) -> int | None:
        if text.startswith("$$", at):
            if at + 2 >= end:
                return None
            found = DOLLARS.match(text, at, end)
            if found:
                return found.end()
            return self._stuck(at + 2) if end > at + 2004 else None
        if _OPEN_DOLLAR.match(text, at, end):
            return None
        found = DOLLAR.match(text, at, end)
        return found.end() if found and not MONEY.match(found.group(1)) else at + 1

    def _angle(self, text: str, at: int, end: int) -> int | None:
        found = _ANGLE.match(text, at, end)
        if found:
            return found.end()
        return None if _OPEN_ANGLE.match(text, at, end) else at + 1

    def _address(self, text: str, at: int, end: int) -> int | None:
        space = _SPACE.search(text, at, end)
        if space is None:
            return None
        address = text[at : space.start()]
        rest = _URL_REST.search(address, 3)
        body = address[: rest.start()] if rest else address
        place = at + max(len(body), 3)
        return self._stuck(place) if _ODD_URL.search(body, 3) else place

    def _bracket(self, text: str, at: int, end: int) -> int | None:
        if at + 1 >= end:
            return None
        if all(kind != "[" for kind, _ in self._open):
            return at + 1
        if self._open[-1][0] != "[":
            return self._stuck(at + 1)
        _, begin = self._open.pop()
        if text[at + 1] != "(":
            return at + 1
        if _NO_LINK_TAIL.match(text, at + 1, end):
            return at + 1
        if text.find(")", at + 1, end) == -1:
            self._open.append(("[", begin))
            return None
        tail = _LINK_TAIL.match(text, at + 1, end)
        if tail:
            odd = re.search(r"[*_~`$]", tail.group())
            nested = "[" in text[begin + 1 : at]
            return self._stuck(tail.end()) if odd and nested else tail.end()
        return self._stuck(at + 1)

    def _delimiter(self, text: str, at: int, end: int) -> int | None:
        mark = text[at]
        stop = at
        while stop < end and text[stop] == mark:
            stop += 1
        if stop >= end:
            return None
        length = stop - at
        opens, closes = _flanks(text, at, stop)
        if (mark == "~" and length == 1) or not (opens or closes):
            return stop
        if mark == "~" and length != 2:
            return self._stuck(stop)
        if closes and any(kind == mark for kind, _ in self._open):
            if self._open[-1] != (mark, length):
                return self._stuck(stop)
            self._open.pop()
        elif opens:
            self._open.append((mark, length))
        return stop

    def _stuck(self, place: int) -> int:
        self._open.append(_STUCK)
        return place


def _begun(text: str, end: int) -> int:
    """How much of the mark of an address has been seen at the end."""
    return 2 if text.endswith(":/", 0, end) else 1 if text.endswith(":", 0, end) else 0


def _flanks(text: str, at: int, stop: int) -> tuple[bool, bool]:
    """Whether the delimiter run can open and can close emphasis."""
    before = text[at - 1] if at else " "
    after = text[stop]
    space_before, space_after = isWhiteSpace(ord(before)), isWhiteSpace(ord(after))
    punct_before, punct_after = _punctuation(before), _punctuation(after)
    left = not space_after and (not punct_after or space_before or punct_before)
    right = not space_before and (not punct_before or space_after or punct_after)
    if text[at] == "_":
        return left and (not right or punct_before), right and (not left or punct_after)
    return left, right


def _punctuation(char: str) -> bool:
    return isMdAsciiPunct(ord(char)) or isPunctChar(char)
