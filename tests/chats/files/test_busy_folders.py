"""What a page is told of a chat's files while another program holds their lock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.chat_room import chat_room
from tests.support.folders import foot, until
from tests.support.lock_holder import lock_held
from tests.support.scripted_provider import ScriptedProvider
from web.chats.chat import Chat
from web.chats.files.folders import ChatFolders
from web.chats.parts.channel import Watcher
from web.chats.parts.file_kinds import FilesFoot, ShownFile
from web.chats.tasks import TaskOwner
from web.harness.builtin.file_limits import FileLimits

pytestmark = pytest.mark.anyio


def paths(chat: Chat) -> list[str]:
    shown = [part.data for part in chat.channel.slot("files")]
    return [data.path for data in shown if isinstance(data, ShownFile)]


@asynccontextmanager
async def two_chats(
    root: Path, busy_seconds: float
) -> AsyncIterator[tuple[ChatFolders, Chat, Chat]]:
    """Chats with a file each, of a server that looks often."""
    async with TaskOwner() as tasks, chat_room(ScriptedProvider()) as room:
        limits = FileLimits(busy_seconds=busy_seconds)
        folders = ChatFolders(root, tasks, limits=limits, look_seconds=0.01)
        folders.start()
        chats = [await room.new_chat() for _ in range(2)]
        for chat in chats:
            chat.files = None
            folders.folder(chat).mkdir()
            (folders.folder(chat) / "a.txt").write_text("x")
            folders.of(chat)
        yield folders, chats[0], chats[1]
        folders.stop()


async def test_a_page_opens_at_once_and_its_list_comes_when_the_files_are_free(
    tmp_path: Path,
) -> None:
    async with two_chats(tmp_path, busy_seconds=20) as (folders, chat, _):
        with Watcher([chat.channel]) as watcher:
            with lock_held(folders.folder(chat)):
                began = time.monotonic()
                async with asyncio.TaskGroup() as group:
                    for _ in range(20):
                        group.create_task(folders.show(chat))
                assert time.monotonic() - began < 5
                assert foot(chat).waiting
                assert paths(chat) == []
            await until(watcher, lambda: paths(chat) == ["a.txt"])
            assert foot(chat) == FilesFoot(1, 1, 1)


@pytest.mark.full
async def test_a_page_that_waits_in_vain_says_why_and_keeps_what_it_knew(tmp_path: Path) -> None:
    async with two_chats(tmp_path, busy_seconds=0.1) as (folders, chat, _):
        await folders.show(chat)
        known = foot(chat)
        assert (known.count, known.fault) == (1, "")
        with Watcher([chat.channel]) as watcher:
            with lock_held(folders.folder(chat)):
                await until(watcher, lambda: "Another program holds them" in foot(chat).fault)
                assert paths(chat) == ["a.txt"]
                assert (await folders.counted(chat)).count == 1
            await until(watcher, lambda: foot(chat) == known)


async def test_a_chat_whose_files_are_busy_holds_up_no_other(tmp_path: Path) -> None:
    async with two_chats(tmp_path, busy_seconds=20) as (folders, busy, other):
        with lock_held(folders.folder(busy)), Watcher([busy.channel, other.channel]) as watcher:
            await until(watcher, lambda: paths(other) == ["a.txt"])
            (folders.folder(other) / "b.txt").write_text("x")
            await until(watcher, lambda: sorted(paths(other)) == ["a.txt", "b.txt"])
            assert paths(busy) == []
