"""Messages that wait for a place among the runs of a server, or for their session."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.chat_room import chat_room
from tests.support.scripted_provider import ScriptedProvider, says
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.events import RunResult

pytestmark = pytest.mark.anyio


class SlowSessions(InMemorySessionStore):
    """Commits once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()

    async def keep(
        self, identity: HarnessIdentity, session_id: str, snapshot: SessionSnapshot | None
    ) -> None:
        await self.go_on.wait()
        await super().keep(identity, session_id, snapshot)


async def test_a_message_that_waits_follows_where_the_place_of_the_run_before_was_given_away() -> (
    None
):
    sessions, other_goes_on = SlowSessions(), asyncio.Event()
    provider = ScriptedProvider(says("one"), [other_goes_on, *says("other")], says("two"))
    async with chat_room(provider, max_running=1, sessions=sessions) as room:
        chat, other = await room.new_chat(), await room.new_chat()
        first, second = await room.say(chat, "first"), await room.say(chat, "second")
        await room.event(first.run_id, lambda body: isinstance(body, RunResult))
        running = await room.say(other, "other")
        sessions.go_on.set()
        assert (await room.result(second.run_id)).text == "two"
        other_goes_on.set()
        assert (await room.result(running.run_id)).text == "other"


async def test_a_message_that_is_sent_while_the_session_is_read_is_answered() -> None:
    async with chat_room(ScriptedProvider(says("Hi"))) as room:
        chat, other = await room.new_chat(), await room.new_chat()
        async with await room.sessions.acquire(LOCAL_IDENTITY, chat.id):
            turn = await room.say(chat)
            # By the end of another one it would have begun.
            await room.result((await room.say(other)).run_id)
        assert (await room.result(turn.run_id)).text == "Hi"
