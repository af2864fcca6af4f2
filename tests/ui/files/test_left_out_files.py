"""What lies in a chat's folder and cannot be used is named, visibly, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.app_server import app_server

pytestmark = pytest.mark.anyio

PAGE = {"accept": "text/html"}


@pytest.mark.parametrize("path", ["", "/files"])
async def test_the_list_says_names_and_reasons(tmp_path: Path, path: str) -> None:
    async with app_server(tmp_path) as server:
        chat = await server.new_chat()
        await server.client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        (folder / "a\u202eb.txt").write_text("x")
        (folder / "con.txt").write_text("x")
        text = (await server.client.get(f"/chats/{chat}{path}", headers=PAGE)).text
        assert "2 left out, of the zip too" in text
        named = re.findall(r"<li><bdi>(.*?)</bdi>: (.*?)</li>", text)
        assert sorted(named) == [
            ('a<span class="spelled">⟨U+202E⟩</span>b.txt', "it holds an invisible character"),
            ("con.txt", "&#39;con.txt&#39; is the name of a device on Windows"),
        ]
        for number in range(10):
            (folder / f"link{number}").symlink_to("con.txt")
        text = (await server.client.get(f"/chats/{chat}/files", headers=PAGE)).text
        assert "<li>and 7 more</li>" in text
