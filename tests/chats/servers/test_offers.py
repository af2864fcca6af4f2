"""What the servers of a chat offer its person is shown, found, read, watched and used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import pytest

from tests.support.chat_room import ChatRoom, chat_room, log_of
from tests.support.mcp_wire import SECONDS, notes
from tests.support.notes_server import HOSTILE, TODAY
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.chat import Chat
from web.chats.parts.channel import Watcher
from web.chats.parts.offer_kinds import Commands, Prompts, Resources, ShownResource, Templates
from web.chats.servers.offers import Offers, ref_of
from web.harness.mcp.spec import ServerSpec
from web.harness.values.errors import HarnessError, NotFound, ToolError
from web.harness.values.messages import ImageBlock, ResourceBlock

pytestmark = pytest.mark.anyio

T = TypeVar("T")


@asynccontextmanager
async def connected(*specs: ServerSpec) -> AsyncIterator[tuple[ChatRoom, Chat]]:
    """A chat whose servers have told all that they offer."""
    model = ScriptedProvider(calls(("notes__touch", {"uri": TODAY})), says("touched"))
    async with chat_room(model) as room:
        chat = await room.new_chat()
        of_chat = room.chats.servers.of(chat)
        for spec in specs:
            of_chat.connect(spec)
        await until(chat, lambda: len(shown(chat, Prompts)) == len(specs))
        try:
            yield room, chat
        finally:
            await room.chats.servers.aclose()


async def until(chat: Chat, condition: Callable[[], bool]) -> None:
    with Watcher([chat.channel]) as watcher:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await watcher.changed()


def shown(chat: Chat, kind: type[T]) -> list[T]:
    """The parts of a kind, of all servers."""
    keys = [part.id for part in chat.channel.slot("servers")]
    return [each for key in keys for each in log_of(chat, key) if isinstance(each, kind)]


def rows(chat: Chat) -> list[ShownResource]:
    """The resources that the first server shows."""
    key = shown(chat, Resources)[0].key
    found = log_of(chat, f"{key}-resources")
    return [each for each in found if isinstance(each, ShownResource)]


def offers(room: ChatRoom, chat: Chat) -> Offers:
    return room.chats.servers.of(chat).offers


async def test_long_lists_are_shown_to_a_limit_and_the_rest_is_found() -> None:
    async with connected(notes(3_000)) as (room, chat):
        (resources,) = shown(chat, Resources)
        assert (resources.count, len(rows(chat)), resources.more) == (3_006, 200, 2_806)
        found = offers(room, chat).search(resources.key, "  NOTE 2999 ")
        assert [each.title for each in found.resources] == ["note 2999"]
        assert offers(room, chat).search(resources.key, "note 2").more == 1_111 - 50
        assert offers(room, chat).search(resources.key, "no such thing").resources == ()


async def test_of_wordy_prompts_so_many_are_shown_as_a_page_can_bear() -> None:
    spec = notes()
    async with connected(replace(spec, args=(*spec.args, "100"))) as (_, chat):
        (prompts,) = shown(chat, Prompts)
        assert len(prompts.prompts) + prompts.more == 106
        assert 5 < len(prompts.prompts) < 20
        (commands,) = [each for each in log_of(chat, "commands") if isinstance(each, Commands)]
        assert len(commands.commands) + commands.more == 106
        assert len(repr(commands)) < 60_000


async def test_names_of_a_stranger_are_tidied_and_named_by_their_hash() -> None:
    async with connected(notes()) as (room, chat):
        (resources,), (templates,) = shown(chat, Resources), shown(chat, Templates)
        (prompts,) = shown(chat, Prompts)
        assert rows(chat)[1].title == "<img src=x onerror=alert(1)>\"'></b>"
        assert [each.fault for each in templates.templates] == [
            "",
            "a brace in it has no other one",
        ]
        assert [field.title for field in templates.templates[0].fields] == ["folder", "name", "q"]
        assert len(prompts.prompts[5].label) == 201
        assert {len(each.ref) for each in rows(chat)} == {16}
        material = await offers(room, chat).use(resources.key, ref_of(HOSTILE), {})
        assert material.text.startswith("Text of <img")


async def test_a_resource_is_read_attached_and_refused_in_words() -> None:
    async with connected(notes()) as (room, chat):
        made, (resources,) = offers(room, chat), shown(chat, Resources)
        key = resources.key
        (today,) = await made.read(key, TODAY)
        assert (today.kind, today.media_type) == ("text", "text/markdown")
        (picture,) = await made.read(key, "notes://picture")
        assert picture.kind == "image"
        assert chat.blobs.get(picture.sha256) is not None
        (block,) = (await made.material(key, TODAY, "Today")).blocks
        assert isinstance(block, ResourceBlock)
        assert (block.name, block.uri, block.source) == ("Today", TODAY, "notes")
        (shown_picture,) = (await made.material(key, "notes://picture", "Picture")).blocks
        assert isinstance(shown_picture, ImageBlock)
        assert (shown_picture.name, shown_picture.sha256) == ("Picture", picture.sha256)
        for uri, words in (
            ("notes://data", "application/zip .*is neither text nor a picture that models take"),
            ("notes://gone", "no resource notes://gone"),
        ):
            with pytest.raises(HarnessError, match=words):
                await made.material(key, uri)
        uri = made.expanded(key, ref_of("notes://{folder}/{name}{?q}"), {"folder": "a/b", "q": "1"})
        assert uri == "notes://a%2Fb/?q=1"
        with pytest.raises(HarnessError, match="cannot be filled in: a brace"):
            made.expanded(key, ref_of("notes://{"), {})


async def test_a_watched_resource_says_that_it_changed_until_it_is_read() -> None:
    async with connected(notes()) as (room, chat):
        made, key = offers(room, chat), shown(chat, Resources)[0].key

        def today() -> tuple[bool, bool]:
            first = rows(chat)[0]
            assert shown(chat, Resources)[0].updated == (first.updated is not None)
            return first.watched, first.updated is not None

        await made.watch(key, TODAY, on=True)
        assert today() == (True, False)
        turn = await room.say(chat)
        await room.chats.decide(chat, await asked(room, turn.run_id), "allow")
        await until(chat, lambda: today() == (True, True))
        await made.read(key, TODAY)
        assert today() == (True, False)
        await made.watch(key, TODAY, on=False)
        assert today() == (False, False)
        # One that no list has can be watched too, and is then listed.
        await made.watch(key, "notes://own/one", on=True)
        assert rows(chat)[-1].uri == "notes://own/one"
        assert made.listed(key, ref_of("notes://own/one")) == ("notes://own/one", "")
        await made.watch(key, "notes://own/one", on=False)
        assert "notes://own/one" not in [each.uri for each in rows(chat)]


async def asked(room: ChatRoom, run_id: str) -> str:
    event = await room.event(run_id, lambda body: hasattr(body, "key"))
    return str(event.key)  # type: ignore[union-attr]


async def test_a_prompt_brings_its_last_text_and_attaches_the_rest() -> None:
    async with connected(notes()) as (room, chat):
        made, key = offers(room, chat), shown(chat, Prompts)[0].prompts[0].key
        mixed = await made.use(key, ref_of("mixed"), {})
        assert mixed.text == "And tomorrow?"
        texts = [each for each in mixed.blocks if isinstance(each, ResourceBlock)]
        assert [(block.name, block.text, block.source) for block in texts] == [
            ("mixed, message 1", "What is on today?", "notes"),
            ("mixed, message 2 of the assistant", "Rain.", "notes"),
            ("today", "# Today\n", "notes"),
        ]
        (picture,) = (each for each in mixed.blocks if isinstance(each, ImageBlock))
        assert picture.media_type == "image/png"
        assert mixed.left_out == ()
        letter = await made.use(key, ref_of("letter"), {"to": "Ada", "tone": ""})
        assert (letter.text, letter.blocks) == ("A calm letter to Ada.", ())
        with pytest.raises(HarnessError, match="Still to be filled in: to"):
            await made.use(key, ref_of("letter"), {"to": ""})
        with pytest.raises(ToolError, match="out of order"):
            await made.use(key, ref_of("broken"), {})
        with pytest.raises(NotFound):
            await made.use(key, ref_of("none"), {})


async def test_a_field_is_completed_with_what_the_others_hold() -> None:
    async with connected(notes()) as (room, chat):
        made, key, ref = offers(room, chat), shown(chat, Resources)[0].key, ref_of("letter")
        assert made.fields(key, "prompt", ref) == ("to", "tone")
        assert await made.complete(key, "prompt", ref, "to", {"to": "A"}) == ("Ada", "Alan")
        typed = {"to": "Ada", "tone": ""}
        assert await made.complete(key, "prompt", ref, "tone", typed) == ("kind to Ada",)
        template = ref_of("notes://{folder}/{name}{?q}")
        assert await made.complete(key, "template", template, "name", {"name": "G"}) == ("Grace",)


async def test_commands_of_two_servers_are_told_apart_and_leave_with_them() -> None:
    def labels() -> list[str]:
        parts = [part for part in log_of(chat, "commands") if isinstance(part, Commands)]
        return [each.label for part in parts for each in part.commands]

    async with connected(notes(), notes(name="more")) as (room, chat):
        assert labels()[:2] == ["/notes:plain", "/notes:letter"]
        (one, other) = shown(chat, Resources)
        room.chats.servers.of(chat).disconnect(other.key)
        assert labels()[:2] == ["/plain", "/letter"]
        with pytest.raises(NotFound):
            await offers(room, chat).read(other.key, TODAY)
        room.chats.servers.of(chat).disconnect(one.key)
        assert labels() == []
