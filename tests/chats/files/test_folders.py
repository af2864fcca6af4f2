"""The folders of chats: what the page is told of them, and what becomes of them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.chat_room import chat_room
from tests.support.folders import foot, until
from tests.support.scripted_provider import ScriptedProvider, says
from web.chats.chat import Chat
from web.chats.files.folders import ChatFolders, row_id
from web.chats.files.presence import Presence, running_servers
from web.chats.parts.channel import Watcher
from web.chats.parts.file_kinds import ShownFile
from web.chats.tasks import TaskOwner
from web.harness.builtin.marker import read_marker
from web.harness.builtin.versions import Origin

pytestmark = pytest.mark.anyio

PERSON = Origin("person")


def rows(chat: Chat) -> list[ShownFile]:
    """What the list of files shows, in order."""
    shown = [part.data for part in chat.channel.slot("files")]
    return [data for data in shown if isinstance(data, ShownFile)]


async def test_a_watched_chat_shows_a_file_as_it_is_made_changed_and_deleted(
    tmp_path: Path,
) -> None:
    async with chat_room(ScriptedProvider(), root=tmp_path) as room:
        chat = await room.new_chat()
        files = room.chats.files.of(chat)
        with Watcher([chat.channel]) as watcher:
            await files.write("a.txt", b"one", PERSON, replace=False)
            await until(watcher, lambda: [row.path for row in rows(chat)] == ["a.txt"])
            call = Origin("call", "r1", "k1", "ask", "allow_chat")
            await files.write("a.txt", b"two!", call, replace=True)
            await until(watcher, lambda: rows(chat)[0].size == 4)
            [row] = rows(chat)
            assert row.made.words == "by write_file, allowed by you for this chat"
            assert (row.made.card, row.made.detail) == ("", "call k1, approval ask, run r1")
            assert [(each.number, each.made.words) for each in row.versions] == [
                (2, row.made.words),
                (1, "put in by you"),
            ]
            await files.delete("a.txt", PERSON)
            await until(watcher, lambda: rows(chat) == [])
            [gone] = foot(chat).gone
            assert (gone.path, gone.number, gone.made.words) == ("a.txt", 2, "deleted by you")
        await room.rest()


async def test_a_file_that_somebody_puts_there_by_hand_is_shown_while_watched(
    tmp_path: Path,
) -> None:
    async with TaskOwner() as tasks:
        folders = ChatFolders(tmp_path, tasks, look_seconds=0.01)
        async with chat_room(ScriptedProvider()) as room:
            chat = await room.new_chat()
            chat.files = None
            folders.start()
            folders.folder(chat).mkdir()
            folders.of(chat)
            with Watcher([chat.channel]) as watcher:
                (folders.folder(chat) / "by hand.txt").write_text("x")
                await until(watcher, lambda: bool(rows(chat)))
                assert rows(chat)[0].made.words == "changed outside"
        folders.stop()


async def test_the_newest_two_hundred_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider(), root=tmp_path) as room:
        chat = await room.new_chat()
        folder = room.chats.files.folder(chat)
        folder.mkdir()
        for number in range(205):
            (folder / f"{number}.txt").write_text("x")
        await room.chats.files.look(chat)
        assert len(rows(chat)) == 200
        assert (foot(chat).count, foot(chat).shown, foot(chat).bytes) == (205, 200, 205)
        assert chat.channel.get(row_id("204.txt")) is not None


@pytest.mark.parametrize("with_files", [True, False])
async def test_files_go_for_good_only_with_a_chat_that_cannot_be_brought_back(
    with_files: bool, tmp_path: Path
) -> None:
    async with chat_room(ScriptedProvider(), root=tmp_path, undo_seconds=0.3) as room:
        chat = await room.new_chat(title="Trip")
        outside = tmp_path / "outside.txt"
        outside.write_text("stays")
        await room.chats.files.of(chat).write("a.txt", b"one", PERSON, replace=False)
        folder = room.chats.files.folder(chat)
        (folder / "link").symlink_to(outside)
        await room.chats.delete(chat, with_files=with_files)
        assert (folder / "a.txt").exists()
        await room.rest()
        assert folder.exists() is not with_files
        assert outside.read_text() == "stays"
        if not with_files:
            marker = read_marker(folder)
            assert (marker["chat"], marker["title"], marker["server"]) == (chat.id, "Trip", "")


async def test_a_chat_that_is_brought_back_keeps_its_files_at_the_next_deletion(
    tmp_path: Path,
) -> None:
    async with chat_room(ScriptedProvider(), root=tmp_path, undo_seconds=30) as room:
        chat = await room.new_chat()
        await room.chats.delete(chat, with_files=True)
        await room.chats.restore(chat.identity, chat.id)
        assert chat.record.files_go is False


async def test_equal_chat_ids_of_two_people_have_two_folders(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider(says("x")), root=tmp_path) as room:
        chat = await room.new_chat()
        folder = room.chats.files.folder(chat)
        chat.identity = type(chat.identity)("local", "somebody else")
        assert room.chats.files.folder(chat) != folder


async def test_a_server_is_there_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    first, second = Presence(tmp_path), Presence(tmp_path)
    first.begin()
    second.begin()
    assert running_servers(tmp_path) == {first.token, second.token}
    first.end()
    assert running_servers(tmp_path) == {second.token}
    second.end()
    (tmp_path / ".servers" / "killed").touch()
    assert running_servers(tmp_path) == set()
    assert list((tmp_path / ".servers").iterdir()) == []


def test_a_server_that_is_looked_for_while_it_begins_is_found_afterwards(tmp_path: Path) -> None:
    """Whoever looks before the file is locked takes it away, as that of one that was killed."""
    presence = Presence(tmp_path)

    file = tmp_path / ".servers" / presence.token
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            running_servers(tmp_path)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(300):
            presence.begin()
            assert file.exists()
            presence.end()
        presence.begin()
    finally:
        stop.set()
        looking.join()
    assert running_servers(tmp_path) == {presence.token}
    presence.end()
