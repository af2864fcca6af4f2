"""A chat that is not begun yet offers skills and prompts too, and what is chosen goes along."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from tests.harness.skills.writers import put
from tests.support.app_server import AppServer, app_server
from tests.support.mcp_wire import SECONDS
from tests.support.scripted_provider import ScriptedProvider, says

pytestmark = pytest.mark.anyio

SCRIPT = {"hx-request": "true"}
OPTION = re.compile(r'data-command="([^"]+)".*?<bdi data-name>(.*?)</bdi>', re.DOTALL)
TOKEN = re.compile(r'name="token" value="([^"]+)"')


async def offered(server: AppServer) -> dict[str, str]:
    """What the page of a new chat offers: command ids by their labels."""
    page = (await server.client.get("/")).text
    return {label: id for id, label in OPTION.findall(page)}


async def choose(server: AppServer, path: str, command: str, **fields: str) -> tuple[str, str]:
    """Chooses a command; where it leads to, and what it shows."""
    (token, *_) = TOKEN.findall((await server.client.get("/")).text)
    given = {"token": token, "command": command, **fields}
    answer = await server.client.post(path, data=given, headers=SCRIPT)
    assert answer.status_code == 200, answer.text
    return answer.headers.get("hx-redirect", ""), answer.text


async def test_a_skill_is_put_into_the_box_and_goes_with_the_first_message(tmp_path: Path) -> None:
    model = ScriptedProvider(says("ok"))
    async with app_server(tmp_path, model) as server:
        folder = put(tmp_path / "skills", "greeting")
        command = (await offered(server))["/greeting"]
        where, shown = await choose(server, "/chats/commands", command)
        assert (where, "\n/greeting </textarea>" in shown) == ("", True)
        assert (await server.client.get("/api/chats")).json() == []
        first = await server.client.post("/chats", data={"text": "/greeting Ada"}, headers=SCRIPT)
        chat = first.headers["hx-redirect"].rpartition("/")[2]
        async with asyncio.timeout(SECONDS):
            while not model.requests:
                await model.asked.wait()
        (block,) = model.requests[0].messages[-1].attachments
        assert (block.name, block.source) == ("greeting", "skill")
        assert (await server.chat(chat))["title"] == "/greeting Ada"
        (folder / "SKILL.md").unlink()
        assert "/greeting" not in await offered(server)


async def test_without_the_token_of_the_page_nothing_is_made(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        given = {"command": "host-prompt a b", "token": "x"}
        answer = await server.client.post("/chats/commands", data=given, headers=SCRIPT)
        assert answer.status_code == 403
        (token, *_) = TOKEN.findall((await server.client.get("/")).text)
        for command in ("host-prompt a b", "skill a", "x", ""):
            given = {"command": command, "token": token}
            answer = await server.client.post("/chats/commands", data=given, headers=SCRIPT)
            assert answer.status_code == 404, command
        assert (await server.client.get("/api/chats")).json() == []


@pytest.mark.full
async def test_a_prompt_of_a_configured_server_makes_a_chat_that_uses_it(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    demo = {"command": sys.executable, "args": ["-m", "web", "demo-server"]}
    file.write_text(json.dumps({"mcpServers": {"demo": demo}}))
    async with app_server(tmp_path, settings={"mcp_config": file}) as server:
        async with asyncio.timeout(SECONDS):
            while "/explain_planet" not in (found := await offered(server)):
                # The page is asked again while the server is being connected.
                continue
        command = found["/explain_planet"]
        where, _ = await choose(server, "/chats/commands", command, request_id="r")
        assert await choose(server, "/chats/commands", command, request_id="r") == (where, "")
        assert len((await server.client.get("/api/chats")).json()) == 1
        _, shown = await choose(server, f"{where}/commands", command)
        assert "command-name" in shown or "data-put" in shown
