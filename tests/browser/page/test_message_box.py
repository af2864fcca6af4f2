"""The message box: files without a word, a text that is too long, commands before there is a chat;
and the title beside it, which follows."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, shows, watched
from tests.support.app_server import app_server
from tests.support.scripted_provider import ScriptedProvider, says

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.anyio

TITLE = "#chat-title"


@pytest.mark.full
async def test_the_title_follows_unless_another_is_being_typed(stage: Stage) -> None:
    chat = await stage.server.new_chat()
    page = await stage.open(f"/chats/{chat}")
    await page.set_viewport_size({"width": 1400, "height": 900})
    await expect(page.locator(TITLE)).to_have_value("New chat")
    await page.fill(BOX, "What is rain?")
    await page.press(BOX, "Enter")
    await expect(page.locator(TITLE)).to_have_value("What is rain?")
    await page.fill(TITLE, "My own")
    path = f"/api/chats/{chat}"
    await stage.server.client.patch(path, json={"title": "Theirs", "model": "openai:two"})
    await expect(page.locator("h1")).to_have_text("Theirs")
    await expect(page.locator("#chat-model")).to_have_value("openai:two")
    await expect(page.locator(TITLE)).to_have_value("My own")
    await page.fill(TITLE, "  Its   name ")
    await page.press(TITLE, "Enter")
    await expect(page.locator(TITLE)).to_have_value("Its name")
    await expect(page.locator("h1")).to_have_text("Its name")


async def test_files_are_sent_without_a_word(stage: Stage) -> None:
    stage.allow_refusals()
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("alert")).to_contain_text("Write something, or attach a file.")
    await page.set_input_files(
        "[data-attach]", {"name": "notes.md", "mimeType": "text/plain", "buffer": b"Rain."}
    )
    # Also while it is still on its way.
    await page.press(BOX, "Enter")
    await expect(page.locator(".mine details.attached")).to_contain_text("notes.md")
    await expect(page.locator(".mine .said")).to_have_count(0)
    await expect(page.locator("h1")).to_have_text("notes.md")
    await shows(page, "idle")
    await page.press(BOX, "Enter")
    assert len(await stage.requests(1)) == 1


@pytest.mark.full
async def test_a_text_that_is_too_long_is_told_of_kept_and_not_sent(stage: Stage) -> None:
    chat = await stage.server.new_chat()
    page = await stage.open(f"/chats/{chat}")
    text = 50_000 * "🙂" + 50_001 * "x"
    async with page.expect_response("**/draft"):
        await page.fill(BOX, text)
    line = page.locator("[data-length]")
    await expect(line).to_contain_text("100,001 characters; a message takes at most 100,000.")
    await page.press(BOX, "Enter")
    await page.get_by_role("button", name="Send").click()
    assert (await stage.server.chat(chat))["messages"] == []
    await page.reload()
    await expect(page.locator(BOX)).to_have_value(text)
    await expect(line).to_contain_text("What you typed is kept.")
    await page.evaluate("() => { document.querySelector('#message').value = 'x'.repeat(250000) }")
    await page.dispatch_event(BOX, "input")
    await expect(line).to_contain_text("So much is kept in this tab alone.")
    await page.fill(BOX, "Short")
    await expect(line).to_be_hidden()
    await page.press(BOX, "Enter")
    await expect(page.locator(".mine .said")).to_have_text("Short")


@pytest.mark.full
async def test_a_skill_is_called_before_there_is_a_chat(stage: Stage) -> None:
    page = await stage.open()
    box = page.locator(BOX)
    await box.press_sequentially("/csv")
    await expect(page.get_by_role("option", name="/csv-summary")).to_be_visible()
    await box.press("Enter")
    await expect(box).to_have_value("/csv-summary ")
    await expect(box).to_be_focused()
    await box.press_sequentially("data.csv")
    await box.press("Enter")
    await page.wait_for_url("**/chats/*")
    (block,) = (await stage.requests(1))[0].messages[-1].attachments
    assert "scripts/summary.py" in block.text


@pytest.mark.full
async def test_a_prompt_is_chosen_before_there_is_a_chat(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    demo = {"command": sys.executable, "args": ["-m", "web", "demo-server"]}
    file.write_text(json.dumps({"mcpServers": {"demo": demo}}))
    model = ScriptedProvider(says("ok"))
    async with (
        app_server(tmp_path, model, settings={"mcp_config": file}) as server,
        watched(chromium, server.address) as (context, _),
    ):
        page = await context.new_page()
        await page.goto(server.address)
        # It comes live, once the server is connected.
        await page.locator(BOX).press_sequentially("/explain")
        option = page.get_by_role("option", name="/explain_planet")
        await expect(option).to_be_visible(timeout=30_000)
        await page.press(BOX, "Enter")
        await page.wait_for_url("**/chats/*")
        form = page.locator("[data-command-place] form")
        await form.get_by_role("combobox").or_(form.get_by_role("textbox")).first.fill("Saturn")
        await form.get_by_role("button").first.click()
        await expect(page.locator(BOX)).to_have_value(re.compile("Saturn"))
        await page.press(BOX, "Enter")
        async with asyncio.timeout(10):
            while not model.requests:
                await model.asked.wait()
        assert "Saturn" in model.requests[0].messages[-1].text
        # It was done once: a page that is loaded again does not choose it.
        await page.reload()
        await expect(page.locator("[data-command-place] form")).to_have_count(0)
