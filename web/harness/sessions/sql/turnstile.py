"""Lets those of this process who want the same thing in one by one, in the order they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

Leave = Callable[[], None]
"""Lets the next one in; calling it twice is fine."""


class Turnstile:
    """Turns by key. It spares the database the questions of those who would only wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def enter(self, key: str, wait: float) -> Leave | None:
        """None where somebody else is inside for longer than `wait` seconds."""
        queue = self._waiting.get(key)
        if queue is None:
            self._waiting[key] = deque()
            return self._leave(key)
        if wait <= 0:
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            async with asyncio.timeout(wait):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # It came in the moment that nobody wanted it any more.
                self._next(key)
            elif turn in queue:
                queue.remove(turn)
            if isinstance(error, TimeoutError):
                return None
            raise
        return self._leave(key)

    def _leave(self, key: str) -> Leave:
        inside = True

        def leave() -> None:
            nonlocal inside
            if inside:
                inside = False
                self._next(key)

        return leave

    def _next(self, key: str) -> None:
        queue = self._waiting[key]
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[key]
