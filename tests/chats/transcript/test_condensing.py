"""A chat that gets too long for its model: the page, its record and further tries lose nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.support.chat_room import chat_room, log_of
from tests.support.limited_provider import is_summary_request
from tests.support.scripted_provider import ScriptedProvider, Step, breaks, says
from web.chats.parts.condensed_kinds import Condensed
from web.chats.parts.kinds import MarkdownBlock, UserMessage
from web.chats.snapshots.recording import recorded_runs
from web.harness.memory.summaries import is_summary
from web.harness.values.errors import ContextTooLong
from web.harness.values.messages import ResourceBlock
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest, TextChunk
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio

LIMIT = 3_000


class Noting(ScriptedProvider):
    """Answers as it is scripted, and a request for notes with notes."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        if is_summary_request(request):
            yield [TextChunk("Notes."), ModelDone("end_turn", Usage(9, 9))]
            return
        async for chunks in super().stream(request):
            yield chunks


def refuses() -> list[Step]:
    return [ContextTooLong("Too long.", limit=LIMIT)]


def tells() -> list[Step]:
    return says("word " * 350)


async def test_what_was_condensed_away_stays_on_the_page_and_in_the_record() -> None:
    provider = Noting(*(tells() for _ in range(4)), refuses(), says("ok"))
    attached = ResourceBlock("", "data.csv", "text/csv", "1,2,3")
    async with chat_room(provider) as room:
        chat = await room.new_chat()
        for number in range(4):
            turn = await room.say(chat, f"question {number}", attachments=(attached,))
            await room.result(turn.run_id)
        result = await room.result((await room.say(chat, "and now?")).run_id)
        assert (result.status, result.text) == ("completed", "ok")
        assert is_summary(chat.messages[0])
        assert len(chat.messages) < 10
        said = [data.text for data in log_of(chat) if isinstance(data, UserMessage)]
        assert said == [*(f"question {number}" for number in range(4)), "and now?"]
        (condensed,) = [data for data in log_of(chat) if isinstance(data, Condensed)]
        assert condensed.after < condensed.before
        (part,) = [p for p in chat.channel.slot("log") if isinstance(p.data, Condensed)]
        (notes,) = [p.data for p in chat.channel.slot(part.id)]
        assert isinstance(notes, MarkdownBlock)
        assert notes.block.source == "Notes."
        recorded = await recorded_runs(chat, room.events)
        assert [run.said.attachments for run in recorded if run.said] == [
            *[(attached,)] * 4,
            (),
        ]


async def test_one_chats_refusal_spares_the_others_theirs() -> None:
    provider = Noting(refuses(), says("ok"))
    async with chat_room(provider) as room:
        for _ in range(2):
            chat = await room.new_chat()
            await room.result((await room.say(chat)).run_id)
        assert len(provider.requests) == 3
        assert [request.max_tokens < LIMIT for request in provider.requests] == [False, True, True]


async def test_a_turn_that_failed_after_its_summary_is_tried_again_with_the_notes() -> None:
    provider = Noting(
        *(tells() for _ in range(4)),
        *(refuses(), breaks(transient=False), says("right")),
    )
    async with chat_room(provider) as room:
        chat = await room.new_chat()
        for number in range(4):
            await room.result((await room.say(chat, f"question {number}")).run_id)
        failed = await room.say(chat, "and now?")
        assert (await room.result(failed.run_id)).status == "failed"
        again = await room.chats.retry(chat, failed.run_id)
        assert (await room.result(again.run_id)).text == "right"
        assert is_summary(chat.messages[0])
        sent = provider.requests[-1].messages
        assert sent[0].attachments[0].text == "Notes."
        assert [message.text for message in sent].count("and now?") == 1


async def test_a_chat_may_change_to_a_smaller_model() -> None:
    provider = Noting(*(tells() for _ in range(6)), refuses(), says("ok"))
    async with chat_room(provider) as room:
        chat = await room.new_chat()
        for number in range(6):
            await room.result((await room.say(chat, f"question {number}")).run_id)
        await room.chats.change(chat, model="openai:other")
        result = await room.result((await room.say(chat, "and now?")).run_id)
        assert result.text == "ok"
        assert is_summary(chat.messages[0])
