"""Lists and tables that are cut: into items, and into groups of rows."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from .blocks import Block
from .code import LiteralText
from .holding import shown
from .limits import Limits
from .modes import AfterBlock, Mode, Patience, Step, child, preview, visible
from .parser import (
    Definitions,
    Top,
    count_cells,
    items,
    line_starts,
    overflow,
    parse,
    until_crossed,
)
from .white import BLANK

_MOST_CELLS = 256
_PLAIN_ROWS = re.compile(r"(?:[ ]{0,3}[|A-Za-z][^\n]*(?:\n|\Z))*")
"""Lines that cannot end a table."""
_PLAIN_ITEM = re.compile(r"[ ]{0,3}(?:[-+*]|\d{1,9}[.)])[ ]{1,4}(?:[A-Za-z]|\*\*[A-Za-z])[^\n]*")
"""An item of one line, which more text in this line leaves what it is."""


class CutList:
    """A list of which only the last item is open. The text begins with that item.

    What an item is parsed after, its `head`, is an item of the same list that is indented as far as
    can be, so that nothing that follows can be part of it.
    """

    def __init__(self, number: int, limits: Limits, after: AfterBlock, top: Top) -> None:
        opening = top.tokens[0]
        self._number = number
        self._limits = limits
        self._after = after
        self._tag = opening.tag
        start = opening.attrs.get("start")
        self._start = int(start) if start is not None else None
        marker = f"1{opening.markup}" if opening.tag == "ol" else opening.markup
        self._head = f"   {marker}    x\n"
        self._items: list[Block] = []
        self._count = 0
        self._loose = False
        self._plain = False
        self._patience = Patience()

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        """Let items go that are followed by another; leave when the list has ended."""
        part, whole = visible(text, shown(text), final)
        # An item that was shown may look like something else for a while, say a definition.
        part = part or text
        offset = len(self._head)
        parsed = parse(self._head + part, known, self._limits)
        top = parsed.tops[0]
        over = overflow(parsed, self._head + part, self._limits)
        if over and over[0] < top.end:
            return self._overflow(part, known, (over[0] - offset, over[1] - offset))
        places = [parsed.lines[item[0].map[0]] for item in items(top)[1:] if item[0].map]
        places = [place - offset for place in places]
        end = top.end - offset
        below = len(parsed.tops) > 1 and parsed.tops[1].start - offset < whole
        ended = final or below or parsed.last_definition >= top.end
        closed = [] if top.tokens[2].hidden else self._loosen()
        last = len(places) if ended else max(_index_of_last(places, whole), 0)
        blocks = [
            self._item(part[place:stop], not ended and index >= last)
            for index, (place, stop) in enumerate(pairwise([*places, end]))
        ]
        closed += blocks[:last]
        if not self._loose:
            self._items += blocks[:last]
        live = blocks[last:]
        self._count -= len(live)
        used = end if ended else places[last] if places else 0
        found = parsed.defined_before(used + offset)
        self._patience.parsed(len(text) - used)
        if ended:
            closed.insert(0, self._shell())
            return Step(closed, used=used, then=self._after(self._number + 1), found=found)
        self._plain = used == 0 and part == text and bool(_PLAIN_ITEM.fullmatch(text))
        live = [self._shell(), *live, *preview(self._after, self._number + 1, text, end)]
        return Step(closed, live, used, found=found, local=parsed.definitions)

    def grow(self, text: str, fresh: int) -> Block | None:
        """See `Mode`."""
        if not self._plain or "\n" in text[-fresh:] or len(text) > self._limits.piece:
            self._plain = False
            return None
        block = self._item(text, True)
        self._count -= 1
        return block

    def patient(self, text: str) -> bool:
        """See `Mode`."""
        return self._patience.holds(len(text))

    def _overflow(self, part: str, known: Definitions, over: tuple[int, int]) -> Step:
        """End the list before an item that is beyond the limits, and may have made it loose."""
        place, crossed = over
        number = self._number + (1 if self._count or place else 0)
        seen = parse(self._head + until_crossed(part, over), known, self._limits)
        loosened = [] if seen.tops[0].tokens[2].hidden else self._loosen()
        step = Step()
        if place:
            step = self.advance(part[:place], known, True)
        elif self._count:
            step.closed.append(self._shell())
        step.closed += loosened
        step.then = LiteralText(number, self._limits, self._after, crossed - place)
        step.used = place
        return step

    def _loosen(self) -> list[Block]:
        """The items that are final but have to change, because the list has turned out loose."""
        self._loose = True
        changed = [replace(item, loose=True) for item in self._items]
        self._items.clear()
        return changed

    def _shell(self) -> Block:
        return Block(str(self._number), None, "list", "", info=self._tag, start=self._start)

    def _item(self, source: str, open_: bool) -> Block:
        self._count += 1
        return Block(
            child(self._number, self._count - 1),
            str(self._number),
            "item",
            source,
            open=open_,
            loose=self._loose,
            head=self._head,
        )


class CutTable:
    """A table of which only the last group of rows is open. The text begins with that group."""

    def __init__(self, number: int, limits: Limits, after: AfterBlock, head: str) -> None:
        self._number = number
        self._limits = limits
        self._after = after
        self._head = head
        self._columns = count_cells(head.partition("\n")[0])
        self._missing = 0
        self._count = 0
        self._patience = Patience()

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        """Let complete groups of rows go; leave when the table has ended."""
        part, whole = visible(text, shown(text, header=False), final)
        rows, end, over = self._rows(part, known)
        ended = final or end < whole
        if over is not None:
            end, ended = over, True
        closed: list[Block] = []
        begin = 0
        missing = self._missing
        count = 0
        for place, stop in rows:
            if stop > min(end, whole):
                break
            missing += self._columns - count_cells(part[place:stop])
            if missing > self._limits.missing:
                end, ended, over = place, True, None
                break
            count += 1
            if stop - begin >= self._limits.piece or count * self._columns >= _MOST_CELLS:
                closed.append(self._group(part[begin:stop], False))
                self._count += 1
                self._missing = missing
                begin, count = stop, 0
        self._patience.parsed(len(text) - begin)
        if not ended:
            live = [self._shell()]
            if part[begin:end].strip(BLANK):
                live.append(self._group(part[begin:end], True))
            return Step(closed, live + preview(self._after, self._number + 1, text, end), begin)
        if part[begin:end].strip(BLANK):
            closed.append(self._group(part[begin:end], False))
        then: Mode = self._after(self._number + 1)
        if over is not None:
            then = LiteralText(self._number + 1, self._limits, self._after, self._limits.unit)
        return Step([self._shell(), *closed], used=end, then=then)

    def grow(self, text: str, fresh: int) -> Block | None:
        """See `Mode`."""
        return None

    def patient(self, text: str) -> bool:
        """See `Mode`."""
        return self._patience.holds(len(text))

    def _rows(self, part: str, known: Definitions) -> tuple[list[tuple[int, int]], int, int | None]:
        """Where rows begin and end, where the table ends, and where a row is that is too long."""
        if _PLAIN_ROWS.fullmatch(part):
            starts = line_starts(part)
            rows, end = list(pairwise(starts)), len(part)
        else:
            offset = len(self._head)
            parsed = parse(self._head + part, known, self._limits)
            places = [token.map for token in parsed.tops[0].tokens if token.type == "tr_open"]
            lines = [place - offset for place in parsed.lines]
            rows = [(lines[place[0]], lines[place[1]]) for place in places[1:] if place]
            end = parsed.tops[0].end - offset
        long = [start for start, stop in rows if stop - start > self._limits.unit]
        over = next((row for row in long if _too_long(part, row, self._limits)), None)
        return rows, end, over

    def _shell(self) -> Block:
        return Block(str(self._number), None, "table", self._head)

    def _group(self, source: str, open_: bool) -> Block:
        key = child(self._number, self._count)
        return Block(key, str(self._number), "rows", source, open=open_, head=self._head)


def _index_of_last(places: list[int], whole: int) -> int:
    """The last item that begins with a whole line: those before it are final."""
    return max((index for index, place in enumerate(places) if place < whole), default=0)


def _too_long(part: str, row: int, limits: Limits) -> bool:
    line = part[row:].partition("\n")[0]
    return len(line.rstrip(BLANK)) > limits.unit
