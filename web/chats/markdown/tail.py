"""The usual mode: a short text after the last final block is parsed whole each time it grows."""

from __future__ import annotations

import re

from .blocks import Block
from .code import LiteralText, OpenFence
from .holding import shown
from .limits import Limits
from .modes import Mode, Patience, Step, visible
from .paragraph import CutParagraph, OpenParagraph
from .parser import LISTS, Definitions, Parsed, Top, ends_blank, may_define, overflow, parse
from .rows import CutList, CutTable
from .white import BLANK

_FENCE = re.compile(r"([ ]{0,3})(`{3,}|~{3,})(.*)")


class Tail:
    """Short blocks. `number` is that of the first block in the text."""

    def __init__(self, number: int, limits: Limits) -> None:
        self._number = number
        self._limits = limits
        self._paragraph = OpenParagraph()
        self._open: Block | None = None
        self._begin = 0
        self._patience = Patience()

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        """Let all blocks go but the last one that begins with a whole line."""
        self._open = None
        part, whole = visible(text, shown(text), final)
        parsed = parse(part, known, self._limits)
        over = overflow(parsed, part, self._limits)
        if over:
            return self._overflow(parsed, part, known, *over)
        if final:
            blocks = [self._block(i, top, part, False) for i, top in enumerate(parsed.tops)]
            then = Tail(self._number + len(blocks), self._limits)
            return Step(blocks, used=len(text), then=then, found=parsed.definitions)
        if not parsed.tops:
            return self._without_blocks(part[:whole], parsed, len(text))
        if parsed.last_definition >= parsed.tops[-1].end:
            return self._before_definitions(parsed, part, len(text))
        last = max((i for i, top in enumerate(parsed.tops) if top.start < whole), default=0)
        closed = [self._block(i, top, part, False) for i, top in enumerate(parsed.tops[:last])]
        used = parsed.tops[last].start
        if _after_definition(parsed.tops[last], part):
            used = parsed.tops[last - 1].end if last else 0
        cut = self._cut(parsed, last, part, whole)
        if cut:
            place, mode = cut
            return Step(closed, used=place, then=mode, found=parsed.defined_before(place))
        live = [self._block(i, top, part, True) for i, top in enumerate(parsed.tops) if i >= last]
        found = parsed.defined_before(used)
        self._watch(parsed, part, text, live[-1])
        top = parsed.tops[-1]
        growing = len(text) - (top.end if ends_blank(part[:whole]) else top.start)
        self._patience.parsed(len(text) - used, growing)
        self._number += last
        self._begin -= used
        return Step(closed, live, used, found=found, local=parsed.definitions)

    def grow(self, text: str, fresh: int) -> Block | None:
        """See `Mode`."""
        if self._open is None or len(text) > self._limits.cut:
            return None
        paragraph = self._paragraph
        if not paragraph.continues(text[-fresh:]):
            self._open = None
            return None
        paragraph.become(text[self._begin :])
        return self._open_block(self._open.key)

    def patient(self, text: str) -> bool:
        """See `Mode`."""
        if self._open is not None:
            return self._paragraph.waits(len(text) - self._begin)
        return self._patience.holds(len(text))

    def _block(self, index: int, top: Top, part: str, open_: bool) -> Block:
        key = str(self._number + index)
        token = top.tokens[0]
        if top.type == "fence":
            return Block(
                key, None, "fence", token.content, open=open_, info=token.info.strip(BLANK)
            )
        if top.type == "paragraph_open":
            self._paragraph.become(top.tokens[1].content)
            source, cuts = self._paragraph.source, self._paragraph.cuts
            return Block(key, None, "paragraph", source, open=open_, cuts=cuts)
        return Block(key, None, "markdown", part[top.start : top.end], open=open_)

    def _open_block(self, key: str) -> Block:
        paragraph = self._paragraph
        return Block(key, None, "paragraph", paragraph.source, open=True, cuts=paragraph.cuts)

    def _watch(self, parsed: Parsed, part: str, text: str, block: Block) -> None:
        """Remember an open paragraph that may go on with the very next letter."""
        top = parsed.tops[-1]
        if block.kind != "paragraph" or part != text or top.end != len(text):
            return
        if not block.source or may_define(block.source) or _after_definition(top, part):
            return
        self._begin = part.index(block.source[0], top.start)
        self._paragraph.become(part[self._begin :])
        self._open = block

    def _cut(self, parsed: Parsed, last: int, part: str, whole: int) -> tuple[int, Mode] | None:
        """The mode for the last block, if it is long, and where its text begins."""
        top = parsed.tops[last]
        if last != len(parsed.tops) - 1:
            return None
        number = self._number + last
        limits = self._limits
        size = top.end - top.start
        token = top.tokens[0]
        if top.type == "fence":
            line = part.find("\n", top.start) + 1
            opening = _FENCE.match(part, top.start)
            if not 0 < line <= whole or opening is None:
                return None
            indent, marker, _ = opening.groups()
            info = token.info.strip(BLANK)
            return line, OpenFence(number, limits, self._after, marker, len(indent), info)
        if top.type in LISTS and size > limits.cut // 8:
            return top.start, CutList(number, limits, self._after, top)
        if top.type == "table_open":
            rows = parsed.lines[(token.map or [0])[0] + 2]
            head = part[top.start : rows]
            if head.endswith("\n"):
                return rows, CutTable(number, limits, self._after, head)
        source = top.tokens[1].content if top.type == "paragraph_open" else ""
        long = len(source) > limits.cut or source.count("\n") > 2 * limits.lines
        if not long or may_define(source) or _after_definition(top, part):
            return None
        begin = part.index(source[0], top.start)
        return begin, CutParagraph(number, limits, self._after)

    def _after(self, number: int) -> Mode:
        return Tail(number, self._limits)

    def _before_definitions(self, parsed: Parsed, part: str, length: int) -> Step:
        """All blocks are final, because something begins below them that they do not go on with."""
        closed = [self._block(i, top, part, False) for i, top in enumerate(parsed.tops)]
        used = parsed.tops[-1].end
        self._number += len(closed)
        self._patience.parsed(length - used)
        found = parsed.defined_before(used)
        return Step(closed, used=used, found=found, local=parsed.definitions)

    def _without_blocks(self, lines: str, parsed: Parsed, length: int) -> Step:
        """Nothing but blank lines and definitions: let go those that are complete."""
        used = 0
        if ends_blank(lines):
            used = len(lines)
        elif len(lines) > self._limits.piece and parsed.last_definition > 0:
            used = parsed.last_definition
        self._patience.parsed(length - used)
        found = parsed.defined_before(used)
        return Step(used=used, found=found, local=parsed.definitions)

    def _overflow(
        self, parsed: Parsed, part: str, known: Definitions, place: int, crossed: int
    ) -> Step:
        """Everything before the place is final, and what follows is shown as it stands."""
        inside = next((top for top in parsed.tops if top.start < place < top.end), None)
        if inside is not None and inside.type in LISTS:
            blocks = [
                self._block(i, top, part, False)
                for i, top in enumerate(parsed.tops)
                if top.start < inside.start
            ]
            then: Mode = CutList(self._number + len(blocks), self._limits, self._after, inside)
            found = parsed.defined_before(inside.start)
            return Step(blocks, used=inside.start, then=then, found=found)
        parsed = parse(part[:place], known, self._limits)
        blocks = [self._block(i, top, part, False) for i, top in enumerate(parsed.tops)]
        number = self._number + len(blocks)
        then = LiteralText(number, self._limits, self._after, crossed - place)
        return Step(blocks, used=place, then=then, found=parsed.definitions)


def _after_definition(top: Top, part: str) -> bool:
    """Whether this paragraph could turn out to be the title of the definition above it."""
    above = part[: top.start].rstrip(" ")
    if not above.strip(BLANK) or above.endswith("\n\n"):
        return False
    return part[top.start : top.end].lstrip(BLANK).startswith(('"', "'", "("))
