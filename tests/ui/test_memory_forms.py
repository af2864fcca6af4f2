"""What is remembered, from the page: listed, searched, added, edited, forgotten, switched."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.support.app_server import AppServer, app_server
from tests.support.scripted_provider import ScriptedProvider, says

pytestmark = pytest.mark.anyio

TOKEN = re.compile(r'name="token" value="([^"]+)"')
SEEN = re.compile(r'name="seen" value="([^"]+)"')
ROW = re.compile(r'<li id="me-(\w+)" class="memory".*?</li>', re.DOTALL)
SCRIPT = {"hx-request": "true"}
HTML = {"accept": "text/html"}
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)> ![x](http://a.b/c.png) {{ 7*7 }}'


@dataclass(frozen=True, slots=True)
class Room:
    server: AppServer
    chat: str
    token: str
    root: Path

    async def page(self) -> str:
        return (await self.server.client.get(f"/chats/{self.chat}")).text

    async def rows(self) -> dict[str, str]:
        """The HTML of what is listed, by what names it in addresses."""
        return {match[1]: match[0] for match in ROW.finditer(await self.page())}

    async def get(self, path: str = "", headers: dict[str, str] = HTML) -> httpx.Response:
        address = f"/chats/{self.chat}/memories{path}"
        return await self.server.client.get(address, headers=headers)

    async def post(
        self, path: str = "", headers: dict[str, str] = SCRIPT, /, **fields: str
    ) -> httpx.Response:
        data = {"token": self.token, **fields}
        address = f"/chats/{self.chat}/memories{path}"
        return await self.server.client.post(address, data=data, headers=headers)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with app_server(tmp_path, ScriptedProvider(says("ok"))) as server:
        chat = await server.new_chat()
        page = (await server.client.get(f"/chats/{chat}")).text
        (token, *_) = TOKEN.findall(page)
        yield Room(server, chat, token, tmp_path / "memory")


async def test_what_is_added_is_listed_and_lies_below_the_data_folder(room: Room) -> None:
    assert "Nothing is remembered yet." in await room.page()
    told = await room.post(text="Likes tea", tags="Person")
    assert "Kept as a fact." in told.text
    told = await room.post(text="# How\n\nBy mail.", title="Invoices", tags="Project X, money")
    assert "Kept as the note “Invoices”." in unescape(told.text)
    rows = list((await room.rows()).values())
    assert len(rows) == 2
    assert any("Likes tea" in row and "person" in row for row in rows)
    assert any("<bdi>Invoices</bdi>" in row and "project-x" in row for row in rows)
    (folder,) = room.root.iterdir()
    assert (folder / "invoices.md").read_text().endswith("\n# How\n\nBy mail.\n")
    assert len(folder.name) == 32


async def test_what_a_stranger_wrote_is_shown_as_text(room: Room) -> None:
    await room.post(text=HOSTILE, tags=HOSTILE[:40])
    await room.post(text=HOSTILE, title=HOSTILE, tags="<b>")
    (folder,) = room.root.iterdir()
    (folder / "<img src=x>.md").write_text("---\n'<script>alert(2)</script>\n---")
    rows = await room.rows()
    assert len(rows) == 3
    pages = [await room.page(), (await room.get("?q=alert")).text]
    pages += [(await room.get("?q=alert", SCRIPT)).text, (await room.get("")).text]
    pages += [(await room.get(f"/{ref}")).text for ref in rows]
    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page
    assert sum("&lt;script&gt;alert" in page for page in pages) >= 6


async def test_what_turns_text_around_is_spelled_out_wherever_a_memory_is_shown(room: Room) -> None:
    await room.post(text="evil \u202eltr", tags="a\u202eb")
    await room.post(text="a note \u202eltr", title="Plan \u202ex")
    rows = await room.rows()
    shown = [await room.page(), *rows.values(), (await room.get("?q=note ltr", SCRIPT)).text]
    (ref,) = [ref for ref, row in rows.items() if "Plan" in row]
    # In the form it stands as it is, to be edited.
    heading, _, _ = (await room.get(f"/{ref}")).text.partition("</h1>")
    shown.append(heading.partition("<h1>")[2])
    for ref in rows:
        await room.post(f"/{ref}/forget")
        shown.append(await room.page())
    for page in shown:
        assert "\u202e" not in page
        assert "⟨U+202E⟩" in page


async def test_what_is_too_long_is_refused_as_such(room: Room) -> None:
    for given in ({"text": "x" * 5_000}, {"text": "x", "title": "y" * 300}):
        assert (await room.post(**given)).status_code == 413


async def test_a_note_is_read_rendered_and_edited(room: Room) -> None:
    await room.post(text="# Heading\n\n*text*", title="Plan", tags="a")
    (ref,) = await room.rows()
    page = (await room.get(f"/{ref}")).text
    assert "<em>text</em>" in page
    (seen,) = SEEN.findall(page)
    saved = await room.post(
        f"/{ref}", HTML, text="new\r\nlines", title="Plan B", tags="b, c", seen=seen
    )
    assert (saved.status_code, saved.headers["location"]) == (303, f"/chats/{room.chat}")
    (row,) = (await room.rows()).values()
    assert "Plan B" in row
    (folder,) = room.root.iterdir()
    assert (folder / "plan.md").read_text().endswith("\nnew\nlines\n")


async def test_a_text_that_is_refused_comes_back_as_it_was_typed(room: Room) -> None:
    await room.post(text="one", title="Plan")
    (ref,) = await room.rows()
    (seen,) = SEEN.findall((await room.get(f"/{ref}")).text)
    (folder,) = room.root.iterdir()
    file = folder / "plan.md"
    file.write_text(file.read_text().replace("one", "by <hand>"))
    refused = await room.post(f"/{ref}", HTML, text="mine <b>", title="T", tags="", seen=seen)
    assert refused.status_code == 409
    assert ">\nmine &lt;b&gt;</textarea>" in refused.text
    assert "by &lt;hand&gt;" in refused.text
    assert "by <hand>" in file.read_text()
    (now,) = SEEN.findall(refused.text)
    again = await room.post(f"/{ref}", HTML, text="mine <b>", title="T", tags="", seen=now)
    assert again.status_code == 303
    assert "mine <b>" in file.read_text()
    long = await room.post(f"/{ref}", HTML, text="x" * 100_001, title="T", tags="")
    assert (long.status_code, "100,000" in long.text) == (413, True)
    empty = await room.post(text=" ")
    assert (empty.status_code, "needs a text" in empty.text) == (422, True)


async def test_a_memory_is_forgotten_and_brought_back(room: Room) -> None:
    await room.post(text="Likes tea")
    (ref,) = await room.rows()
    assert (await room.post(f"/{ref}/forget")).status_code == 200
    assert await room.rows() == {}
    page = await room.page()
    assert "Forgot “<bdi>Likes tea</bdi>”" in page
    assert f'<input type="hidden" name="ref" value="{ref}">' in page
    assert (await room.post("/restore", ref=ref)).status_code == 200
    assert list(await room.rows()) == [ref]
    assert (await room.post("/restore", ref=ref)).status_code == 404
    assert (await room.get("/nothing")).status_code == 404
    assert (await room.post("/nothing/forget")).status_code == 404


async def test_a_search_shows_the_best_with_script_and_without(room: Room) -> None:
    for number in range(8):
        await room.post(text=f"fact number {number}")
    await room.post(text="long " * 500 + "the needle is here", title="Note")
    fragment = (await room.get("?q=needle", SCRIPT)).text
    assert "<html" not in fragment
    assert "1 found" in fragment
    assert "the needle is here" in fragment
    page = (await room.get("?q=number+3")).text
    assert "<html" in page
    assert page.index("fact number 3") < page.index("fact number 5")
    assert "Nothing was found." in (await room.get("?q=zebra", SCRIPT)).text


async def test_the_switch_takes_the_tools_away_and_gives_them_back(room: Room) -> None:
    assert "save_memory" in await room.page()
    assert (await room.post("/switch", on="no")).status_code == 200
    page = await room.page()
    assert "This chat does not use it." in page
    assert "<code>save_memory</code>" not in page
    await room.post("/switch", on="yes")
    assert "<code>save_memory</code>" in await room.page()


async def test_all_that_writes_needs_the_token_of_the_page(room: Room) -> None:
    await room.post(text="Likes tea")
    (ref,) = await room.rows()
    for path in ("", f"/{ref}", f"/{ref}/forget", "/restore"):
        answer = await room.post(path, token="x", text="changed", ref=ref)
        assert (answer.status_code, "older than the server" in answer.text) == (403, True), path
    assert "Likes tea" in (await room.rows())[ref]


async def test_a_server_may_start_chats_without_memory_and_keep_it_elsewhere(
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    model = ScriptedProvider(says("ok"))
    settings = {"memory": False, "memory_dir": elsewhere}
    async with app_server(tmp_path, model, settings=settings) as server:
        chat = await server.new_chat()
        page = (await server.client.get(f"/chats/{chat}")).text
        assert "This chat does not use it." in page
        room = Room(server, chat, TOKEN.findall(page)[0], elsewhere)
        await room.post(text="Likes tea")
        assert len(list(elsewhere.iterdir())) == 1
        assert not (tmp_path / "memory").exists()
