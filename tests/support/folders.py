"""The folders of chats: for tests that need none, and what the page shows of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from web.chats.chat import Chat
from web.chats.parts.channel import Watcher
from web.chats.parts.file_kinds import FilesFoot

NO_FOLDER = Path("/dev/null/none")
"""Where nothing can be written."""


def foot(chat: Chat) -> FilesFoot:
    [part] = chat.channel.slot("files-foot")
    assert isinstance(part.data, FilesFoot)
    return part.data


async def until(watcher: Watcher, done: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not done():
            await watcher.changed()
