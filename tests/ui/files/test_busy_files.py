"""The pages of a chat while another program holds the lock of its files."""

from __future__ import annotations

import asyncio
import html
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import AppServer, app_server
from tests.support.lock_holder import lock_held
from tests.support.scripted_provider import ScriptedProvider, calls, says

pytestmark = pytest.mark.anyio

PAGE = {"accept": "text/html"}


async def seen(server: AppServer, chat: str) -> tuple[str, float]:
    """The page of a chat, and how many seconds it took."""
    began = time.monotonic()
    answer = await server.client.get(f"/chats/{chat}", headers=PAGE)
    assert answer.status_code == 200
    return html.unescape(answer.text), time.monotonic() - began


async def shows(server: AppServer, chat: str, words: str) -> None:
    """Returns when the page of a chat holds the words."""
    async with asyncio.timeout(15):
        text = ""
        while words not in text:
            text, _ = await seen(server, chat)


@pytest.mark.full
async def test_the_page_opens_at_once_and_says_what_the_list_waits_for(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        chat, other = await server.new_chat(), await server.new_chat()
        await server.client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        (folder / "plan.md").write_text("x")
        with lock_held(folder):
            pages = await asyncio.gather(*(seen(server, chat) for _ in range(20)))
            # Half a second each by itself; all of them together are built in a while.
            assert max(seconds for _, seconds in pages) < 6
            assert all("The files are being looked at." in text for text, _ in pages)
            # The list waits for no more than three seconds, and says why it is not there.
            text, seconds = await seen(server, other)
            assert "No files yet." in text
            assert seconds < 2
            await shows(server, chat, "Another program holds them.")
            question = await server.client.get(f"/chats/{chat}/delete", headers=PAGE)
            assert "They cannot be counted now. Another program" in question.text
            refused = await server.client.get(f"/chats/{chat}/files/plan.md")
            assert refused.status_code == 503
            assert refused.json()["code"] == "files_busy"
        await shows(server, chat, "plan.md")


@pytest.mark.full
async def test_a_run_goes_on_when_its_files_are_busy(tmp_path: Path) -> None:
    asks: list[Any] = calls(("read_file", {"path": "plan.md"}))
    async with app_server(tmp_path, ScriptedProvider(asks, says("They are busy."))) as server:
        chat = await server.new_chat()
        await server.client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        (folder / "plan.md").write_text("x")
        with lock_held(folder):
            events = await server.events(await server.send(chat, "read it"))
        [result] = [event.data for event in events if event.type == "tool_result"]
        assert result["is_error"]
        assert "busy: another program holds them" in result["text"]
        assert events[-1].data["text"] == "They are busy."
