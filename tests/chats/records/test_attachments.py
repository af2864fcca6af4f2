"""What is attached to a message waits with the draft, goes once, and comes back where it has to."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.chat_room import ChatRoom, chat_room, log_of
from tests.support.pictures import picture
from tests.support.scripted_provider import ScriptedProvider, breaks, says
from web.chats.chat import Chat
from web.chats.parts.kinds import Queued, UserMessage
from web.chats.parts.offer_kinds import Attachment
from web.chats.records.attachments import AttachmentLimits
from web.harness.values.errors import LimitExceeded
from web.harness.values.messages import AttachedBlock, ResourceBlock

pytestmark = pytest.mark.anyio


def note(name: str, text: str = "Rain.") -> ResourceBlock:
    return ResourceBlock(f"notes://{name}", name, "text/plain", text, "notes")


def shown(chat: Chat) -> list[str]:
    return [data.shown.name for data in log_of(chat, "attached") if isinstance(data, Attachment)]


def said(chat: Chat) -> list[tuple[str, list[str]]]:
    return [
        (data.text, [each.name for each in data.attachments])
        for data in log_of(chat)
        if isinstance(data, UserMessage)
    ]


async def sent(room: ChatRoom, chat: Chat, text: str, request_id: str = "") -> None:
    turn = await room.chats.send(chat, text, queue=True, attached=True, request_id=request_id)
    await room.result(turn.run_id)


async def test_they_go_with_the_next_message_and_with_no_other() -> None:
    async with chat_room(ScriptedProvider(says("a"), says("b"))) as room:
        chat = await room.new_chat()
        await room.chats.attach(chat, [note("one"), note("two")])
        await room.chats.keep_draft(chat, "What")
        record = await room.records.get(chat.identity, chat.id)
        assert record is not None
        assert (len(record.attachments), shown(chat)) == (2, ["one", "two"])
        await sent(room, chat, "What is it?", request_id="r")
        await sent(room, chat, "What is it?", request_id="r")
        await sent(room, chat, "And now?")
        assert said(chat) == [("What is it?", ["one", "two"]), ("And now?", [])]
        assert shown(chat) == []
        first, second = (request.messages for request in room.provider.requests)
        assert first[0].attachments == (note("one"), note("two"))
        assert [message.attachments for message in second[1:]] == [(), ()]


async def test_one_is_taken_off_and_a_program_leaves_them_alone() -> None:
    async with chat_room(ScriptedProvider(says("a"))) as room:
        chat = await room.new_chat()
        await room.chats.attach(chat, [note("one"), note("two")])
        await room.chats.detach(chat, chat.record.attachments[0].id)
        await room.chats.detach(chat, "unknown")
        turn = await room.chats.send(chat, "By a program", queue=False)
        await room.result(turn.run_id)
        assert shown(chat) == ["two"]
        assert said(chat) == [("By a program", [])]


async def test_a_message_that_waits_says_so_and_gives_them_back() -> None:
    gate = asyncio.Event()
    async with chat_room(ScriptedProvider([gate, *says("a")])) as room:
        chat = await room.new_chat()
        await room.say(chat, "first")
        await room.chats.attach(chat, [note("one")])
        turn = await room.chats.send(chat, "second", queue=True, attached=True)
        assert log_of(chat, "queue") == [Queued(turn.run_id, "second", 1)]
        assert shown(chat) == []
        assert await room.chats.take_back(chat, turn.run_id) == "second"
        assert shown(chat) == ["one"]
        gate.set()


async def test_a_message_that_is_tried_again_takes_them_along() -> None:
    async with chat_room(ScriptedProvider(breaks(transient=False), says("a"))) as room:
        chat = await room.new_chat()
        await room.chats.attach(chat, [note("one")])
        turn = await room.chats.send(chat, "Hello", queue=True, attached=True)
        await room.result(turn.run_id)
        again = await room.chats.retry(chat, turn.run_id)
        await room.result(again.run_id)
        assert said(chat) == [("Hello", ["one"])]
        assert room.provider.requests[-1].messages[0].attachments == (note("one"),)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([note(f"n{number}") for number in range(10)], "at most 10 attachments; these are 11"),
        ([note("fine"), note("long", "x" * 200_001)], "'long' has 200,001 characters"),
        ([picture("plan", size=8_000_001)], "'plan' has 8.0 MB; a picture takes at most 8.0 MB"),
        (3 * [picture("plan", size=7_000_000)], "at most 20.0 MB together; these have 21.0 MB"),
    ],
)
async def test_what_is_too_much_is_refused_whole(blocks: list[AttachedBlock], words: str) -> None:
    async with chat_room(ScriptedProvider()) as room:
        chat = await room.new_chat()
        await room.chats.attach(chat, [note("before")])
        with pytest.raises(LimitExceeded, match=words):
            await room.chats.attach(chat, blocks)
        assert shown(chat) == ["before"]


def test_a_picture_counts_with_all_its_bytes_where_only_its_name_is_known() -> None:
    there = picture("plan.png", size=600)
    named = replace(there, data=b"", length=len(there.data))
    AttachmentLimits(max_pictures_bytes=1_200).check([named, there])
    for limits in (
        AttachmentLimits(max_pictures_bytes=1_199),
        AttachmentLimits(max_picture_bytes=599),
    ):
        with pytest.raises(LimitExceeded):
            limits.check([named, named])
