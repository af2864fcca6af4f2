"""Ends event streams of those who are not known any more: a token may be taken back meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

LOOK_SECONDS = 1.0
"""Between two looks at all streams together, whether anything comes in them or not."""

LOOKS_AT_ONCE = 100
"""Streams that are looked at before others have the event loop."""


class _Watched:
    """One stream. `limit` is there while it waits for its next piece."""

    __slots__ = ("gone", "is_known", "limit")

    def __init__(self, is_known: Callable[[], bool]) -> None:
        self.is_known = is_known
        self.limit: asyncio.Timeout | None = None
        self.gone = False

    def end(self) -> None:
        self.gone = True
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time())


class KnownStreams:
    """Looks at every open stream once a second, in one go for all: an idle one has no timer.

    Nothing runs here while no stream is open.
    """

    def __init__(self, look_seconds: float = LOOK_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._open: dict[_Watched, None] = {}
        self._looking = False

    async def while_known(
        self, pieces: AsyncGenerator[bytes, None], is_known: Callable[[], bool]
    ) -> AsyncGenerator[bytes, None]:
        """The pieces of a stream until `is_known` says no, also while it waits for the next."""
        watched = _Watched(is_known)
        self._open[watched] = None
        self._look_later()
        try:
            async with aclosing(pieces):
                while (piece := await _next(pieces, watched)) is not None:
                    yield piece
        finally:
            del self._open[watched]

    def _look_later(self) -> None:
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(self._look_seconds, self._look, None)

    def _look(self, rest: list[_Watched] | None) -> None:
        rest = list(self._open) if rest is None else rest
        for watched in rest[:LOOKS_AT_ONCE]:
            if not watched.gone and not watched.is_known():
                watched.end()
        if len(rest) > LOOKS_AT_ONCE:
            asyncio.get_running_loop().call_soon(self._look, rest[LOOKS_AT_ONCE:])
            return
        self._looking = False
        if self._open:
            self._look_later()


async def _next(pieces: AsyncGenerator[bytes, None], watched: _Watched) -> bytes | None:
    """The next piece; None at the end, or where nobody may have it any more."""
    if watched.gone:
        return None
    try:
        async with asyncio.timeout(None) as limit:
            watched.limit = limit
            try:
                piece = await anext(pieces, None)
            finally:
                watched.limit = None
    except TimeoutError:
        if not watched.gone:
            raise
        return None
    return None if watched.gone else piece
