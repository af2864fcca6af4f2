"""Chats are made of snapshots whole or not at all, a few at a time."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest

from tests.harness.snapshots.kept import FULL
from tests.support.chat_room import ChatRoom, chat_room, log_of
from tests.support.scripted_provider import ScriptedProvider, says
from web.chats.parts.kinds import Notice, UserMessage
from web.chats.snapshots.snapshots import BROUGHT, MAX_AT_ONCE, ChatSnapshots
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.snapshots.form import read_snapshot, write_snapshot
from web.harness.values.config import ModelName
from web.harness.values.errors import LimitExceeded, NotFound
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio


def snapshots_of(room: ChatRoom, max_bytes: int = 10_000_000) -> ChatSnapshots:
    ids = itertools.count(1)
    return ChatSnapshots(
        room.chats,
        room.turns,
        room.sessions,
        room.turns.equipment,
        max_bytes=max_bytes,
        now=lambda: 1_000.0,
        new_id=lambda: f"s{next(ids)}",
    )


def long_one(turns: int) -> bytes:
    messages: list[Message] = []
    for number in range(turns):
        before = messages[-1].id if messages else None
        messages.append(Message(f"q{number}", "user", (TextBlock(f"Q{number}"),), before))
        messages.append(Message(f"a{number}", "assistant", (TextBlock("A"),), f"q{number}"))
    return write_snapshot(replace(FULL, messages=tuple(messages), pinned=()))


async def test_what_is_sent_while_a_conversation_is_shown_waits_for_all_of_it() -> None:
    provider = ScriptedProvider(says("ok"))
    async with chat_room(provider, max_message_chars=10_000) as room:
        loading = asyncio.create_task(snapshots_of(room).load(LOCAL_IDENTITY, long_one(50)))
        while not (found := room.chats.list(LOCAL_IDENTITY)) or not log_of(found[0]):  # noqa: ASYNC110
            await asyncio.sleep(0)
        turn = await room.say(found[0], "Now")
        assert turn in found[0].queue
        chat = await loading
        await room.result(turn.run_id)
        said = [part.text for part in log_of(chat) if isinstance(part, UserMessage)]
        assert said == [*(f"Q{number}" for number in range(50)), "Now"]
        assert len(provider.requests[0].messages) == 101
        assert [part.text for part in log_of(chat) if isinstance(part, Notice)] == [
            "Loaded from a snapshot. anthropic:claude-sonnet-4-6 is not offered here, so demo:demo "
            "answers."
        ]


async def test_a_conversation_belongs_to_whoever_loaded_it() -> None:
    async with chat_room(ScriptedProvider(says("ok")), max_message_chars=10_000) as room:
        stranger = HarnessIdentity("elsewhere", "bob")
        chat = await snapshots_of(room).load(stranger, write_snapshot(FULL))
        assert room.chats.list(LOCAL_IDENTITY) == []
        with pytest.raises(NotFound):
            room.chats.get(LOCAL_IDENTITY, chat.id)
        with pytest.raises(NotFound):
            room.chats.run(LOCAL_IDENTITY, chat.runs[0])


async def test_a_snapshot_that_is_refused_leaves_no_chat() -> None:
    async with chat_room(ScriptedProvider(says("ok")), max_message_chars=20) as room:
        snapshots = snapshots_of(room)
        # Its instructions are longer than this server takes.
        with pytest.raises(LimitExceeded):
            await snapshots.load(LOCAL_IDENTITY, write_snapshot(FULL))
        with pytest.raises(LimitExceeded):
            await snapshots_of(room, 100).load(LOCAL_IDENTITY, write_snapshot(FULL))
        assert room.chats.list(LOCAL_IDENTITY) == []


async def test_so_many_are_at_work_and_no_more() -> None:
    async with chat_room(ScriptedProvider(says("ok"))) as room:
        snapshots = snapshots_of(room)
        chat = await room.new_chat()
        places = [snapshots.place() for _ in range(MAX_AT_ONCE)]
        for place in places:
            place.__enter__()
        with pytest.raises(LimitExceeded, match="its limit"):
            await snapshots.save(chat)
        places[0].__exit__(None, None, None)
        assert await snapshots.save(chat)
        for place in places[1:]:
            place.__exit__(None, None, None)


async def test_what_a_file_says_of_a_model_is_not_learned_by_this_server() -> None:
    async with chat_room(ScriptedProvider(says("ok")), max_message_chars=10_000) as room:
        model = ModelName("demo", "demo")
        poisoned = replace(FULL, learned_limits={str(model): {"context_tokens": 300}})
        snapshots = snapshots_of(room)
        chat = await snapshots.load(LOCAL_IDENTITY, write_snapshot(poisoned))
        assert room.turns.equipment.learned.get(model) is None
        again = read_snapshot(await snapshots.save(chat))
        assert again.learned_limits[str(model)]["context_tokens"] == 300


async def test_what_is_nothing_to_a_chat_is_kept_as_one_text_which_no_turn_has_to_copy() -> None:
    async with chat_room(ScriptedProvider(says("ok")), max_message_chars=10_000) as room:
        snapshots = snapshots_of(room)
        chat = await snapshots.load(LOCAL_IDENTITY, write_snapshot(FULL))
        async with await room.sessions.acquire(chat.identity, chat.id) as lease:
            kept = (await lease.read()).state[BROUGHT]
        assert isinstance(kept, str)
        again = read_snapshot(await snapshots.save(chat))
        assert (again.extensions, again.config.extra) == (FULL.extensions, FULL.config.extra)
        assert again.metadata["topic"] == FULL.metadata["topic"]


@pytest.mark.parametrize("at", [253_402_300_799.0, -62_135_596_800.0])
async def test_a_time_that_no_clock_shows_is_not_shown(at: float) -> None:
    async with chat_room(ScriptedProvider(says("ok")), max_message_chars=10_000) as room:
        far = write_snapshot(replace(FULL, updated_at=at))
        chat = await snapshots_of(room).load(LOCAL_IDENTITY, far)
        [said] = [part for part in log_of(chat) if isinstance(part, UserMessage)]
        assert 0.0 <= said.at <= 1_000.0


async def test_limits_of_a_file_stay_within_those_of_the_server() -> None:
    async with chat_room(ScriptedProvider(says("ok")), max_message_chars=10_000) as room:
        greedy = replace(
            FULL,
            config=replace(FULL.config, limits=replace(FULL.config.limits, max_iterations=10**12)),
        )
        chat = await snapshots_of(room).load(LOCAL_IDENTITY, write_snapshot(greedy))
        [told] = [part.text for part in log_of(chat) if isinstance(part, Notice)]
        assert "Model calls 1,000 (1,000,000,000,000 was asked for)" in told
        assert chat.record.setup.max_iterations == 1_000
