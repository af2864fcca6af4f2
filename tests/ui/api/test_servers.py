"""A program connects MCP servers to a chat; a command waits for a person."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import AppServer, app_server, refusal
from tests.support.mcp_sdk import build_server, listening
from tests.support.mcp_wire import SECONDS
from tests.support.scripted_provider import ScriptedProvider, says

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AppServer]:
    async with app_server(tmp_path / "data", ScriptedProvider(says("ok"))) as made:
        yield made


async def listed(server: AppServer, path: str, state: str) -> dict[str, Any]:
    """The one server of a chat, once it has come to a state."""
    async with asyncio.timeout(SECONDS):
        while True:
            answer = await server.client.get(path)
            (shown,) = answer.json()
            if shown["state"] == state:
                return dict(shown)


async def test_a_server_is_connected_listed_with_its_tools_and_disconnected(
    server: AppServer,
) -> None:
    path = f"/api/chats/{await server.new_chat()}/servers"
    async with listening(build_server().streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        sent = {"url": url, "headers": {"X-Key": "open-sesame"}}
        answer = await server.client.post(path, json=sent)
        taken = answer.json()
        assert (answer.status_code, taken["state"]) == (202, "connecting")
        shown = await listed(server, path, "ready")
        assert (shown["key"], shown["name"]) == (taken["key"], "127-0-0-1")
        assert (shown["where"], shown["of_host"]) == (url, False)
        assert {"127-0-0-1__echo"} <= {tool["name"] for tool in shown["tools"]}
        assert "open-sesame" not in str(shown)
        again = await server.client.post(path, json={**sent, "name": "127-0-0-1"})
        assert refusal(again) == (422, "configuration_error")
        gone = await server.client.delete(f"{path}/{taken['key']}")
        assert (gone.status_code, (await server.client.get(path)).json()) == (204, [])
        assert refusal(await server.client.delete(f"{path}/{taken['key']}")) == (404, "not_found")


async def test_a_command_is_proposed_and_does_not_run(server: AppServer, tmp_path: Path) -> None:
    chat = await server.new_chat()
    path, ran = f"/api/chats/{chat}/servers", tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w')"
    sent = {"command": sys.executable, "args": ["-S", "-c", code], "env": {"KEY": "open-sesame"}}
    answer = await server.client.post(path, json=sent)
    taken = answer.json()
    assert (answer.status_code, taken["state"]) == (202, "proposed")
    [listed] = (await server.client.get(path)).json()
    assert (listed["key"], listed["state"]) == (taken["key"], "proposed")
    assert "open-sesame" not in str(listed)
    page = (await server.client.get(f"/chats/{chat}")).text
    assert "proposals/" in page
    assert "open-sesame" not in page
    gone = await server.client.delete(f"{path}/{taken['key']}")
    assert (gone.status_code, (await server.client.get(path)).json()) == (204, [])
    assert not ran.exists()


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"url": "http://127.0.0.1:1/mcp", "command": "ls"},
        {"url": "ftp://example.com"},
        {"url": "http://[", "headers": {"A": "open-sesame"}},
        {"command": ""},
        {"url": "http://127.0.0.1:1/", "name": "\x00"},
    ],
)
async def test_what_cannot_be_connected_is_refused_in_words(
    server: AppServer, sent: dict[str, Any]
) -> None:
    path = f"/api/chats/{await server.new_chat()}/servers"
    answer = await server.client.post(path, json=sent)
    assert refusal(answer) == (422, "configuration_error")
    assert "open-sesame" not in answer.text
    assert (await server.client.get(path)).json() == []


async def test_another_sites_page_connects_nothing(server: AppServer) -> None:
    path = f"/api/chats/{await server.new_chat()}/servers"
    headers = {"origin": "https://elsewhere.example"}
    answer = await server.client.post(path, json={"url": "http://127.0.0.1:1/"}, headers=headers)
    assert refusal(answer) == (403, "cross_site")
