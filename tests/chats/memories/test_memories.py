"""Memories in chats: whose they are, what a model is told, and how pages follow."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.chat_room import ChatRoom, chat_room
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.actions.memory_actions import add_memory, edit_memory, forget_memory, restore_memory
from web.chats.chat import Chat
from web.chats.memories.memories import ChatMemories
from web.chats.memories.memory_shelf import SHOWN
from web.chats.parts.channel import Watcher
from web.chats.parts.memory_kinds import MemoryState, ShownMemory
from web.chats.tasks import TaskOwner
from web.harness.memory.facts import LongTermMemory
from web.harness.sessions.identity import HarnessIdentity
from web.harness.values.errors import MemoryRefused, NotFound

pytestmark = pytest.mark.anyio

BOB = HarnessIdentity("t", "bob")


def memories_in(
    folder: Path, *, on: bool = True, undo_seconds: float = 30
) -> Callable[[TaskOwner], ChatMemories]:
    def make(tasks: TaskOwner) -> ChatMemories:
        return ChatMemories(tasks, folder, on=on, undo_seconds=undo_seconds, look_seconds=0.001)

    return make


async def listed(room: ChatRoom, chat: Chat) -> list[str]:
    """What a chat lists after a look at the disk: titles of notes, texts of facts."""
    await room.chats.memories.look(chat.identity)
    return shown(chat)


def shown(chat: Chat) -> list[str]:
    parts = [part.data for part in chat.channel.slot("memories")]
    return [data.title or data.text for data in parts if isinstance(data, ShownMemory)]


def state(chat: Chat) -> MemoryState:
    part = chat.channel.get("memory-is")
    assert part is not None
    assert isinstance(part.data, MemoryState)
    return part.data


def ref(chat: Chat, text: str) -> str:
    return next(
        part.data.ref
        for part in chat.channel.slot("memories")
        if isinstance(part.data, ShownMemory) and text in (part.data.title, part.data.text)
    )


async def test_what_one_chat_saves_another_chat_of_the_same_person_knows(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        calls(("save_memory", {"text": "Likes tea", "category": "person"})),
        says("Saved."),
        says("Tea!"),
    )
    async with chat_room(provider, make_memories=memories_in(tmp_path)) as room:
        first, second = await room.new_chat(), await room.new_chat()
        await room.result((await room.say(first)).run_id)
        # The page of either follows at once, without another look at the disk.
        assert shown(first) == shown(second) == ["Likes tea"]
        await room.result((await room.say(second)).run_id)
        request = provider.requests[-1]
        assert "> [person] Likes tea" in request.system_prompt
        assert {"save_memory", "recall_memories"} <= {tool.name for tool in request.tools}
        assert "Likes tea" not in provider.requests[0].system_prompt


async def test_a_chat_that_is_switched_off_is_told_nothing_and_saves_nothing(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(says("one"), says("two"))
    async with chat_room(provider, make_memories=memories_in(tmp_path)) as room:
        chat = await room.new_chat()
        await add_memory(room.chats, chat, "Likes tea")
        await room.chats.switch_memory(chat, on=False)
        await room.result((await room.say(chat)).run_id)
        assert provider.requests[0].tools == ()
        assert "tea" not in provider.requests[0].system_prompt
        # What is there is still shown, so that it can be edited and forgotten.
        assert shown(chat) == ["Likes tea"]
        assert not state(chat).on
        await room.chats.switch_memory(chat, on=True)
        await room.result((await room.say(chat)).run_id)
        assert "Likes tea" in provider.requests[1].system_prompt


async def test_new_chats_start_as_the_server_says(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider(), make_memories=memories_in(tmp_path, on=False)) as room:
        chat = await room.new_chat()
        assert not chat.record.memory
        assert room.chats.memories.tools(None) == []
    async with chat_room(ScriptedProvider()) as room:
        chat = await room.new_chat()
        assert not chat.record.memory
        assert chat.channel.get("memory-is") is None
        with pytest.raises(NotFound):
            await room.chats.switch_memory(chat, on=True)
        with pytest.raises(NotFound):
            await add_memory(room.chats, chat, "x")


async def test_people_never_meet_in_what_is_remembered(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider(), make_memories=memories_in(tmp_path)) as room:
        mine, other = await room.new_chat(), await room.chats.create(BOB)
        await add_memory(room.chats, mine, "private", title="A note")
        assert await listed(room, mine) == ["A note"]
        assert await listed(room, other) == []
        with pytest.raises(NotFound):
            await edit_memory(room.chats, other, ref(mine, "A note"), text="stolen")
        with pytest.raises(NotFound):
            await forget_memory(room.chats, other, ref(mine, "A note"))
        assert len(list(tmp_path.iterdir())) == 1


async def test_a_memory_is_edited_and_a_change_of_somebody_else_is_not_written_over(
    tmp_path: Path,
) -> None:
    async with chat_room(ScriptedProvider(), make_memories=memories_in(tmp_path)) as room:
        chat = await room.new_chat()
        shelf = room.chats.memories.shelf(chat.identity)
        for title in ("", "A note"):
            made = await add_memory(room.chats, chat, "one", title=title, tags=["x"])
            seen = (await shelf.read(made.ref)).seen
            await edit_memory(room.chats, chat, made.ref, text="two", tags=["y"], seen=seen)
            memory = await shelf.read(made.ref)
            assert (memory.text, memory.shown.tags) == ("two", ("y",))
            with pytest.raises(MemoryRefused):
                await edit_memory(room.chats, chat, made.ref, text="three", seen=seen)
            assert (await shelf.read(made.ref)).text == "two"
        assert sorted(await listed(room, chat)) == ["A note", "two"]


async def test_what_is_forgotten_leaves_the_disk_and_comes_back_by_undo(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider(), make_memories=memories_in(tmp_path)) as room:
        chat, other = await room.new_chat(), await room.new_chat()
        for title, text in (("", "secret fact"), ("Secret", "secret note")):
            made = await add_memory(room.chats, chat, text, title=title)
            await forget_memory(room.chats, chat, made.ref)
            assert shown(chat) == shown(other) == []
            files = [path for path in tmp_path.rglob("*") if path.is_file()]
            assert not any(b"secret" in path.read_bytes() for path in files)
            toast = room.chats.side_bar(chat.identity).get("z-memory")
            assert toast is not None
            await restore_memory(room.chats, chat, made.ref)
            assert shown(chat) == [title or text]
            assert room.chats.side_bar(chat.identity).get("z-memory") is None
            with pytest.raises(NotFound, match="any more"):
                await restore_memory(room.chats, chat, made.ref)
            await forget_memory(room.chats, chat, made.ref)


async def test_what_is_forgotten_is_gone_for_good_after_some_seconds(tmp_path: Path) -> None:
    make = memories_in(tmp_path, undo_seconds=0.01)
    async with chat_room(ScriptedProvider(), make_memories=make, undo_seconds=0.01) as room:
        chat = await room.new_chat()
        made = await add_memory(room.chats, chat, "secret")
        await forget_memory(room.chats, chat, made.ref)
        await room.rest()
        assert room.chats.memories._deleted[chat.identity] == {}
        with pytest.raises(NotFound):
            await restore_memory(room.chats, chat, made.ref)


async def test_who_watches_a_chat_is_told_of_what_changes_on_disk(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider(), make_memories=memories_in(tmp_path)) as room:
        chat, memories = await room.new_chat(), room.chats.memories
        assert await listed(room, chat) == []
        folder = memories.shelf(chat.identity).notes.folder
        memories.start()
        with Watcher([chat.channel]) as watcher:
            LongTermMemory(folder).save("by another program")
            (folder / "hand.md").write_text("# By hand\n\ntext")
            (folder / "broken.md").write_text("---\nopen")
            async with asyncio.timeout(10):
                while len(shown(chat)) < 3:
                    await watcher.changed()
        faults = [
            part.data.fault
            for part in chat.channel.slot("memories")
            if isinstance(part.data, ShownMemory) and part.data.fault
        ]
        assert faults == ["The front matter does not end: a second line `---` is missing."]


async def test_a_page_does_not_wait_for_what_takes_long_to_read(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider(), make_memories=memories_in(tmp_path)) as room:
        chat, memories = await room.new_chat(), room.chats.memories
        shelf = memories.shelf(chat.identity)
        LongTermMemory(shelf.notes.folder).save("slow")
        # As while a thread reads very many.
        async with shelf._looking:
            await memories.show(chat)
            chat.channel.settled()
            assert state(chat).waiting
        with Watcher([chat.channel]) as watcher:
            async with asyncio.timeout(10):
                while shown(chat) != ["slow"]:
                    await watcher.changed()
        assert not state(chat).waiting


async def test_a_store_that_cannot_be_read_is_told_of_and_the_chat_goes_on(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("fine"))
    async with chat_room(provider, make_memories=memories_in(tmp_path)) as room:
        chat = await room.new_chat()
        await add_memory(room.chats, chat, "text", title="A note")
        folder = room.chats.memories.shelf(chat.identity).notes.folder
        (folder / "facts.jsonl").mkdir()
        assert await listed(room, chat) == ["A note"]
        assert any("facts" in fault for fault in state(chat).faults)
        result = await room.result((await room.say(chat)).run_id)
        assert result.status == "completed"
        assert "cannot be read just now" in provider.requests[0].system_prompt


async def test_of_very_many_the_newest_are_listed_and_a_search_finds_the_others(
    tmp_path: Path,
) -> None:
    async with chat_room(ScriptedProvider(), make_memories=memories_in(tmp_path)) as room:
        chat = await room.new_chat()
        shelf = room.chats.memories.shelf(chat.identity)
        shelf.notes.folder.mkdir(parents=True)
        lines = [f'{{"id": "f{n}", "text": "fact number {n}"}}' for n in range(SHOWN + 50)]
        (shelf.notes.folder / "facts.jsonl").write_text("\n".join([*lines, "broken"]))
        assert len(await listed(room, chat)) == SHOWN
        assert (state(chat).facts, state(chat).shown) == (SHOWN + 50, SHOWN)
        assert any(f"Line {SHOWN + 51} " in fault for fault in state(chat).faults)
        found = await shelf.search("number 3")
        assert found[0].text == "fact number 3"
        assert (await shelf.read(found[0].ref)).text == "fact number 3"


async def test_a_note_broken_by_hand_harms_no_other_and_no_message(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("fine"))
    async with chat_room(provider, make_memories=memories_in(tmp_path)) as room:
        chat = await room.new_chat()
        await add_memory(room.chats, chat, "text", title="A note")
        folder = room.chats.memories.shelf(chat.identity).notes.folder
        time = "2026-01-02T03:04:05Z"
        (folder / "edited.md").write_text(
            f'---\ntitle: "a\\qb"\ntags: []\ncreated: {time}\nupdated: {time}\n---\nx'
        )
        assert set(await listed(room, chat)) == {"A note", "edited"}
        assert (await room.result((await room.say(chat)).run_id)).status == "completed"
        assert "A note" in provider.requests[0].system_prompt
