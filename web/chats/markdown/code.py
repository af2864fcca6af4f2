"""A code block between fences, which only ever grows by lines, and text shown as it stands."""

from __future__ import annotations

import re

from .blocks import Block
from .holding import fence_shown
from .limits import Limits
from .modes import AfterBlock, Step, child
from .parser import Definitions
from .white import BLANK

_BLANK_LINE = re.compile(r"\n[ \t]*\n")


class OpenFence:
    """A code block from the line after its opening fence. Nothing in it has to be parsed.

    Beyond `cut` it is shown in pieces. If it turns out to be short enough to be highlighted, the
    pieces are withdrawn at its end.
    """

    def __init__(
        self, number: int, limits: Limits, after: AfterBlock, marker: str, indent: int, info: str
    ) -> None:
        self._number = number
        self._limits = limits
        self._after = after
        self._marker = marker
        self._indent = indent
        self._info = info
        self._end = re.compile(rf"^ {{0,3}}{re.escape(marker)}{re.escape(marker[0])}*[ \t]*$", re.M)
        self._content: list[str] = []
        self._length = 0
        self._pieces = 0
        self._checked = 0
        self._line_start = True

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        """Cut off complete pieces; leave at the closing fence."""
        lines = len(text) if final else text.rfind("\n") + 1
        first = 0 if self._line_start else text.find("\n") + 1 or len(text)
        closing = self._end.search(text, max(self._checked, first), lines)
        self._checked = lines
        if closing:
            body, used = text[: closing.start()], min(closing.end() + 1, len(text))
        elif final:
            # As in markdown-it, white space after the last line end is not a line.
            begin = max(text.rfind("\n") + 1, first)
            body, used = text[: None if text[begin:].strip(BLANK) else begin], len(text)
        else:
            body, used = text[: max(fence_shown(text, self._marker), first)], len(text)
        ended = final or closing is not None
        closed, taken = self._cut_off(body)
        self._checked = max(self._checked - taken, 0)
        rest = self._dedent(body[taken:])
        if ended:
            return self._close(closed, rest, used)
        if self._length + len(rest) <= self._limits.cut and not self._pieces:
            return Step(live=[self._whole("".join(self._content) + rest, True)], used=taken)
        return Step(closed, [self._shell(), *([self._piece(rest, True)] if rest else [])], taken)

    def grow(self, text: str, fresh: int) -> Block | None:
        """See `Mode`."""
        return None

    def patient(self, text: str) -> bool:
        """See `Mode`."""
        return False

    def _cut_off(self, body: str) -> tuple[list[Block], int]:
        """Complete pieces of the body, and how much of it they are."""
        if not self._pieces and len(body) <= self._limits.cut:
            return [], 0
        closed: list[Block] = []
        taken = 0
        while len(body) - taken >= 2 * self._limits.piece:
            line = body.find("\n", taken + self._limits.piece - 1, taken + 2 * self._limits.piece)
            end = line + 1 if line >= 0 else taken + 2 * self._limits.piece
            piece = self._dedent(body[taken:end])
            closed.append(self._piece(piece, False))
            self._remember(piece)
            self._pieces += 1
            self._line_start = body[end - 1] == "\n"
            taken = end
        return closed, taken

    def _remember(self, piece: str) -> None:
        self._length += len(piece)
        if self._length <= self._limits.highlight:
            self._content.append(piece)
        else:
            self._content.clear()

    def _close(self, closed: list[Block], rest: str, used: int) -> Step:
        then = self._after(self._number + 1)
        if self._length + len(rest) <= self._limits.highlight or not self._pieces:
            whole = self._whole("".join(self._content) + rest, False)
            gone = [child(self._number, index) for index in range(self._pieces)]
            return Step([whole], used=used, then=then, gone=gone)
        if not (rest.endswith("\n") or (not rest and self._line_start)):
            rest += "\n"
        last = [self._piece(rest, False)] if rest else []
        return Step([self._shell(), *closed, *last], used=used, then=then)

    def _dedent(self, text: str) -> str:
        """Take the opening fence's indentation off each line, as far as the line has it."""
        if not self._indent or not text:
            return text
        lines = text.split("\n")
        first = 0 if self._line_start else 1
        lines[first:] = [_without_indent(line, self._indent) for line in lines[first:]]
        return "\n".join(lines)

    def _whole(self, source: str, open_: bool) -> Block:
        return Block(str(self._number), None, "fence", source, open=open_, info=self._info)

    def _shell(self) -> Block:
        return Block(str(self._number), None, "code", "", info=self._info)

    def _piece(self, source: str, open_: bool) -> Block:
        key = child(self._number, self._pieces)
        return Block(key, str(self._number), "lines", source, open=open_)


class LiteralText:
    """A block beyond the limits, shown as it stands up to the first blank line after them.

    `crossed`: the offset, from the block's start, at which the limit was crossed.
    """

    def __init__(self, number: int, limits: Limits, after: AfterBlock, crossed: int) -> None:
        self._number = number
        self._limits = limits
        self._after = after
        self._crossed = crossed
        self._pieces = 0

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        """Cut off complete pieces; leave at a blank line."""
        end = literal_end(text, self._crossed)
        body = text if end is None else text[:end]
        closed = []
        taken = 0
        while len(body) - taken >= 2 * self._limits.piece:
            closed.append(self._piece(body[taken : taken + self._limits.piece], False))
            self._pieces += 1
            taken += self._limits.piece
        if end is not None or final:
            closed.append(self._piece(body[taken:].rstrip("\n"), False))
            closed.insert(0, self._shell())
            return Step(closed, used=len(body), then=self._after(self._number + 1))
        self._crossed = max(self._crossed - taken, len(text) - taken - _tail_space(text))
        live = [self._shell(), self._piece(body[taken:].rstrip("\n"), True)]
        return Step(closed, live, taken)

    def grow(self, text: str, fresh: int) -> Block | None:
        """See `Mode`."""
        return None

    def patient(self, text: str) -> bool:
        """See `Mode`."""
        return False

    def _shell(self) -> Block:
        return Block(str(self._number), None, "literal", "")

    def _piece(self, source: str, open_: bool) -> Block:
        key = child(self._number, self._pieces)
        return Block(key, str(self._number), "text", source, open=open_)


def literal_end(text: str, crossed: int) -> int | None:
    """Where the plain text ends that a block beyond the limits is shown as."""
    found = _BLANK_LINE.search(text, crossed)
    return found.start() + 1 if found else None


def _tail_space(text: str) -> int:
    """How much of the text's end could be the start of a blank line."""
    return len(text) - len(text.rstrip(BLANK))


def _without_indent(line: str, indent: int) -> str:
    """A line without that many columns of white space."""
    column = 0
    for position, char in enumerate(line):
        if column >= indent:
            return " " * (column - indent) + line[position:]
        if char == " ":
            column += 1
        elif char == "\t":
            column += 4 - column % 4
        else:
            return line[position:]
    return " " * max(column - indent, 0)
