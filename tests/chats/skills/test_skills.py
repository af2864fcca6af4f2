"""Skills in chats: whose they are, how pages follow the disk, and what goes with a message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.skills.writers import put, skill_md, uploaded
from tests.support.chat_room import ChatRoom, chat_room
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.chat import Chat
from web.chats.parts.channel import Watcher
from web.chats.parts.skill_kinds import DeletedSkill, DeletedSkills, ShownSkill
from web.chats.runs.equipment import Connected, joined
from web.chats.skills.skills import ChatSkills
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import HarnessIdentity
from web.harness.skills.library import SkillLibrary
from web.harness.values.events import ApprovalRequired, ToolResult

pytestmark = pytest.mark.anyio

BOB = HarnessIdentity("t", "bob")


def skills_in(folder: Path) -> Callable[[TaskOwner], ChatSkills]:
    def make(tasks: TaskOwner) -> ChatSkills:
        library = SkillLibrary(folder, own_writable=True)
        return ChatSkills(
            library, tasks, folder=lambda chat: folder / ".chats", environ={}, look_seconds=0.001
        )

    return make


async def shown(room: ChatRoom, chat: Chat) -> list[str]:
    """The names of the skills that a chat shows after a look at the disk."""
    await room.chats.skills.look(chat.identity)
    return named(chat)


def named(chat: Chat) -> list[str]:
    parts = [part.data for part in chat.channel.slot("skills")]
    return [data.name for data in parts if isinstance(data, ShownSkill)]


def commands(chat: Chat) -> list[str]:
    part = chat.channel.get("command-list")
    return [each.label for each in part.data.commands] if part else []  # type: ignore[union-attr]


async def test_a_chat_shows_its_persons_skills_and_offers_them_as_commands(tmp_path: Path) -> None:
    put(tmp_path, "shared")
    async with chat_room(ScriptedProvider(), make_skills=skills_in(tmp_path)) as room:
        mine, other = await room.new_chat(), await room.chats.create(BOB)
        room.chats.skills.shelf(mine.identity).skills.install(
            [uploaded("x.md", skill_md("private"))]
        )
        assert await shown(room, mine) == ["private", "shared"]
        assert commands(mine) == ["/private", "/shared"]
        assert await shown(room, other) == ["shared"]
        await room.chats.switch_skill(mine, "shared", on=False)
        await room.chats.switch_skill(mine, "shared", on=False)
        assert mine.record.skills_off == ("shared",)
        assert await shown(room, mine) == ["private", "shared"]
        assert commands(mine) == ["/private"]
        assert commands(other) == ["/shared"]
        await room.chats.switch_skill(mine, "shared", on=True)
        await shown(room, mine)
        assert commands(mine) == ["/private", "/shared"]


async def test_who_watches_a_chat_is_told_of_what_changes_on_disk(tmp_path: Path) -> None:
    put(tmp_path, "one")
    async with chat_room(ScriptedProvider(), make_skills=skills_in(tmp_path)) as room:
        chat, skills = await room.new_chat(), room.chats.skills
        assert await shown(room, chat) == ["one"]
        skills.start()
        with Watcher([chat.channel]) as watcher:
            put(tmp_path, "two")
            # The file is read in a thread, which may see it before it is whole.
            async with asyncio.timeout(10):
                while named(chat) != ["one", "two"]:
                    await watcher.changed()


async def test_a_skill_that_is_gone_leaves_the_page_and_its_undo_comes(tmp_path: Path) -> None:
    put(tmp_path, "one")
    async with chat_room(ScriptedProvider(), make_skills=skills_in(tmp_path)) as room:
        chat = await room.new_chat()
        shelf = room.chats.skills.shelf(chat.identity)
        assert await shown(room, chat) == ["one"]
        shelf.skills.delete("one")
        assert await shown(room, chat) == []
        part = chat.channel.get("sk-deleted")
        assert part is not None
        assert part.data == DeletedSkills((DeletedSkill("one", "server"),))
        assert commands(chat) == []
        shelf.skills.restore("one")
        assert await shown(room, chat) == ["one"]
        assert chat.channel.get("sk-deleted") is None


async def test_a_called_skill_is_taken_back_and_sent_again_once(tmp_path: Path) -> None:
    put(tmp_path, "one")
    hold = asyncio.Event()
    provider = ScriptedProvider([hold, *says("a")], says("b"))
    async with chat_room(provider, make_skills=skills_in(tmp_path)) as room:
        chat = await room.new_chat()
        first = await room.say(chat)
        waiting = await room.say(chat, "/one go", attached=True)
        (block,) = waiting.attachments
        assert await room.chats.take_back(chat, waiting.run_id) == "/one go"
        again = await room.say(chat, "/one go", attached=True)
        assert again.attachments == (block,)
        hold.set()
        await room.result(first.run_id)
        await room.result(again.run_id)
        assert provider.requests[-1].messages[-1].attachments == (block,)


async def test_only_the_person_at_this_machine_runs_scripts_that_were_uploaded(
    tmp_path: Path,
) -> None:
    use = calls(("run_skill_script", {"skill": "mine", "path": "x.sh"}))
    async with chat_room(
        ScriptedProvider(use, says("ok"), use, says("ok")), make_skills=skills_in(tmp_path)
    ) as room:
        local, other = await room.new_chat(), await room.chats.create(BOB)
        for chat in (local, other):
            files = [uploaded("mine/SKILL.md", skill_md("mine")), uploaded("mine/x.sh", "echo")]
            room.chats.skills.shelf(chat.identity).skills.install(files)
        run_id = (await room.say(local)).run_id
        asked = await room.event(run_id, lambda body: isinstance(body, ApprovalRequired))
        assert isinstance(asked, ApprovalRequired)
        await room.chats.decide(local, asked.key, "deny")
        await room.result(run_id)
        result = await room.event(
            (await room.say(other)).run_id, lambda body: isinstance(body, ToolResult)
        )
        assert isinstance(result, ToolResult)
        assert "it was uploaded" in result.text


async def test_what_several_sources_bring_is_joined_in_their_order() -> None:
    async with chat_room(ScriptedProvider()) as room:
        chat = await room.new_chat()
        tools = room.chats.skills.tools(chat)

        async def one(chat: Chat) -> Connected:
            return Connected(tools[:1], "One.")

        async def none(chat: Chat) -> Connected:
            return Connected()

        async def two(chat: Chat) -> Connected:
            return Connected(tools[1:], "Two.")

        found = await joined(one, none, two)(chat)
        assert (list(found.tools), found.instructions) == (tools, "One.\n\nTwo.")
