"""What a page shows of a run that stands still: its card, and calls of which nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

HaltedWhy = Literal["stopped", "paused", "differs", "waits"]
"""The server was stopped while the run was under way, a person paused it, it does not fit what the
server has now, or its open calls need a server that is not connected."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The question whether a call ran; see `RecoveryRequired`. Its key is answered once."""

    key: str


@dataclass(frozen=True, slots=True)
class Halted:
    """A run that goes on when a person says so, or is left as it is.

    While `questions` of it are open, it goes on with an answer to one of them, too.
    """

    kind: ClassVar[str] = "halted"
    run_id: str
    why: HaltedWhy
    words: str = ""
    questions: int = 0
