"""Who may connect a server: the pages of this server, as it runs now, and nobody else."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.app_server import AppServer, app_server

pytestmark = pytest.mark.anyio

TOKEN = re.compile(r'name="token" value="([^"]+)"')
PROPOSAL = re.compile(r'action="(/chats/[^"]+/proposals/[^"]+/start)"')


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AppServer]:
    async with app_server(tmp_path / "data") as made:
        yield made


async def post(server: AppServer, path: str, **fields: str) -> httpx.Response:
    return await server.client.post(path, data=fields, headers={"hx-request": "true"})


async def page(server: AppServer, chat: str) -> str:
    answer = await server.client.get(f"/chats/{chat}")
    assert answer.status_code == 200
    return answer.text


async def token(server: AppServer, chat: str) -> str:
    match = TOKEN.search(await page(server, chat))
    assert match is not None
    return match[1]


async def test_a_command_is_shown_and_started_only_with_the_token_of_the_page(
    server: AppServer, tmp_path: Path
) -> None:
    chat = await server.new_chat()
    path, ran = f"/chats/{chat}/servers", tmp_path / "ran"
    target = shlex.join([sys.executable, "-S", "-c", f"open({str(ran)!r}, 'w')"])
    for wrong in ({}, {"token": "x"}, {"token": ""}):
        answer = await post(server, path, target=target, **wrong)
        assert (answer.status_code, "older than the server" in answer.text) == (403, True)
    assert PROPOSAL.search(await page(server, chat)) is None
    right = await token(server, chat)
    secret = "SOME_KEY=open-sesame"
    assert (await post(server, path, target=target, token=right, secrets=secret)).text == ""
    shown = await page(server, chat)
    assert "open-sesame" not in shown
    match = PROPOSAL.search(shown)
    assert match is not None
    assert (await post(server, match[1], token="x")).status_code == 403
    assert not ran.exists()
    assert (await post(server, match[1], token=right)).status_code == 200
    assert (await post(server, match[1], token=right)).status_code == 404


@pytest.mark.parametrize("path", ["/chats/with-demo-server", "/chats/{}/servers/demo"])
async def test_the_demo_server_needs_the_token_too(server: AppServer, path: str) -> None:
    chat = await server.new_chat()
    assert (await post(server, path.format(chat))).status_code == 403
    assert 'class="server"' not in await page(server, chat)


async def test_a_refused_form_without_script_keeps_the_target_and_no_secret(
    server: AppServer,
) -> None:
    chat = await server.new_chat()
    fields = {"target": "ftp://example.com", "secrets": "A=open-sesame", "name": "files"}
    answer = await server.client.post(
        f"/chats/{chat}/servers",
        data={**fields, "token": await token(server, chat)},
        headers={"accept": "text/html"},
    )
    assert answer.status_code == 422
    assert "ftp://example.com" in answer.text
    assert 'value="files"' in answer.text
    assert "open-sesame" not in answer.text


async def test_another_server_of_the_same_name_is_refused(server: AppServer) -> None:
    chat = await server.new_chat()
    fields = {"token": await token(server, chat), "target": "http://127.0.0.1:9/mcp", "name": "one"}
    assert (await post(server, f"/chats/{chat}/servers", **fields)).status_code == 200
    answer = await post(server, f"/chats/{chat}/servers", **fields)
    assert (answer.status_code, "already" in answer.text) == (422, True)
    assert (await page(server, chat)).count('class="server"') == 1
