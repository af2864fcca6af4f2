"""A session keeps the pictures of its messages, and those of messages that are gone no longer."""

from __future__ import annotations

import pytest

from tests.support.pictures import picture
from tests.support.stores import SqlPlace, on
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.messages import ImageBlock, Message, ToolResultBlock

pytestmark = pytest.mark.anyio

FIRST, SECOND, THIRD = (picture(width=width) for width in (1, 2, 3))
MINE = Message("m1", "user", (FIRST,))
GAVE = Message("m2", "tool", (ToolResultBlock("c", (SECOND,)),), "m1")
LAST = Message("m3", "user", (THIRD,), "m2")


@on("sqlite", full="postgresql")
async def test_a_picture_goes_with_the_last_message_that_has_it(place: SqlPlace) -> None:
    here, there = await place.sessions(), await place.sessions()

    async def kept() -> set[str]:
        return {str(row[0]) for row in await place.run("SELECT sha256 FROM harness_pictures")}

    def names(*pictures: ImageBlock) -> set[str]:
        return {each.sha256 for each in pictures}

    async with await here.acquire(LOCAL_IDENTITY, "other") as lease:
        await lease.commit(SessionSnapshot((Message("m", "user", (FIRST,)),)))
    async with await here.acquire(LOCAL_IDENTITY, "s") as lease:
        await lease.commit(SessionSnapshot((MINE, GAVE, LAST), {"helper": (MINE,)}))
        assert await kept() == names(FIRST, SECOND, THIRD)
        # Another conversation has the first one, too.
        shorter = SessionSnapshot((Message("m4", "user", (THIRD,)),), {"helper": (MINE,)})
        await lease.commit(shorter)
        assert await kept() == names(FIRST, THIRD)
        before = await lease.read()
        assert before.history == shorter.history
        await lease.commit(SessionSnapshot((GAVE,)))
        assert await kept() == names(FIRST, SECOND)
    # Whoever has not read what is stored replaces all of it.
    async with await there.acquire(LOCAL_IDENTITY, "s") as lease:
        await lease.commit(SessionSnapshot((LAST,)))
        assert await kept() == names(FIRST, THIRD)
        assert (await lease.read()).history == (LAST,)
    async with await here.acquire(LOCAL_IDENTITY, "other") as lease:
        assert (await lease.read()).history[0].content == (FIRST,)
