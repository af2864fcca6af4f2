"""MCP servers of a chat after a restart: connected, proposed or asked for; no secret is kept."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.app_server import AppServer
from tests.support.kept import Restarts, page_of, until
from tests.support.stores import SqlPlace

pytestmark = pytest.mark.anyio

TOKEN = re.compile(r'name="token" value="([^"]+)"')
PROPOSAL = re.compile(r'action="(/chats/[^"]+/proposals/[^"]+/start)"')


async def post(server: AppServer, chat: str, path: str, **fields: str) -> None:
    page = (await server.client.get(f"/chats/{chat}")).text
    match = TOKEN.search(page)
    assert match is not None
    answer = await server.client.post(path, data={**fields, "token": match[1]})
    assert answer.status_code < 400, answer.text


async def kept(place: SqlPlace, words: str) -> bool:
    rows = await place.run("SELECT body FROM harness_records")
    return any(words in str(row[0]) for row in rows)


@pytest.mark.full
async def test_the_demo_server_is_connected_again(stage: Restarts) -> None:
    async with stage.server() as server:
        chat = await server.new_chat()
        await post(server, chat, f"/chats/{chat}/servers/demo")
        await page_of(server, chat)
        await until(lambda: kept(stage.place, '"demo"'))
    async with stage.server() as server:

        async def connected() -> bool:
            return "demo__greet" in await page_of(server, chat)

        await until(connected, 20)


async def test_a_command_is_started_again_only_by_a_person(stage: Restarts, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    target = shlex.join([sys.executable, "-S", "-c", f"open({str(ran)!r}, 'a').write('x')"])
    async with stage.server() as server:
        chat = await server.new_chat()
        await post(server, chat, f"/chats/{chat}/servers", target=target, name="mine")
        match = PROPOSAL.search(await page_of(server, chat))
        assert match is not None
        await post(server, chat, match[1])

        async def started() -> bool:
            return ran.exists()

        await until(started)
        await page_of(server, chat)
        await until(lambda: kept(stage.place, '"mine"'))
    before = ran.read_text()
    async with stage.server() as server:
        page = await page_of(server, chat)
        assert PROPOSAL.search(page) is not None
        assert "Start <bdi>mine</bdi>?" in page
        assert ran.read_text() == before
        await page_of(server, chat)
        assert await kept(stage.place, '"mine"')


async def test_a_secret_is_not_stored_and_is_said_to_be_needed_again(stage: Restarts) -> None:
    fields = {"target": "http://127.0.0.1:9/mcp", "name": "wiki", "secrets": "X-Key: open-sesame"}
    async with stage.server() as server:
        chat = await server.new_chat()
        await post(server, chat, f"/chats/{chat}/servers", **fields)
        await page_of(server, chat)
        await until(lambda: kept(stage.place, "wiki"))
        assert not await kept(stage.place, "sesame")
    for file in stage.folder.rglob("*"):
        assert not file.is_file() or b"open-sesame" not in file.read_bytes(), file
    for _ in range(2):
        async with stage.server() as server:
            page = await page_of(server, chat)
            assert "<bdi>wiki</bdi> is not connected" in page
            assert "the header X-Key" in page
            assert "wiki needs its secrets again" in page
    async with stage.server() as server:
        await post(server, chat, f"/chats/{chat}/servers", **fields)
        assert "is not connected</h4>" not in await page_of(server, chat)
    async with stage.server() as server:
        page = await page_of(server, chat)
        match = re.search(r'action="(/chats/[^"]+/proposals/[^"]+/dismiss)"', page)
        assert match is not None
        await post(server, chat, match[1])
        await page_of(server, chat)

        async def forgotten() -> bool:
            return not await kept(stage.place, "wiki")

        await until(forgotten)


async def test_a_server_that_a_program_adds_is_kept_though_nobody_looks(stage: Restarts) -> None:
    entry = {"name": "wiki", "url": "http://127.0.0.1:9/mcp"}
    async with stage.server() as server:
        chat = await server.new_chat()
        answer = await server.client.post(f"/api/chats/{chat}/servers", json=entry)
        assert answer.status_code < 400, answer.text
        await until(lambda: kept(stage.place, '"wiki"'))
    async with stage.server() as server:
        told = (await server.client.get(f"/api/chats/{chat}/servers")).json()
        assert "wiki" in [each["name"] for each in told]


@pytest.mark.parametrize(
    ("target", "needed"),
    [
        ("http://127.0.0.1:9/s/f3Kx09aLq2ZvB7nT4mWc/mcp", "the rest of its address"),
        ("no-such-program --account f3Kx09aLq2ZvB7nT4mWc", "its arguments"),
    ],
)
async def test_what_looks_like_a_secret_in_a_path_or_a_command_is_not_stored_and_needed_again(
    stage: Restarts, target: str, needed: str
) -> None:
    secret = "f3Kx09aLq2ZvB7nT4mWc"
    async with stage.server() as server:
        chat = await server.new_chat()
        await post(server, chat, f"/chats/{chat}/servers", target=target, name="wiki")
        page = await page_of(server, chat)
        await until(lambda: kept(stage.place, '"wiki"'))
        if target.startswith("http"):
            assert secret not in page
            assert "http://127.0.0.1:9/s/…/mcp" in page
    for file in stage.folder.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file
    async with stage.server() as server:
        page = await page_of(server, chat)
        assert "<bdi>wiki</bdi> is not connected" in page
        assert needed in page
        assert secret not in page
