"""Places to work are shared out: nobody keeps the others from theirs."""

from __future__ import annotations

import asyncio

import pytest

from web.ui.layouts.places import Budget, NotLaidOut, Places, Whose

pytestmark = pytest.mark.anyio


class Workers:
    """Some who work until they are told to leave; `order` is who got a place, in their order."""

    def __init__(self, places: Places) -> None:
        self.order: list[str] = []
        self._places = places
        self._leave = asyncio.Semaphore(0)

    async def come(self, person: str, chat: str) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._work(Whose(person, chat)))
        await settled()
        return task

    async def leave(self) -> None:
        self._leave.release()
        await settled()

    async def _work(self, whose: Whose) -> None:
        async with self._places.take(whose):
            self.order.append(whose.chat)
            await self._leave.acquire()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_chat_with_many_waiting_holds_up_no_other_and_no_other_person() -> None:
    workers = Workers(Places(Budget(at_once=2, waiting=6, waiting_of_chat=3, waiting_of_person=4)))
    tasks = [await workers.come("ann", "a") for _ in range(5)]
    assert workers.order == ["a", "a"]
    with pytest.raises(NotLaidOut, match="Too many"):
        await (await workers.come("ann", "a"))
    tasks.append(await workers.come("ann", "b"))
    with pytest.raises(NotLaidOut, match="Too many"):
        await (await workers.come("ann", "c"))
    tasks.append(await workers.come("bob", "d"))
    for _ in tasks:
        await workers.leave()
    assert workers.order == ["a", "a", "d", "a", "b", "a", "a"]
    await asyncio.gather(*tasks)


async def test_whoever_goes_away_gives_back_the_place_and_the_turn() -> None:
    workers = Workers(Places(Budget(at_once=1)))
    works = await workers.come("ann", "a")
    waits = [await workers.come("ann", chat) for chat in "bcd"]
    waits[0].cancel()
    await settled()
    # The turn of the next comes in the moment in which it goes.
    works.cancel()
    await asyncio.sleep(0)
    waits[1].cancel()
    await settled()
    assert workers.order in (["a", "d"], ["a", "c", "d"])
    await workers.leave()
    await waits[2]


async def test_waiting_has_an_end() -> None:
    workers = Workers(Places(Budget(at_once=1, waiting_seconds=0.01)))
    works = await workers.come("ann", "a")
    with pytest.raises(NotLaidOut, match="Too many"):
        await (await workers.come("ann", "b"))
    await workers.leave()
    await works
    await workers.leave()
    await (await workers.come("ann", "c"))
    assert workers.order == ["a", "c"]
