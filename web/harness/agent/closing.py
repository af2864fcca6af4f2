"""One close at a time: whoever closes again meanwhile waits for the end of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, Token

_UNDER_WAY: ContextVar[tuple[int, ...]] = ContextVar("closing", default=())
"""The closings that the code which runs now is called by; tasks that it starts know them too."""


async def in_turn(*closes: Callable[[], Awaitable[object]]) -> None:
    """Closes one after another, each whatever becomes of those before; raises the last error."""
    if closes:
        try:
            await closes[0]()
        finally:
            await in_turn(*closes[1:])


class Closing:
    """An async context manager around a close."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._token: Token[tuple[int, ...]] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._lock.locked()

    def is_inside(self) -> bool:
        """Whether the close itself is what calls, which must not wait for its own end."""
        return self.is_under_way and id(self) in _UNDER_WAY.get()

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        self._token = _UNDER_WAY.set((*_UNDER_WAY.get(), id(self)))

    async def __aexit__(self, *_: object) -> None:
        if self._token is not None:
            _UNDER_WAY.reset(self._token)
        self._lock.release()
