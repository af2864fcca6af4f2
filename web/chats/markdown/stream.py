"""The markdown of one answer while it is written."""

from __future__ import annotations

import logging
import re
from collections import deque

from web.harness.values.text import sayable

from .blocks import Block, Removed
from .code import LiteralText
from .ledger import Ledger
from .limits import DEFAULT, Limits
from .modes import Mode
from .tail import Tail
from .white import BLANK

log = logging.getLogger(__name__)


class MarkdownStream:
    """Splits a growing text into blocks; see blocks.py for what these are.

    `feed` only keeps the text. `settle` looks at a bounded part of what is new and hands out a
    bounded part of what changed, so one call never takes long; `pending` says whether another call
    has something to do. A block that cannot be cut and is long is looked at when it has grown by an
    eighth, or by a settle with nothing new.

    Whatever goes wrong in a mode ends no answer: it is logged, and from the block on where it
    happened the text is shown as it stands. `mode`: the mode to begin with.
    """

    def __init__(self, limits: Limits = DEFAULT, mode: Mode | None = None) -> None:
        self._limits = limits
        self._mode: Mode = mode or Tail(0, limits)
        self._ledger = Ledger()
        self._text: list[str] = []
        self._fed: deque[str] = deque()
        self._backlog = 0
        self._tail = ""
        self._shorter = Spaces(limits)
        self._return = False
        self._unseen = False
        self._finished = False
        self._done = False

    @property
    def text(self) -> str:
        """All of the text so far, with `\\n` as the line end."""
        if len(self._text) > 1:
            self._text = ["".join(self._text)]
        return self._text[0] if self._text else ""

    @property
    def pending(self) -> bool:
        """Whether the next settle has work to do or changes to hand out."""
        unseen = self._fed or self._unseen or (self._finished and not self._done)
        return bool(unseen or self._ledger.queued)

    @property
    def backlog(self) -> int:
        """Characters that no settle has looked at."""
        return self._backlog

    def feed(self, text: str) -> None:
        """Append to the text. Raises ValueError after `finish`."""
        if self._finished:
            raise ValueError("the text is complete")
        if self._return:
            text = "\r" + text
            self._return = False
        if "\r" in text:
            self._return = text.endswith("\r")
            text = text[: len(text) - self._return].replace("\r\n", "\n").replace("\r", "\n")
        self._append(text)

    def finish(self) -> None:
        """The text is complete: nothing is held back any more."""
        if self._return:
            self._return = False
            self._append("\n")
        self._finished = True

    def settle(self) -> list[Block | Removed]:
        """What changed, in the order of the text. Empty when nothing did."""
        fresh = self._next()
        if fresh or self._unseen or (self._finished and not self._done):
            self._tail += fresh
            final = self._finished and not self._fed
            try:
                self._advance(len(fresh), final)
            except Exception:
                log.exception("markdown that cannot be split is shown as it stands")
                self._unseen = False
                self._mode = self._plain(self._ledger.abandon())
                self._parse(final)
            self._done = final
        return self._ledger.take(2 * self._limits.step)

    def _append(self, text: str) -> None:
        if text:
            text = self._shorter.feed(clean(text))
            step = self._limits.step
            self._fed.extend(text[place : place + step] for place in range(0, len(text), step))
            self._backlog += len(text)
            self._text.append(text)

    def _next(self) -> str:
        """A bounded part of what was fed since the last settle."""
        text = ""
        while self._fed and len(text) < self._limits.step:
            text += self._fed.popleft()
        step = min(self._limits.step, len(text))
        lines = text[:step].split("\n", self._limits.lines)
        if len(lines) > self._limits.lines:
            step -= len(lines[-1])
        if len(text) > step:
            self._fed.appendleft(text[step:])
        self._backlog -= step
        return text[:step]

    def _advance(self, fresh: int, final: bool) -> None:
        """Look at the tail, of which so many characters are new."""
        mode = self._mode
        if fresh and not final:
            hurried = self._unseen
            self._unseen = True
            if mode.patient(self._tail):
                return
            grown = None if hurried else mode.grow(self._tail, fresh)
            self._unseen = False
            if grown:
                self._ledger.grow(grown)
                return
        self._unseen = False
        self._parse(final)

    def _parse(self, final: bool) -> None:
        """Look at the tail in one mode after the other, until a mode wants more text."""
        ledger = self._ledger
        while True:
            step = self._mode.advance(self._tail, ledger.definitions, final)
            ledger.define(step.found)
            ledger.publish(step.closed, step.live, step.local, step.gone, step.again)
            self._tail = self._tail[step.used :]
            if step.then is None:
                return
            self._mode = step.then
            if final and not self._tail:
                return

    def _plain(self, number: int) -> Mode:
        return LiteralText(number, self._limits, self._plain, 0)


class Spaces:
    """Shortens endless white space, which parsers take long to look at."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.spaces
        self._long = re.compile(rf"([ \t\n]{{{self._most}}})[ \t\n]+")
        self._run = 0

    def feed(self, text: str) -> str:
        """The next piece of a text, with what is too much left out."""
        rest = text.lstrip(BLANK)
        lead = len(text) - len(rest)
        text = text[: min(lead, self._most - self._run)] + rest
        if len(rest) > self._most:
            text = self._long.sub(r"\1", text)
        run = len(text) - len(text.rstrip(BLANK))
        self._run = run if rest else self._run + run
        return text


def clean(text: str) -> str:
    """The text without what no page can hold: NUL and half characters become U+FFFD."""
    return sayable(text.replace("\0", "\ufffd"))
