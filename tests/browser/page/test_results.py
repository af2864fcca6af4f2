"""What tools return besides text is shown as what it is, and nothing in it can run or load."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool as ServerTool,
    ToolAnnotations,
)
from playwright.async_api import expect

from tests.browser.page.hostile import AUDIT, MARKUP
from tests.browser.page.stage import BOX, picture, shows, watched
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import ToolServer, tool_server
from web.harness.mcp.offered import offered_tools
from web.harness.tools.tool import KeepBlob, Tool
from web.harness.values.messages import JsonObject

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Locator, Page

pytestmark = pytest.mark.anyio

ADDRESS = "https://docs.example/guide?x=1"


def png(width: int = 480, height: int = 200) -> bytes:
    """A picture that fades from one colour to another."""

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    row = b"\0" + b"".join(
        bytes((30 + 200 * x // width, 120, 200 - 150 * x // width)) for x in range(width)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(row * height)),
            chunk(b"IEND", b""),
        )
    )


def wav(seconds: int = 2) -> bytes:
    """Silence."""
    samples = bytes([128]) * (8_000 * seconds)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8_000, 8_000, 1, 8)
    body = b"WAVE" + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


EVERYTHING: list[ContentBlock] = [
    TextContent(text="Here is what there is:"),
    ImageContent(data=encoded(png()), mime_type="image/png"),
    AudioContent(data=encoded(wav()), mime_type="audio/wav"),
    ResourceLink(uri=ADDRESS, name="guide", title="The guide", description="How it is done."),
    ResourceLink(uri="demo://resource/static/1", name="static-1", mime_type="text/plain"),
    EmbeddedResource(
        resource=TextResourceContents(
            uri="file:///notes/today.md", text="# Today\n\n- one\n- two", mime_type="text/markdown"
        )
    ),
    EmbeddedResource(
        resource=BlobResourceContents(
            uri="file:///data/table.zip", blob=encoded(b"PK" * 600), mime_type="application/zip"
        )
    ),
]
STRUCTURED = {"city": "Zürich", "days": [{"day": "Monday", "high": 21}]}

ANNOTATIONS = ToolAnnotations(read_only_hint=True, open_world_hint=True)


@asynccontextmanager
async def served_results(
    chromium: Browser, content: Sequence[ContentBlock], *, tool: str = "show", **more: Any
) -> AsyncIterator[tuple[ToolServer, BrowserContext, ScriptedProvider]]:
    """A server whose one tool returns this, and a watched browser; the tool has to be allowed."""

    async def call(name: str, arguments: JsonObject, **_: Any) -> CallToolResult:
        return CallToolResult(content=list(content), **more)

    def tools(keep: KeepBlob) -> list[Tool]:
        server_tool = ServerTool(
            name=tool, input_schema={"type": "object"}, annotations=ANNOTATIONS
        )
        return [each.tool for each in offered_tools("demo", [server_tool], call, (), keep)]

    name = tools(lambda blob: False)[0].name
    provider = ScriptedProvider(calls((name, {})), says("There you are."))
    async with (
        tool_server(provider, tools) as server,
        watched(chromium, server.address) as (context, _),
    ):
        yield server, context, provider


async def allowed(server: ToolServer, context: BrowserContext, *, pictured: bool = False) -> Page:
    """The page of a chat whose call was allowed and has ended, its line opened."""
    chat = await server.new_chat()
    await server.send(chat, "Show me everything")
    page = await context.new_page()
    await page.goto(f"{server.address}/chats/{chat}")
    await expect(page.locator(".ask-card")).to_be_visible()
    if pictured:
        await picture(page, "results-asked")
    await page.get_by_role("button", name="Allow once").click()
    await shows(page, "idle")
    await page.locator(".call > details > summary").click()
    return page


async def loaded(image: Locator) -> None:
    await image.scroll_into_view_if_needed()
    await expect(image).to_have_js_property("complete", True)
    assert await image.evaluate("image => image.naturalWidth") > 0


@pytest.mark.full
async def test_each_part_of_a_result_is_shown_as_what_it_is(chromium: Browser) -> None:
    async with served_results(chromium, EVERYTHING, structured_content=STRUCTURED) as (
        server,
        context,
        _,
    ):
        page = await allowed(server, context, pictured=True)
        body = page.locator(".call-body")
        for _ in range(2):
            # What is to be looked at or listened to stands under the line, in the open.
            await loaded(page.locator(".call-media img"))
            audio = page.locator(".call-media audio")
            await expect(audio).to_have_js_property("duration", 2)
            link = body.get_by_role("link", name="The guide")
            await expect(link).to_have_attribute("href", ADDRESS)
            await expect(body.locator(".resource").first).to_contain_text("docs.example")
            await expect(body.locator(".resource").last).to_contain_text("demo://resource/static/1")
            await expect(body.get_by_text("# Today")).to_be_hidden()
            await body.locator(".more > summary").click()
            await expect(body.get_by_text("# Today")).to_be_visible()
            await expect(body.locator(".result").last).to_contain_text('"city": "Zürich"')
            await expect(body.locator(".hints")).to_contain_text("read-only open world")
            # The same after a reload, from the same template.
            await page.reload()
            await page.locator(".call > details > summary").click()


@pytest.mark.full
async def test_parts_of_a_result_have_room_everywhere(chromium: Browser) -> None:
    content = [*EVERYTHING, ImageContent(data=encoded(png(3_000, 40)), mime_type="image/png")]
    async with served_results(chromium, content, structured_content=STRUCTURED) as (
        server,
        context,
        _,
    ):
        page = await allowed(server, context)
        await page.locator(".call-body .more > summary").click()
        for name, width, scheme in (
            ("wide-light", 1280, "light"),
            ("wide-dark", 1280, "dark"),
            ("narrow-light", 360, "light"),
            ("narrow-dark", 360, "dark"),
        ):
            await page.set_viewport_size({"width": width, "height": 1500})
            await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            for image in await page.locator(".call-body img").all():
                await loaded(image)
                box = await image.bounding_box()
                assert box is not None
                assert box["width"] <= width
                assert box["height"] <= 400
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            await picture(page, f"results-{name}")


@pytest.mark.full
async def test_a_file_is_a_download_under_its_own_name(chromium: Browser) -> None:
    async with served_results(chromium, EVERYTHING) as (server, context, _):
        page = await allowed(server, context)
        link = page.locator("figure", has_text="table.zip").get_by_role("link", name="Download")
        async with page.expect_download() as waiting:
            await link.click()
        download = await waiting.value
        assert download.suggested_filename == "table.zip"
        # A picture opens by itself, where nothing of it can run.
        async with context.expect_page() as opening:
            await page.locator(".call-media a:has(img)").click()
        opened = await opening.value
        await opened.wait_for_load_state()
        assert await opened.evaluate("document.images[0].naturalWidth") == 480


def hostile() -> list[ContentBlock]:
    """Every text at every place where a server can put one."""
    content: list[ContentBlock] = []
    for text in MARKUP[::3]:
        content += [
            TextContent(text=text),
            ResourceLink(uri=text, name=text, title=text, description=text, mime_type=text),
            EmbeddedResource(resource=TextResourceContents(uri=text, text=text, mime_type=text)),
        ]
    for data in (b"<svg xmlns='http://www.w3.org/2000/svg' onload='pwned(80)'/>", png(), wav()):
        content += [
            EmbeddedResource(
                resource=BlobResourceContents(
                    uri=f"/{MARKUP[5]}", blob=encoded(data), mime_type=MARKUP[0]
                )
            ),
            ImageContent(data=encoded(data), mime_type="image/svg+xml"),
        ]
    content += [
        ResourceLink(uri=address, name="Click me")
        for address in (
            "javascript:pwned(81)",
            "data:text/html,<script>pwned(82)</script>",
            "https://good.example@evil.example/",
            "\x01javascript:pwned(83)",
        )
    ]
    return content[-40:]


OURS = AUDIT.replace("img, ", "").replace("audio, ", "")
"""The audit, but pictures and sound may be there."""


@pytest.mark.full
async def test_nothing_that_a_server_returns_runs_or_loads(chromium: Browser) -> None:
    async with served_results(
        chromium,
        hostile(),
        tool="<img src=x onerror=pwned(84)>",
        structured_content={text: [text] for text in MARKUP},
    ) as (server, context, _):
        ran: list[object] = []
        await context.expose_binding("pwned", lambda _, *said: ran.append(said))
        page = await allowed(server, context)
        for _ in range(2):
            await expect(page.locator(".call .media")).to_have_count(6)
            for summary in await page.locator(".call-body .more > summary").all():
                await summary.click()
            assert await page.evaluate(OURS) == []
            sources = await page.evaluate(
                "[...document.querySelectorAll('img, audio')].map(each => each.getAttribute('src'))"
            )
            assert len(sources) == 4
            assert all("/blobs/" in source and source.startswith("/chats/") for source in sources)
            links = await page.evaluate(
                "[...document.querySelectorAll('.resource a')].map(each => each.protocol)"
            )
            assert set(links) <= {"http:", "https:"}
            assert await page.get_by_role("link", name="Click me").count() == 0
            await expect(page.locator(BOX)).to_be_editable()
            await page.reload()
            await page.locator(".call > details > summary").click()
        assert ran == []
