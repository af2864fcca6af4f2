"""A message that waits is taken back: its text goes back to where it was typed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from markupsafe import escape

from tests.support.app_server import AppServer, app_server
from tests.support.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

SCRIPT = {"HX-Request": "true"}
SMALL_HEAD = 2_000
"""Bytes of the head of an answer. Browsers refuse large ones, proxies often those above 4 KB."""


@asynccontextmanager
async def waiting(folder: Path, text: str) -> AsyncIterator[tuple[AppServer, str, str]]:
    """A server, a chat where this waits behind an answer, and its address."""
    async with app_server(folder, ScriptedProvider([asyncio.Event()])) as server:
        chat = await server.new_chat()
        await server.send(chat, "first")
        run = await server.send(chat, text, queue=True)
        yield server, chat, f"/chats/{chat}/queue/{run}/take-back"


async def test_a_long_message_comes_back_whole_however_long_a_head_may_be(tmp_path: Path) -> None:
    text = '<b id="message" hx-swap-oob="true">Съешь ещё этих мягких булок</b>\n' * 1_000
    async with waiting(tmp_path, text) as (server, chat, path):
        answer = await server.client.post(path, headers=SCRIPT)
        assert str(escape(text)) in answer.text
        assert "<b" not in answer.text
        assert sum(len(name) + len(value) for name, value in answer.headers.raw) < SMALL_HEAD
        assert (await server.chat(chat))["queue"] == []


async def test_without_script_it_stands_before_what_is_typed(tmp_path: Path) -> None:
    async with waiting(tmp_path, "taken back") as (server, chat, path):
        await server.client.post(f"/chats/{chat}/draft", data={"text": "typed meanwhile"})
        await server.client.post(path)
        page = (await server.client.get(f"/chats/{chat}")).text
        assert "taken back\n\ntyped meanwhile" in page


async def test_without_script_it_waits_on_where_there_is_no_room_for_both(tmp_path: Path) -> None:
    async with waiting(tmp_path, "taken back") as (server, chat, path):
        typed = "x" * 199_995
        await server.client.post(f"/chats/{chat}/draft", data={"text": typed})
        answer = await server.client.post(path)
        assert (answer.status_code, len((await server.chat(chat))["queue"])) == (413, 1)
        assert typed in (await server.client.get(f"/chats/{chat}")).text
