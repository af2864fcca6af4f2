"""Streams end for those who are not known any more, also where nothing comes in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

import pytest

from web.ui.access.known_streams import LOOKS_AT_ONCE, KnownStreams

pytestmark = pytest.mark.anyio

MANY = 3 * LOOKS_AT_ONCE


async def pieces(
    ended: list[int], number: int, go_on: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    try:
        yield b"first"
        await go_on.wait()
        yield b"second"
    finally:
        ended.append(number)


async def test_idle_streams_end_for_those_who_are_not_known_and_for_nobody_else() -> None:
    streams, known, ended, go_on = (
        KnownStreams(0.01),
        set(range(MANY)),
        list[int](),
        asyncio.Event(),
    )
    read = [
        streams.while_known(pieces(ended, each, go_on), partial(known.__contains__, each))
        for each in range(MANY)
    ]
    for stream in read:
        assert await anext(stream) == b"first"
    rest = [asyncio.ensure_future(anext(stream, None)) for stream in read]
    await asyncio.sleep(0)
    known -= set(range(0, MANY, 2))
    gone = [each for number, each in enumerate(rest) if number % 2 == 0]
    assert await asyncio.wait_for(asyncio.gather(*gone), 10) == [None] * len(gone)
    assert sorted(ended) == list(range(0, MANY, 2))
    go_on.set()
    others = [each for number, each in enumerate(rest) if number % 2]
    assert await asyncio.wait_for(asyncio.gather(*others), 10) == [b"second"] * len(others)
    assert [await anext(stream, None) for stream in read] == [None] * MANY


async def test_who_is_gone_while_a_piece_is_sent_gets_no_other() -> None:
    streams, ended, go_on = KnownStreams(0.01), list[int](), asyncio.Event()
    looked = asyncio.Event()

    def is_known() -> bool:
        looked.set()
        return False

    stream = streams.while_known(pieces(ended, 1, go_on), is_known)
    go_on.set()
    assert await anext(stream) == b"first"
    await asyncio.wait_for(looked.wait(), 10)
    assert await anext(stream, None) is None
    assert ended == [1]


async def test_what_a_stream_raises_itself_is_raised() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"first"
        raise TimeoutError

    stream = KnownStreams().while_known(broken(), lambda: True)
    assert await anext(stream) == b"first"
    with pytest.raises(TimeoutError):
        await anext(stream)
