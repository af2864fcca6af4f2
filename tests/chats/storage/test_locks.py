"""One at a time for each key, and nothing is left of a key that nobody needs."""

from __future__ import annotations

import asyncio

import pytest

from web.chats.storage.locks import Locks

pytestmark = pytest.mark.anyio


async def test_of_one_key_there_is_one_at_a_time_and_of_others_as_many_as_come() -> None:
    locks: Locks[str] = Locks()
    inside, most = 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with locks.of("a"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            async with locks.of("b"):
                await asyncio.sleep(0)
            inside -= 1

    async with asyncio.timeout(10):
        await asyncio.gather(*(work() for _ in range(20)))
    assert most == 1
    assert len(locks) == 0


async def test_whoever_waits_and_gives_up_leaves_nothing_behind() -> None:
    locks: Locks[str] = Locks()
    async with asyncio.timeout(10):
        async with locks.of("a"):
            waiting = asyncio.ensure_future(_enter(locks))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
            assert len(locks) == 1
        assert len(locks) == 0


async def _enter(locks: Locks[str]) -> None:
    async with locks.of("a"):
        raise AssertionError("Somebody else has it.")
