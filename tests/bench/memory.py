"""What chats and streams that do nothing cost."""

from __future__ import annotations

import asyncio
import json
import re

from tests.bench.processes import Running
from tests.bench.wire import Connection, fetch, open_request

WARM = 50
"""Chats and streams opened before anything is measured, so that all is loaded."""

SETTLE_SECONDS = 12.0
"""Long enough for two beats of every stream."""

_AT_ONCE = 20
_EPOCH = re.compile(r'"epoch":"([0-9a-f]+)"')


async def chat_bytes(server: Running, chats: int) -> float:
    """Memory of the server for one chat without a message, in bytes."""
    await _new_chats(server, WARM)
    before = server.memory()
    await _new_chats(server, chats)
    return (server.memory() - before) / chats


async def stream_bytes(server: Running, streams: int) -> float:
    """Memory of the server for so many page streams in which nothing happens, in bytes.

    Each carries the list of chats and one of fifty chats, as the page of a chat does.
    """
    chats = await _new_chats(server, WARM)
    health = (await fetch(server.address, "GET", "/api/health")).decode()
    epoch = _EPOCH.search(health.replace(" ", ""))
    assert epoch is not None, "the server names no epoch"
    paths = [
        f"/stream?channels=chats,{chats[number % WARM]}&after={epoch[1]}:999999999"
        for number in range(WARM + streams)
    ]
    opened = [await _open(server, path) for path in paths[:WARM]]
    await asyncio.sleep(SETTLE_SECONDS / 2)
    before = server.memory()
    try:
        opened += [await _open(server, path) for path in paths[WARM:]]
        await asyncio.sleep(SETTLE_SECONDS)
        return server.memory() - before
    finally:
        for stream in opened:
            stream.close()


async def _open(server: Running, path: str) -> Connection:
    return await open_request(server.address, "GET", path, lambda body: None)


async def _new_chats(server: Running, count: int) -> list[str]:
    """The ids of new chats, some of them made at the same time."""
    ids: list[str] = []
    for start in range(0, count, _AT_ONCE):
        answers = await asyncio.gather(
            *(
                fetch(server.address, "POST", "/api/chats", {})
                for _ in range(min(_AT_ONCE, count - start))
            )
        )
        ids += [json.loads(answer)["id"] for answer in answers]
    return ids
