"""Chats: made, listed, renamed, deleted and brought back, each seen by its own identity alone."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.chat_room import chat_room, log_of
from tests.support.scripted_provider import ScriptedProvider, says
from web.chats.parts.kinds import Head, Row, Undo
from web.chats.parts.setup_kinds import ChatSettings
from web.chats.records.titles import title_of
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound, StoreError
from web.harness.values.events import TextDelta
from web.harness.values.model import TextChunk

pytestmark = pytest.mark.anyio

STRANGER = HarnessIdentity("local", "stranger")


async def test_a_chat_takes_its_title_from_the_first_message_and_keeps_it() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        chat = await room.new_chat()
        assert log_of(chat, "head") == [Head("New chat", "demo:demo")]
        await room.result((await room.say(chat, "## What is *this*?\nmore")).run_id)
        await room.result((await room.say(chat, "And that?")).run_id)
        assert log_of(chat, "head") == [Head("What is this?", "demo:demo")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  \n\n hello  there ", "hello there"),
        ("```\ncode\n```", "code"),
        ("x" * 100, "x" * 59 + "…"),
        ("word " * 30, "word " * 10 + "word…"),
        ("***", ""),
        ("What is 6*7 or 6 * 7?", "What is 6*7 or 6 * 7?"),
        ("> **bold** and `code` here.", "bold and code here."),
        ("- one\n- two", "one"),
        ("`calculate` *now*!", "calculate now!"),
        ("compute 2**10 and 2 ** 3", "compute 2**10 and 2 ** 3"),
        ("what is `__init__` **for**?", "what is __init__ for?"),
        ("/write_file ~~now~~", "/write_file now"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_of(text) == title


async def test_the_side_bar_shows_the_chat_with_the_newest_message_first() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        first, second = await room.new_chat(title="first"), await room.new_chat(title="second")
        side_bar = room.chats.side_bar(LOCAL_IDENTITY)

        def rows() -> list[str]:
            return [
                part.data.title for part in side_bar.slot("chats") if isinstance(part.data, Row)
            ]

        assert rows() == ["second", "first"]
        await room.result((await room.say(first)).run_id)
        assert rows() == ["first", "second"]
        assert room.chats.list(LOCAL_IDENTITY) == [first, second]


async def test_the_side_bar_shows_what_a_chat_does() -> None:
    go_on = asyncio.Event()
    async with chat_room(ScriptedProvider([TextChunk("a"), go_on, *says("b")])) as room:
        chat = await room.new_chat()
        side_bar = room.chats.side_bar(LOCAL_IDENTITY)

        def state() -> str:
            (part,) = side_bar.slot("chats")
            assert isinstance(part.data, Row)
            return part.data.state

        assert state() == "idle"
        turn = await room.say(chat)
        assert state() == "working"
        go_on.set()
        await room.result(turn.run_id)
        await asyncio.sleep(0)
        assert state() == "idle"


async def test_a_chat_is_not_there_for_another_identity() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        await room.result(turn.run_id)
        with pytest.raises(NotFound):
            room.chats.get(STRANGER, chat.id)
        with pytest.raises(NotFound):
            room.chats.run(STRANGER, turn.run_id)
        with pytest.raises(NotFound):
            await room.chats.restore(STRANGER, chat.id)
        assert room.chats.channel(STRANGER, chat.id) is None
        assert room.chats.list(STRANGER) == []
        assert room.chats.side_bar(STRANGER).slot("chats") == []


async def test_the_same_request_id_makes_one_chat() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        first = await room.new_chat(request_id="r")
        assert await room.new_chat(request_id="r") is first
        assert await room.new_chat() is not first
        await room.chats.delete(first)
        assert await room.new_chat(request_id="r") is not first


async def test_a_deleted_chat_can_be_brought_back_whole() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        chat = await room.new_chat()
        await room.result((await room.say(chat)).run_id)
        await room.chats.delete(chat)
        await room.chats.delete(chat)
        side_bar = room.chats.side_bar(LOCAL_IDENTITY)
        assert side_bar.slot("chats") == []
        (undo,) = side_bar.slot("undo")
        assert isinstance(undo.data, Undo)
        assert chat.channel.gone == "deleted"
        with pytest.raises(NotFound):
            room.chats.get(LOCAL_IDENTITY, chat.id)
        assert await room.chats.restore(LOCAL_IDENTITY, chat.id) is chat
        assert chat.channel.gone is None
        assert len(side_bar.slot("chats")) == 1
        assert side_bar.slot("undo") == []
        assert [message.text for message in chat.messages] == ["hello", "x"]


async def test_a_deletion_stops_what_the_chat_does() -> None:
    async with chat_room(ScriptedProvider([TextChunk("a"), asyncio.Event()])) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        await room.say(chat, "waits")
        await room.chats.delete(chat)
        assert (await room.result(turn.run_id)).status == "cancelled"
        assert room.provider.open == 0
        assert [turn.text for turn in chat.queue] == ["waits"]


async def test_what_waited_in_a_deleted_chat_is_sent_when_it_is_brought_back() -> None:
    model = ScriptedProvider([TextChunk("a"), asyncio.Event()], says("one"), says("two"))
    async with chat_room(model) as room:
        chat = await room.new_chat()
        first = await room.say(chat)
        await room.event(first.run_id, lambda body: isinstance(body, TextDelta))
        waiting = [await room.say(chat, text) for text in ("first", "second")]
        await room.chats.delete(chat)
        assert chat.turn is None
        await room.chats.restore(LOCAL_IDENTITY, chat.id)
        results = [await room.result(turn.run_id) for turn in waiting]
        assert [result.text for result in results] == ["one", "two"]
        assert chat.queue == []


async def test_what_waits_in_a_chat_that_is_deleted_for_good_is_taken_back() -> None:
    model = ScriptedProvider([TextChunk("a"), asyncio.Event()], says("never"))
    async with chat_room(model, undo_seconds=0.01) as room:
        chat = await room.new_chat()
        first = await room.say(chat)
        await room.event(first.run_id, lambda body: isinstance(body, TextDelta))
        await room.say(chat, "waits")
        await room.chats.delete(chat)
        # It may be over already: stopping an answer takes a while on a busy machine.
        await asyncio.wait_for(room.rest(), 10)
        assert chat.queue == []
        assert len(room.provider.requests) == 1


async def test_after_the_time_to_undo_nothing_of_a_chat_is_left() -> None:
    async with chat_room(ScriptedProvider(says("x")), undo_seconds=0.01) as room:
        chat = await room.new_chat(request_id="r")
        turn = await room.say(chat)
        await room.result(turn.run_id)
        await room.chats.delete(chat)
        # It may be over already: stopping an answer takes a while on a busy machine.
        await asyncio.wait_for(room.rest(), 10)
        with pytest.raises(NotFound):
            await room.chats.restore(LOCAL_IDENTITY, chat.id)
        with pytest.raises(NotFound):
            room.chats.run(LOCAL_IDENTITY, turn.run_id)
        assert await room.records.get(LOCAL_IDENTITY, chat.id) is None
        assert await room.sessions.list(LOCAL_IDENTITY) == []
        assert await room.all_events(turn.run_id) == []
        assert room.chats._made == {}
        assert room.chats.side_bar(LOCAL_IDENTITY).slot("undo") == []


async def test_there_are_no_more_chats_than_the_limit() -> None:
    async with chat_room(ScriptedProvider(says("x")), max_chats=2) as room:
        await room.new_chat()
        await room.new_chat()
        with pytest.raises(LimitExceeded, match="limit"):
            await room.new_chat()


async def test_settings_that_do_not_fit_are_refused() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        chat = await room.new_chat(title=" spaced   out ", system_prompt="Be brief.")
        assert chat.title == "spaced out"
        with pytest.raises(HarnessError, match="not offered"):
            await room.new_chat(model="nobody:nothing")
        with pytest.raises(LimitExceeded, match="title"):
            await room.chats.change(chat, title="x" * 81)
        await room.chats.change(chat, title="named", model="openai:other")
        assert log_of(chat, "head") == [Head("named", "openai:other")]
        await room.result((await room.say(chat)).run_id)
        assert room.provider.requests[0].system_prompt == "Be brief."


async def test_a_draft_is_kept_until_it_is_sent() -> None:
    async with chat_room(ScriptedProvider(*map(says, "xyz"))) as room:
        chat = await room.new_chat()
        await room.chats.keep_draft(chat, "half a sent")
        kept = await room.records.get(LOCAL_IDENTITY, chat.id)
        assert kept is not None
        assert kept.draft == "half a sent"
        turn = await room.chats.send(chat, "a program's", queue=True)
        assert chat.record.draft == "half a sent"
        await room.result(turn.run_id)
        turn = await room.chats.send(chat, "half a sentence", queue=True, draft="half a sent")
        assert chat.record.draft == ""
        await room.result(turn.run_id)
        await room.chats.keep_draft(chat, "whole")
        await room.result((await room.chats.send(chat, "whole", queue=True)).run_id)
        assert chat.record.draft == ""


async def test_the_settings_that_are_shown_follow_title_and_model() -> None:
    async with chat_room(ScriptedProvider(says("a"))) as room:
        chat = await room.new_chat()

        def shown() -> tuple[str, str]:
            (data,) = log_of(chat, "settings")
            assert isinstance(data, ChatSettings)
            assert data.models == ("demo:demo", "openai:other")
            return data.title, data.model

        assert shown() == ("New chat", "demo:demo")
        turn = await room.say(chat, "What is rain?", model="openai:other")
        assert shown() == ("What is rain?", "openai:other")
        await room.result(turn.run_id)
        await room.chats.change(chat, title="Rain", model="demo:demo")
        assert shown() == ("Rain", "demo:demo")


class RefusingSessions(InMemorySessionStore):
    """Refuses to delete the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = False

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        if not self.refused:
            self.refused = True
            raise StoreError("The database is away.")
        await super().delete(identity, session_id)


@pytest.mark.full
async def test_a_chat_is_deleted_for_good_once_the_store_takes_it() -> None:
    sessions = RefusingSessions()
    room_of = chat_room(ScriptedProvider(says("x")), undo_seconds=0.01, sessions=sessions)
    async with room_of as room:
        chat = await room.new_chat(request_id="r")
        await room.result((await room.say(chat)).run_id)
        await room.chats.delete(chat)
        await asyncio.wait_for(room.rest(), 10)
        assert sessions.refused
        assert await room.records.get(LOCAL_IDENTITY, chat.id) is None
        assert await room.sessions.list(LOCAL_IDENTITY) == []
        assert room.chats._made == {}
