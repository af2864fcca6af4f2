"""A server that is killed and started again on the same store: open tabs go on by themselves."""

from __future__ import annotations

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
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

LOG = """() => [...document.querySelectorAll('[role=log] [data-part]')]
    .map(part => part.id + ': ' + part.innerText)"""


async def log(page: Page) -> list[str]:
    found: list[str] = await page.evaluate(LOG)
    return found


async def test_open_tabs_go_on_by_themselves_after_the_server_was_killed(
    model: Model, chromium: Browser, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'chats.sqlite3'}"
    valve = Valve()
    half = KnownAnswer(pieces(mix(1_500), seed=6), valve=valve)
    context = await chromium.new_context()
    context.set_default_timeout(15_000)
    complaints = Complaints(context)
    complaints.allow("ERR_|Failed to load resource")
    with known_server(model, str(tmp_path), "--store", store) as server:
        async with httpx.AsyncClient(base_url=server.address) as client:
            stage = Stage(server.address, model, context, complaints, client)
            chat = await stage.new_chat()
            await stage.send(chat, "first", KnownAnswer(["All is", " well."]))
            page = await stage.open(chat)
            await shown.until_done(page)
            await stage.send(chat, "killed", half)
        await valve.allow(60)
        count = shown.settled(half.tokens[:60])
        await shown.until_words(page, count)
        await page.get_by_label("Message", exact=True).fill("what I was typing")
        server.process.kill()
        server.process.wait(timeout=10)
        port = server.address.rpartition(":")[2]
    with known_server(model, str(tmp_path), "--store", store, "--port", port):
        failure = page.get_by_text("so it is incomplete")
        await expect(failure).to_have_count(1, timeout=20_000)
        await expect(page.locator("[data-banner]")).to_be_hidden()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("what I was typing")
        await expect(page.get_by_text("All is well.")).to_have_count(1)
        assert await shown.words(page) >= count
        second = await context.new_page()
        await second.goto(f"{server.address}/chats/{chat}")
        await expect(second.get_by_text("so it is incomplete")).to_have_count(1)
        assert await log(page) == await log(second)
        model.replies["killed"] = [KnownAnswer(["Now", " all", " of it."])]
        await page.get_by_role("button", name="Try again").click()
        for each in (page, second):
            await expect(each.get_by_text("Now all of it.")).to_have_count(1)
            await expect(each.get_by_text("so it is incomplete")).to_have_count(0)
        await context.close()
    assert complaints.unexpected == []
