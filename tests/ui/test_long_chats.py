"""A chat of very many messages is loaded without holding up anybody else."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.kept import Restarts
from tests.support.stores import SqlPlace
from web.chats.chat import Turn
from web.chats.journal.journal import TurnBegun, TurnSent, entry_to_event, journal_of
from web.commands.server import COLLECT_AFTER
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.events import RunResult, TextDelta
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

TURNS = 5_000


async def fill(place: SqlPlace, chat: str, turns: int) -> None:
    """Puts so many turns into a chat, as a server would have written them."""
    log, history = await place.events(), []
    for number in range(turns):
        run = f"{chat}{number:016x}"
        turn = Turn(run, f"question {number}", "demo:demo", f"q{number}")
        entries = (TurnSent(turn), TurnBegun(turn, 1.0))
        log.append(journal_of(chat), [entry_to_event(each) for each in entries])
        text = f"Answer **{number}** with some words, and a list:\n\n- a\n- b\n"
        log.append(run, [TextDelta(text, f"{run}-1"), RunResult("completed", text)])
        history += [
            Message(f"{run}-0", "user", (TextBlock(turn.text),)),
            Message(f"{run}-1", "assistant", (TextBlock(text),)),
        ]
        if number % 500 == 499 or number == turns - 1:
            await log.flush(run)
    sessions = await place.sessions()
    async with await sessions.acquire(LOCAL_IDENTITY, chat) as lease:
        await lease.commit(SessionSnapshot(tuple(history)))


@asynccontextmanager
async def longest_hold() -> AsyncIterator[list[float]]:
    """The longest time of this thread between two turns of the event loop, in seconds of work."""
    longest = [0.0]

    async def look() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest[0] = max(longest[0], now - last)
            last = now

    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)  # As the server does, when it has started.
    looking = asyncio.ensure_future(look())
    try:
        yield longest
    finally:
        looking.cancel()
        gc.set_threshold(*before)


@pytest.mark.full
async def test_a_chat_of_ten_thousand_messages_is_loaded_in_seconds_and_holds_up_nobody(
    stage: Restarts,
) -> None:
    async with stage.server() as server:
        chat, small = await server.new_chat(), await server.new_chat()
    await fill(stage.place, chat, TURNS)
    async with stage.server() as server:
        server.client.timeout = 60
        await server.client.get(f"/chats/{small}")  # Whatever is slow at its first use.
        worked = time.process_time()
        async with longest_hold() as longest:
            page = (await server.client.get(f"/chats/{chat}")).text
        assert time.process_time() - worked < 12
        assert longest[0] < 0.05
        assert f"question {TURNS - 1}" in page
        assert f"Answer <strong>{TURNS - 1}</strong>" in page
        assert len((await server.chat(chat))["messages"]) == 2 * TURNS


async def test_a_chat_of_many_turns_is_loaded_whole_and_in_order(stage: Restarts) -> None:
    async with stage.server() as server:
        chat = await server.new_chat()
    await fill(stage.place, chat, 250)
    async with stage.server() as server:
        page = (await server.client.get(f"/chats/{chat}")).text
        places = [page.find(f"Answer <strong>{number}</strong>") for number in range(250)]
        assert -1 not in places
        assert places == sorted(places)
        assert page.count("Answer <strong>7</strong>") == 1
