"""Whoever reads of a chat that nothing is at work in it has all that came of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.chat_room import ChatRoom, chat_room
from tests.support.scripted_provider import ScriptedProvider
from web.chats.chat import Chat
from web.harness.values.events import TextDelta
from web.harness.values.messages import Message
from web.harness.values.model import ModelDone, TextChunk
from web.ui.api.routes import _whole

pytestmark = pytest.mark.anyio


class EndsMeanwhile:
    """Chats whose run ends while they are read, as where the store takes its time."""

    def __init__(self, room: ChatRoom, run_id: str, go_on: asyncio.Event) -> None:
        self._room = room
        self._run_id = run_id
        self._go_on = go_on

    async def messages(self, chat: Chat) -> list[Message]:
        found = list(chat.messages)
        self._go_on.set()
        await self._room.result(self._run_id)
        return found


async def test_a_run_that_ends_while_its_chat_is_read_was_at_work() -> None:
    go_on = asyncio.Event()
    model = ScriptedProvider([TextChunk("Half, "), go_on, TextChunk("all."), ModelDone("end_turn")])
    async with chat_room(model) as room:
        chat = await room.new_chat()
        run = await room.say(chat)
        await room.event(run.run_id, lambda body: isinstance(body, TextDelta))
        chats = EndsMeanwhile(room, run.run_id, go_on)
        call = SimpleNamespace(services=SimpleNamespace(chats=chats))
        told = await _whole(cast(Any, call), chat)
        assert not any("all." in str(each) for each in told.messages)
        assert (told.active_run, told.state) == (run.run_id, "working")
