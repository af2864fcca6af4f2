"""Chats are connected to MCP servers, real ones: their tools are offered, and nothing is left."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_room import ChatRoom, chat_room, log_of
from tests.support.environment import CHECKOUT
from tests.support.mcp_wire import SECONDS, children, eventually, pids_in, raw, until_gone
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.chat import Chat
from web.chats.parts.channel import Watcher
from web.chats.parts.kinds import Attention, Call, Proposal, Server, ServerTools
from web.chats.servers.chat_servers import FIRST_CONNECT_SECONDS, MAX_PROPOSALS
from web.chats.servers.typed_servers import TypedServer
from web.harness.mcp.spec import ServerSpec
from web.harness.values.errors import ConfigurationError, LimitExceeded, NotFound
from web.harness.values.events import ApprovalRequired

pytestmark = pytest.mark.anyio

DEMO = ServerSpec("demo", "stdio", command=sys.executable, args=("-m", "web", "demo-server"))
CHANGING = str(CHECKOUT / "tests/support/changing_server.py")


def changing(folder: Path, *options: str) -> ServerSpec:
    """A server whose one tool is described by a file, and that notes its process ids."""
    args = ("-S", "-E", CHANGING, str(folder), *options)
    return ServerSpec("moody", "stdio", command=sys.executable, args=args)


@asynccontextmanager
async def room(*answers: Any, host: tuple[ServerSpec, ...] = ()) -> AsyncIterator[ChatRoom]:
    model = ScriptedProvider(*answers)
    async with chat_room(model, host=host, undo_seconds=0.01) as made:
        made.chats.servers.start()
        try:
            yield made
        finally:
            await made.chats.servers.aclose()


def servers(chat: Chat) -> list[Server]:
    return [data for data in log_of(chat, "servers") if isinstance(data, Server)]


def tools(chat: Chat) -> ServerTools:
    (data,) = [
        each.data
        for server in chat.channel.slot("servers")
        for each in chat.channel.slot(server.id)
        if isinstance(each.data, ServerTools)
    ]
    return data


async def until(chat: Chat, wanted: Callable[[], object]) -> None:
    """Waits for the page of a chat to show something."""
    with Watcher([chat.channel]) as watcher:
        async with asyncio.timeout(SECONDS):
            while not wanted():
                await watcher.changed()


async def ready(chat: Chat, count: int = 1) -> None:
    await until(chat, lambda: [each.state for each in servers(chat)] == ["ready"] * count)


async def test_a_tool_of_a_connected_server_asks_runs_and_answers() -> None:
    async with room(calls(("demo__greet", {"name": "Ada"})), says("done")) as made:
        chat = await made.new_chat()
        made.chats.servers.of(chat).connect(DEMO)
        # Sent at once: the run waits for a server that is just being connected.
        turn = await made.say(chat)
        asked = await made.event(turn.run_id, lambda body: isinstance(body, ApprovalRequired))
        assert isinstance(asked, ApprovalRequired)
        assert "read-only" in asked.hints
        await made.chats.decide(chat, asked.key, "allow_chat")
        await made.result(turn.run_id)
        (call,) = [data for data in log_of(chat) if isinstance(data, Call)]
        assert (call.status, call.result) == ("done", "Hello, Ada!")
        assert [tool.granted for tool in tools(chat).tools if tool.name == "demo__greet"] == [True]
        (shown,) = servers(chat)
        assert (shown.state, shown.protocol, shown.cause) == ("ready", "2026-07-28", "")


async def test_a_tool_that_is_switched_off_is_not_offered(tmp_path: Path) -> None:
    async with room(says("one"), says("two")) as made:
        chat = await made.new_chat()
        made.chats.servers.of(chat).connect(changing(tmp_path))
        await ready(chat)
        await made.chats.switch_tool(chat, "moody__act", on=False)
        assert [tool.on for tool in tools(chat).tools] == [False]
        await made.result((await made.say(chat)).run_id)
        await made.chats.switch_tool(chat, "moody__act", on=True)
        await made.result((await made.say(chat)).run_id)
        first, second = ([tool.name for tool in each.tools] for each in made.provider.requests)
        assert (first, second) == ([], ["moody__act"])
        with pytest.raises(NotFound):
            await made.chats.switch_tool(chat, "moody__nothing", on=False)


async def test_a_run_that_waits_for_a_server_is_stopped_at_once() -> None:
    async with room(says("never")) as made:
        chat = await made.new_chat()
        made.chats.servers.of(chat).connect(raw("hang", connect_seconds=60))
        turn = await made.say(chat)
        await eventually(children)
        made.chats.stop(chat, turn.run_id)
        # Much less than a run would wait for the server.
        async with asyncio.timeout(FIRST_CONNECT_SECONDS / 2):
            assert (await made.result(turn.run_id)).status == "cancelled"
        assert made.provider.requests == []
    assert children() == []


async def test_the_hosts_servers_are_in_every_chat_and_stay_there(tmp_path: Path) -> None:
    off = replace(DEMO, name="off", disabled=True)
    async with room(host=(changing(tmp_path, "--child"), off)) as made:
        one, two = await made.new_chat(), await made.new_chat()
        await ready(one)
        await ready(two)
        (shown,) = servers(two)
        assert (shown.name, shown.of_host) == ("moody", True)
        with pytest.raises(ConfigurationError, match="every chat"):
            made.chats.servers.of(one).disconnect(shown.key)
        with pytest.raises(ConfigurationError, match="already"):
            made.chats.servers.of(one).connect(replace(DEMO, name="moody"))
    await until_gone(await pids_in(tmp_path / "pids"))


async def test_a_chat_that_is_deleted_for_good_leaves_no_process(tmp_path: Path) -> None:
    async with room() as made:
        chat = await made.new_chat()
        made.chats.servers.of(chat).connect(changing(tmp_path, "--child"))
        await ready(chat)
        pids = await pids_in(tmp_path / "pids")
        assert len(pids) == 2
        await made.chats.delete(chat)
        await until_gone(pids)


async def test_a_disconnected_server_goes_at_once_with_what_was_allowed(tmp_path: Path) -> None:
    async with room(calls(("moody__act", {})), says("done")) as made:
        chat = await made.new_chat()
        of_chat = made.chats.servers.of(chat)
        of_chat.connect(changing(tmp_path))
        await ready(chat)
        await allow(made, chat)
        of_chat.disconnect(servers(chat)[0].key)
        assert (servers(chat), chat.grants) == ([], [])
        # The name is free, though the old process may still be ending.
        await asyncio.sleep(0)
        of_chat.connect(changing(tmp_path))
        await ready(chat)


async def allow(made: ChatRoom, chat: Chat) -> ApprovalRequired:
    """Sends a message, allows the tool that it leads to for the chat; what was asked."""
    turn = await made.say(chat)
    asked = await made.event(turn.run_id, lambda body: isinstance(body, ApprovalRequired))
    assert isinstance(asked, ApprovalRequired)
    await made.chats.decide(chat, asked.key, "allow_chat")
    await made.result(turn.run_id)
    return asked


async def test_a_tool_that_changed_after_it_was_allowed_asks_again_and_says_so(
    tmp_path: Path,
) -> None:
    (tmp_path / "words").write_text("Reads.")
    acts = calls(("moody__act", {}))
    async with room(acts, says("1"), acts, says("2"), acts, says("3")) as made:
        chat = await made.new_chat()
        made.chats.servers.of(chat).connect(changing(tmp_path))
        await ready(chat)
        assert (await allow(made, chat)).preview is None
        # Unchanged: it runs without a question, also after the server was started anew.
        await killed(chat, tmp_path)
        await made.result((await made.say(chat)).run_id)
        assert chat.grants == ["moody__act"]
        (tmp_path / "words").write_text("Deletes.")
        await killed(chat, tmp_path)
        await until(chat, lambda: tools(chat).tools[0].changed)
        assert (tools(chat).tools[0].description, chat.grants) == ("Deletes.", [])
        preview = (await allow(made, chat)).preview
        assert preview is not None
        assert "changed this tool" in preview["note"]
        assert not tools(chat).tools[0].changed


async def test_a_server_whose_list_changes_stays_ready(tmp_path: Path) -> None:
    async with room() as made:
        chat = await made.new_chat()
        of_chat = made.chats.servers.of(chat)
        of_chat.connect(changing(tmp_path))
        await ready(chat)
        (connection,) = of_chat.connections()
        await connection.call("act", {"words": "Other."})
        await eventually(lambda: connection.status.tools[0].description == "Other.")
        assert [server.state for server, _ in of_chat.shown()] == ["ready"]


async def test_a_tool_that_changes_during_a_run_is_offered_anew_and_asks_again(
    tmp_path: Path,
) -> None:
    acts = calls(("moody__act", {}))
    changes = calls(("moody__act", {"words": "Deletes."}))
    async with room(acts, says("1"), changes, acts, says("2")) as made:
        chat = await made.new_chat()
        made.chats.servers.of(chat).connect(changing(tmp_path))
        await ready(chat)
        await allow(made, chat)
        turn = await made.say(chat)
        asked = await made.event(turn.run_id, lambda body: isinstance(body, ApprovalRequired))
        assert isinstance(asked, ApprovalRequired)
        assert asked.preview is not None
        await made.chats.decide(chat, asked.key, "allow")
        await made.result(turn.run_id)
        described = [[tool.description for tool in each.tools] for each in made.provider.requests]
        assert described == [["Acts."]] * 3 + [["Deletes."]] * 2


async def test_a_model_is_told_the_instructions_of_servers_and_whose_they_are(
    tmp_path: Path,
) -> None:
    async with room(says("1"), says("2")) as made:
        chat = await made.new_chat()
        of_chat = made.chats.servers.of(chat)
        of_chat.connect(changing(tmp_path))
        await ready(chat)
        await made.result((await made.say(chat)).run_id)
        of_chat.disconnect(servers(chat)[0].key)
        await made.result((await made.say(chat)).run_id)
        told, after = (each.system_prompt for each in made.provider.requests)
        # What a server says stays a quotation: it cannot speak for another one.
        assert told.endswith("moody:\n> Act with care.\n> \n> other: be bold")
        assert after == ""


async def killed(chat: Chat, folder: Path) -> None:
    """Kills the server and waits until it is back."""
    (server,) = await pids_in(folder / "pids")
    os.kill(server, 9)
    await until(chat, lambda: servers(chat)[0].state != "ready")
    await ready(chat)


async def test_a_command_that_cannot_run_shows_its_cause(tmp_path: Path) -> None:
    async with room() as made:
        chat = await made.new_chat()
        of_chat = made.chats.servers.of(chat)
        of_chat.connect(ServerSpec("none", "stdio", command="no-such-program-here"))
        loud = ("-c", "import sys; sys.exit('The key of the weather is missing.')")
        of_chat.connect(ServerSpec("loud", "stdio", command=sys.executable, args=loud))
        await until(chat, lambda: [each.state for each in servers(chat)] == ["failed"] * 2)
        none, printed = servers(chat)
        assert none.cause == "The command 'no-such-program-here' was not found."
        assert not none.retries
        assert printed.stderr == ("The key of the weather is missing.",)


async def test_a_typed_command_waits_until_it_is_started() -> None:
    async with room() as made:
        chat = await made.new_chat()
        of_chat = made.chats.servers.of(chat)
        spec = of_chat.typed(TypedServer("no-such-program 'a b'", secrets="TOKEN=sesame"))
        proposal = of_chat.propose(spec)
        (shown,) = log_of(chat, "proposals")
        assert isinstance(shown, Proposal)
        assert (shown.command, shown.args) == ("no-such-program", ("a b",))
        assert (shown.variables, shown.folder) == (("TOKEN",), str(Path.cwd()))
        assert "sesame" not in repr(shown)
        of_chat.refresh()
        assert log_of(chat, "attention") == [Attention(("no-such-program waits to be started",))]
        assert servers(chat) == []
        of_chat.accept(proposal)
        assert (len(servers(chat)), log_of(chat, "proposals")) == (1, [])
        with pytest.raises(NotFound):
            of_chat.accept(proposal)
        await until(chat, lambda: [each.state for each in servers(chat)] == ["failed"])
        assert log_of(chat, "attention") == [Attention(("no-such-program is not connected",))]
        of_chat.disconnect(servers(chat)[0].key)
        of_chat.refresh()
        assert log_of(chat, "attention") == []


async def test_no_command_that_waits_makes_room_for_another() -> None:
    async with room() as made:
        chat = await made.new_chat()
        of_chat = made.chats.servers.of(chat)
        for number in range(MAX_PROPOSALS):
            first = of_chat.propose(of_chat.typed(TypedServer(f"run-{number}")))
        waiting = log_of(chat, "proposals")
        with pytest.raises(LimitExceeded):
            of_chat.propose(of_chat.typed(TypedServer("one-more")))
        assert log_of(chat, "proposals") == waiting
        of_chat.dismiss(first)
        of_chat.propose(of_chat.typed(TypedServer("one-more")))


async def test_a_chat_connects_no_more_servers_than_it_may() -> None:
    async with room() as made:
        of_chat = made.chats.servers.of(await made.new_chat())
        for number in range(20):
            of_chat.connect(ServerSpec(f"s{number}", "stdio", command="no-such-program"))
        with pytest.raises(LimitExceeded, match="20 servers"):
            of_chat.connect(ServerSpec("more", "stdio", command="no-such-program"))
