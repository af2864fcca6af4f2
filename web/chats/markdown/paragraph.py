"""An open paragraph: it grows by plain text, and when it is long it is cut between sentences."""

from __future__ import annotations

import re

from .blocks import Block
from .holding import shown
from .inline import InlineScanner
from .limits import Limits
from .modes import AfterBlock, Patience, Step, child, preview, visible
from .parser import Definitions, parse
from .white import trimmed_end

_NEW_LINE = re.compile(r"\n(?![A-Za-z])")


class OpenParagraph:
    """The inline content of one paragraph, or of one piece of it, and where it can be cut."""

    def __init__(self) -> None:
        self.raw = ""
        self._scanner = InlineScanner()
        self._shown = 0

    @property
    def source(self) -> str:
        """The content as it is rendered."""
        return trimmed_end(self.raw)

    @property
    def cuts(self) -> tuple[int, ...]:
        """Where it can be cut."""
        cuts = self._scanner.cuts
        if cuts and cuts[-1] >= len(self.raw) - 1:
            length = len(self.source)
            return tuple(cut for cut in cuts if cut < length)
        return tuple(cuts)

    def become(self, raw: str) -> None:
        """Take this content; what was scanned of it before is not scanned again."""
        if not raw.startswith(self.raw):
            self._scanner = InlineScanner()
        self.raw = raw
        self._shown = len(raw)
        self._scanner.scan(raw)

    def drop(self, length: int) -> None:
        """Take away the beginning, up to a cut."""
        rest = self.raw[length:]
        self.raw = ""
        self._scanner = InlineScanner()
        self.become(rest)

    def continues(self, fresh: str) -> bool:
        """Whether fresh text can be nothing but more of this paragraph."""
        if not self.raw:
            return False
        if self.raw[-1] == "\n" and not (fresh[0].isascii() and fresh[0].isalpha()):
            return False
        return "\n" not in fresh or _NEW_LINE.search(fresh) is None

    def waits(self, length: int) -> bool:
        """Whether the part that is rendered again each time has grown too little to be shown."""
        cuts = self._scanner.cuts
        last = length - (cuts[-1] if cuts else 0)
        return last > 512 and length - self._shown < last // 8


class CutParagraph:
    """A paragraph of which only the last piece is open. The text begins with that piece."""

    def __init__(self, number: int, limits: Limits, after: AfterBlock) -> None:
        self._number = number
        self._limits = limits
        self._after = after
        self._pieces: list[Block] = []
        self._open = OpenParagraph()
        self._line = 0
        self._live = False
        self._patience = Patience()

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        """Cut off complete pieces; leave when the paragraph has ended."""
        part, whole = visible(text, shown(text), final)
        prefix = "x" * (self._limits.line + 1 if self._line else 1)
        first = parse(prefix + part, known, self._limits).tops[0]
        end = first.end - len(prefix)
        if first.type == "heading_open":
            heading = first.tokens[1].content[len(prefix) :]
            return self._become_heading(first.tokens[0].tag, heading, end)
        self._open.become(part[:end])
        closed = self._cut_off()
        self._patience.parsed(len(text) - end + len(self._open.raw))
        if final or end < whole:
            if self._open.source:
                closed.append(self._piece(self._open.source, False))
            closed.insert(0, self._shell("p"))
            return Step(closed, used=end, then=self._after(self._number + 1))
        live = [self._shell("p")]
        if self._open.source:
            live.append(self._piece(self._open.source, True))
        live += preview(self._after, self._number + 1, text, end)
        self._live = part == text and end == len(part)
        return Step(closed, live, used=end - len(self._open.raw))

    def grow(self, text: str, fresh: int) -> Block | None:
        """See `Mode`."""
        open_ = self._open
        if not self._live or len(open_.raw) > 2 * self._limits.piece:
            return None
        if not open_.continues(text[-fresh:]):
            self._live = False
            return None
        open_.become(text)
        return self._piece(open_.source, True)

    def patient(self, text: str) -> bool:
        """See `Mode`."""
        return self._open.waits(len(text)) if self._live else self._patience.holds(len(text))

    def _cut_off(self) -> list[Block]:
        """Take complete pieces off the open one."""
        closed = []
        while cut := self._next_cut():
            raw = self._open.raw
            cuts = tuple(place for place in self._open.cuts if place < cut)
            closed.append(self._piece(raw[:cut], False, cuts))
            self._pieces.append(closed[-1])
            line = raw.rfind("\n", 0, cut)
            self._line = 0 if raw[cut] == "\n" else cut - line - 1 + (self._line if line < 0 else 0)
            self._open.drop(cut)
        return closed

    def _next_cut(self) -> int | None:
        """The first place at which a complete piece can end.

        Not where the next line may still be an underline, or a delimiter row that makes this one
        a table's header; a line that is too long for a header may be cut in any case.
        """
        raw = self._open.raw
        for cut in self._open.cuts:
            if cut < self._limits.piece and raw.count("\n", 0, cut) < self._limits.lines:
                continue
            if self._is_text_below(cut):
                return cut
            if raw[cut] == "\n":
                continue
            line = raw.rfind("\n", 0, cut)
            if cut - line - 1 + (self._line if line < 0 else 0) > self._limits.line:
                return cut
        return None

    def _is_text_below(self, place: int) -> bool:
        """Whether the line below the one at a place is there, and is more of the paragraph."""
        raw = self._open.raw
        below = raw.find("\n", place) + 1
        if not below:
            return False
        return raw[below:].lstrip(" \t")[:1] not in ("", *"|:-=") or raw.find("\n", below) != -1

    def _become_heading(self, tag: str, rest: str, used: int) -> Step:
        """The line below was an underline: all of the pieces are a heading's."""
        self._open.become(rest)
        closed = [self._shell(tag), *self._pieces]
        if self._open.source:
            closed.append(self._piece(self._open.source, False))
        return Step(closed, used=used, then=self._after(self._number + 1), again=True)

    def _shell(self, tag: str) -> Block:
        return Block(str(self._number), None, "paragraphs", "", info=tag)

    def _piece(self, source: str, open_: bool, cuts: tuple[int, ...] | None = None) -> Block:
        return Block(
            child(self._number, len(self._pieces)),
            str(self._number),
            "span",
            source,
            open=open_,
            cuts=self._open.cuts if cuts is None else cuts,
        )
