"""The connections of a chat are resources of its session, and tools reach the same services."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chats.servers.test_servers import changing, ready, room
from tests.support.chat_room import chat_room
from tests.support.mcp_wire import eventually, pids_in, until_gone
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.servers.servers import OWN
from web.harness.mcp.connections import Connections
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.resource import Resource
from web.harness.tools.tool import PermissionLevel, ToolContext
from web.harness.values.errors import SessionConflict

pytestmark = pytest.mark.anyio


async def test_they_are_held_while_a_run_uses_them_and_end_with_the_chat(tmp_path: Path) -> None:
    going = asyncio.Event()
    async with room([going, *says("done")]) as made:
        chat = await made.new_chat()
        assert made.resources.ids(LOCAL_IDENTITY, chat.id) == ()
        made.chats.servers.of(chat).connect(changing(tmp_path))
        assert made.resources.ids(LOCAL_IDENTITY, chat.id) == (OWN,)
        await ready(chat)
        pids = await pids_in(tmp_path / "pids")
        turn = await made.say(chat)
        await made.provider.asked.wait()
        with pytest.raises(SessionConflict):
            await made.resources.close_session(LOCAL_IDENTITY, chat.id)
        going.set()
        await made.result(turn.run_id)
        await made.chats.delete(chat)
        await until_gone(pids)
        await eventually(lambda: len(made.resources) == 0)


async def test_a_tool_of_a_chat_keeps_state_and_live_things_from_run_to_run() -> None:
    tools = ToolRegistry()
    opened: list[str] = []
    closed: list[str] = []

    async def open_shell() -> Resource[str]:
        opened.append("shell")

        async def close() -> None:
            closed.append("shell")

        return Resource("shell", dispose=close)

    @tools.register(permission=PermissionLevel.ALLOW)
    async def count(context: ToolContext) -> str:
        """Counts."""
        await context.resource("shell", "session", open_shell)
        context.state["counted"] = context.state.get("counted", 0) + 1
        return str(context.state["counted"])

    answers = (calls(("count", {})), says("one"), calls(("count", {})), says("two"))
    async with chat_room(ScriptedProvider(*answers), tools, undo_seconds=0.01) as made:
        chat = await made.new_chat()
        for _ in range(2):
            await made.result((await made.say(chat)).run_id)
        async with await made.sessions.acquire(LOCAL_IDENTITY, chat.id) as lease:
            assert (await lease.read()).state["counted"] == 2
        assert (opened, closed) == (["shell"], [])
        await made.chats.delete(chat)
        await eventually(lambda: closed == ["shell"])


async def test_the_connections_that_all_chats_share_are_lent_and_never_ended(
    tmp_path: Path,
) -> None:
    async with room(says("done"), host=(changing(tmp_path),)) as made:
        chat = await made.new_chat()
        await ready(chat)
        pids = await pids_in(tmp_path / "pids")
        await made.result((await made.say(chat)).run_id)
        await made.chats.delete(chat)
        await eventually(lambda: len(made.resources) == 0)
        other = await made.new_chat()
        await ready(other)
        assert await pids_in(tmp_path / "pids") == pids
        assert made.resources.ids(LOCAL_IDENTITY, other.id) == ()


async def test_a_run_finds_them_under_their_id(tmp_path: Path) -> None:
    async with room(says("done")) as made:
        chat = await made.new_chat()
        made.chats.servers.of(chat).connect(changing(tmp_path))

        async def another() -> Resource[Connections]:
            raise AssertionError("there are some already")

        async with made.resources.lease(LOCAL_IDENTITY, chat.id) as lease:
            held = await lease.resource(OWN, "session", another)
        assert [each.spec.name for each in held.value] == ["moody"]
