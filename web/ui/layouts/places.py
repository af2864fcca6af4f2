"""A few places to work, shared out so that no person and no chat holds them all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Budget:
    """What laying out one file may take, how many work at once, and how many more may wait.

    Of those that wait so many may be of one chat, and so many of one person.
    """

    seconds: float = 5.0
    memory_bytes: int = 768 * 1024 * 1024
    at_once: int = 2
    waiting: int = 12
    waiting_of_chat: int = 4
    waiting_of_person: int = 8
    waiting_seconds: float = 20.0


class NotLaidOut(Exception):
    """A file that was not laid out; `words` say why, as a whole sentence."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class Whose(NamedTuple):
    """For whom, and for which chat of theirs, somebody works."""

    person: str
    chat: str


NOBODY = Whose("", "")


class Places:
    """Places to work, and to wait for one.

    The next is whoever's person has the fewest places, then whoever's chat; else the first that
    came.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._working: list[Whose] = []
        self._waiting: dict[asyncio.Future[None], Whose] = {}

    @asynccontextmanager
    async def take(self, whose: Whose = NOBODY) -> AsyncIterator[None]:
        """A place to work. Raises NotLaidOut where too many wait, or it takes too long."""
        if len(self._working) < self._budget.at_once:
            self._working.append(whose)
        else:
            await self._wait(whose)
        try:
            yield
        finally:
            self._leave(whose)

    async def _wait(self, whose: Whose) -> None:
        if not self._may_wait(whose):
            raise _busy()
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = whose
        try:
            async with asyncio.timeout(self._budget.waiting_seconds):
                await asyncio.shield(turn)
        except BaseException as fault:
            # It may have got its place in the same moment.
            if self._waiting.pop(turn, None) is None:
                self._leave(whose)
            if isinstance(fault, TimeoutError):
                raise _busy() from None
            raise

    def _may_wait(self, whose: Whose) -> bool:
        waiting = list(self._waiting.values())
        return (
            len(waiting) < self._budget.waiting
            and waiting.count(whose) < self._budget.waiting_of_chat
            and _of_person(waiting, whose) < self._budget.waiting_of_person
        )

    def _leave(self, whose: Whose) -> None:
        self._working.remove(whose)
        if self._waiting:
            # The first of those that are equal, since a dict has the order in which they came.
            turn = min(self._waiting, key=lambda each: self._held(self._waiting[each]))
            self._working.append(self._waiting.pop(turn))
            turn.set_result(None)

    def _held(self, whose: Whose) -> tuple[int, int]:
        return _of_person(self._working, whose), self._working.count(whose)


def _of_person(many: list[Whose], whose: Whose) -> int:
    return sum(each.person == whose.person for each in many)


def _busy() -> NotLaidOut:
    return NotLaidOut("Too many files are being laid out just now: try again in a moment.")
