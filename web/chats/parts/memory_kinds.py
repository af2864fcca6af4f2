"""The kinds of part that show what is remembered of a person.

All texts in here are a stranger's words: a model may have written them, or a program on disk. A
`ref` names a memory in addresses; its own id may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

MemoryOf = Literal["fact", "note"]


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A fact, or a note with a title, or a note with a `fault`, which cannot be read.

    `text` is a fact's own and how a note begins. `tags` are a note's, or the category of a fact.
    `updated` is in seconds since 1970.
    """

    kind: ClassVar[str] = "memory"
    ref: str
    of: MemoryOf
    title: str
    text: str
    tags: tuple[str, ...]
    updated: float
    fault: str = ""


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Whether a chat uses what is remembered, and how much that is.

    `shown` memories are listed. `faults` are in lines: what could not be read, and why. While it is
    `waiting`, nobody has looked yet.
    """

    kind: ClassVar[str] = "memory_state"
    on: bool
    facts: int = 0
    notes: int = 0
    shown: int = 0
    faults: tuple[str, ...] = ()
    waiting: bool = False


MemoryData = ShownMemory | MemoryState
