"""A conversation that got too long for its model: a quiet line, live, that opens and stays open."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, LOG, STATUS, Stage, shows
from tests.support.scripted_provider import says
from web.harness.values.errors import ContextTooLong
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio

HOSTILE = "They like <script>alert(1)</script> *tea*."


@pytest.mark.full
async def test_the_line_appears_while_it_works_opens_and_survives_a_refresh(stage: Stage) -> None:
    chat = await stage.server.new_chat()
    for number in range(3):
        stage.play(says("It is a fine town. " * 60))
        run_id = await stage.server.send(chat, f"question {number}")
        await stage.server.wait_for(run_id, "run_result")
    go_on, end = asyncio.Event(), asyncio.Event()
    stage.play(
        [ContextTooLong("Too long.", limit=5_000)],
        [TextChunk(HOSTILE), go_on, ModelDone("end_turn")],
        [TextChunk("Here "), end, TextChunk("you are."), ModelDone("end_turn")],
    )
    page = await stage.open(f"/chats/{chat}")
    await page.fill(BOX, "and now?")
    await page.keyboard.press("Enter")
    await expect(page.locator(STATUS)).to_contain_text("Summarising earlier messages")
    go_on.set()
    line = page.locator(".condensed > summary")
    await expect(line).to_contain_text("Earlier messages were summarised")
    await expect(page.locator(".condensed .notes")).not_to_be_visible()
    await line.focus()
    await page.keyboard.press("Enter")
    notes = page.locator(".condensed .notes")
    await expect(notes).to_contain_text("They like <script>alert(1)</script> tea.")
    end.set()
    await expect(page.locator(LOG)).to_contain_text("Here you are.")
    await shows(page, "idle")
    await expect(notes).to_be_visible()
    # What the model is not sent any more is still there to be read.
    await expect(page.locator(LOG)).to_contain_text("question 0")
    shown = await page.locator(LOG).inner_text()
    await page.reload()
    await line.click()
    await expect(notes).to_be_visible()
    assert await page.locator(LOG).inner_text() == shown
