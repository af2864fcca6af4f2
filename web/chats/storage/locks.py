"""A lock for each of many keys, for as long as somebody has it or waits for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Locks(Generic[K]):
    """`async with locks.of(key)`: one at a time for each key, in the order they came."""

    def __init__(self) -> None:
        self._locks: dict[K, asyncio.Lock] = {}
        self._users: Counter[K] = Counter()

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def of(self, key: K) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] += 1
        try:
            async with lock:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                # Nobody waits for this one: whoever comes next makes another.
                del self._users[key], self._locks[key]
