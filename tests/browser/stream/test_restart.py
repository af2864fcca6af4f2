"""A server that is killed and started again: the open page says what became of its chat."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect

from tests.browser.stream import shown
from tests.browser.stream.conftest import Model, Stage, known_server
from tests.browser.stream.known import KnownAnswer, mix, pieces
from tests.support.browser import Complaints
from tests.support.model_server import Valve

if TYPE_CHECKING:
    from playwright.async_api import Browser, Request

pytestmark = pytest.mark.anyio


@pytest.mark.full
async def test_after_a_restart_the_page_says_so_and_keeps_what_is_there(
    model: Model, chromium: Browser, tmp_path: Path
) -> None:
    valve = Valve()
    answer = KnownAnswer(pieces(mix(1_500), seed=6), valve=valve)
    context = await chromium.new_context()
    context.set_default_timeout(10_000)
    complaints = Complaints(context)
    complaints.allow("ERR_|Failed to load resource")
    with known_server(model, str(tmp_path)) as server:
        async with httpx.AsyncClient(base_url=server.address, timeout=30) as client:
            stage = Stage(server.address, model, context, complaints, client)
            chat = await stage.new_chat()
            await stage.send(chat, "restart", answer)
        page = await stage.open(chat)
        await valve.allow(60)
        count = shown.settled(answer.tokens[:60])
        await shown.until_words(page, count)
        await page.get_by_label("Message", exact=True).fill("what I was typing")
        server.process.kill()
        server.process.wait(timeout=10)
        port = server.address.rpartition(":")[2]
    loads = 0
    asked: list[str] = []

    def note(request: Request) -> None:
        nonlocal loads
        loads += request.is_navigation_request()
        asked.append(request.url)

    page.on("request", note)
    with known_server(model, str(tmp_path), "--port", port):
        began = time.monotonic()
        banner = page.locator("[data-banner]")
        await expect(banner).to_contain_text("kept in", timeout=15_000)
        await expect(banner).to_contain_text("memory")
        assert time.monotonic() - began < 10
        await expect(page.get_by_role("log")).to_have_attribute("aria-busy", "false")
        assert await shown.words(page) >= count
        await expect(page.get_by_label("Message", exact=True)).to_have_value("what I was typing")
        # Nobody asks for the chat any more, and nothing is loaded again: the stream of the side
        # bar is all that there is.
        await page.wait_for_function("() => !document.querySelector('[data-slot=chats] li')")
        del asked[:]
        second = await context.new_page()
        await second.goto(f"{server.address}/")
        await second.wait_for_function("() => performance.now() > 2500")
        assert loads == 0
        assert [url for url in asked if chat in url] == []
        assert len(asked) <= 4
        await banner.get_by_role("link", name="New chat").click()
        box = page.get_by_label("Message", exact=True)
        await expect(box).to_have_value("what I was typing")
        model.replies["what I was typing"] = [KnownAnswer(["Hello again."])]
        await box.press("Enter")
        await shown.until_done(page)
        await expect(page.locator(".answer")).to_have_text("Hello again.")
        await context.close()
    assert complaints.unexpected == []
