"""What a mode is: the way to go on with the text from the last place that is final.

A stream is in one mode at a time: `tail.Tail` for short open blocks, and one for each kind of block
that is long enough to be cut. A mode holds what it has to know of the block that is cut; the text
before the mode's own start is final and is never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from .blocks import Block
from .parser import Definitions


@dataclass(slots=True)
class Step:
    """What looking at a text brought.

    `closed`: blocks that are final. `live`: blocks that still grow. `used`: how much of the text
    is final. `then`: the mode for the rest, None to stay. `found`: definitions that are final,
    `local`: those that are not. `gone`: keys of final children that are withdrawn after all.
    `again`: the shell of what is closed has changed.
    """

    closed: list[Block] = field(default_factory=list)
    live: list[Block] = field(default_factory=list)
    used: int = 0
    then: Mode | None = None
    found: dict[str, tuple[str, str]] = field(default_factory=dict)
    local: dict[str, tuple[str, str]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    again: bool = False


class Mode(Protocol):
    """One way to go on. `text` is always all of the text since the mode's start."""

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        """Look at the text. `final`: nothing comes after it."""

    def grow(self, text: str, fresh: int) -> Block | None:
        """The quick way, if the last `fresh` characters only make an open paragraph longer."""

    def patient(self, text: str) -> bool:
        """Whether the text has grown too little since the last look to be worth another one."""


AfterBlock = Callable[[int], Mode]
"""Makes the mode that follows a cut block, from the number of the next block."""


class Patience:
    """What is long and has to be parsed again whole is parsed when it has grown by an eighth."""

    def __init__(self) -> None:
        self._parsed = 0
        self._growing = 0

    def parsed(self, length: int, growing: int | None = None) -> None:
        """A text of this length has been parsed and is still open.

        `growing`: how much of it is the last block, if not all: the start of a new block is shown
        at once, however long the block before it is.
        """
        self._parsed = length
        self._growing = length if growing is None else growing

    def holds(self, length: int) -> bool:
        """Whether to wait."""
        fresh = length - self._parsed
        return self._growing + fresh > 512 and fresh < self._growing // 8


def visible(text: str, shown: int, final: bool) -> tuple[str, int]:
    """The part of a text to show, and how much of that is whole lines."""
    if final:
        return text, len(text)
    return text[:shown], min(text.rfind("\n") + 1, shown)


def child(number: int, index: int) -> str:
    """The key of a child."""
    return f"{number}-{index}"


def preview(after: AfterBlock, number: int, text: str, end: int) -> list[Block]:
    """What the unfinished line after a cut block shows, though it may yet belong to that block."""
    if end >= len(text):
        return []
    return after(number).advance(text[end:], {}, False).live
