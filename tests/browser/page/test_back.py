"""The page for a new chat, shown again as it was left: what is done there makes another chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import staged
from tests.support.browser import launched
from web.ui.pages.pages import SUGGESTIONS

if TYPE_CHECKING:
    from playwright.async_api import FilePayload, Page

pytestmark = [pytest.mark.anyio, pytest.mark.full]

NOTES: FilePayload = {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"Rain."}


@asynccontextmanager
async def new_chat_page(folder: Path) -> AsyncIterator[Page]:
    """In a browser that keeps pages for its back button."""
    async with (
        launched(without=["--disable-back-forward-cache"]) as browser,
        staged(browser, folder) as stage,
    ):
        page = await stage.context.new_page()
        await page.goto(stage.server.address)
        await page.evaluate(
            "() => addEventListener('pageshow', (e) => (window.back = e.persisted))"
        )
        yield page


async def back(page: Page) -> str:
    """Goes back from the chat that was made, to the page as it was; the address of the chat."""
    await page.wait_for_url("**/chats/*")
    made = page.url
    await page.go_back(wait_until="commit")
    await page.wait_for_function("() => window.back === true")
    return made


async def test_a_suggestion_is_followed_again_in_a_chat_of_its_own(tmp_path: Path) -> None:
    async with new_chat_page(tmp_path) as page:
        label, text = SUGGESTIONS[0]
        await page.locator(".suggestion", has_text=label).click()
        first = await back(page)
        await page.locator(".suggestion", has_text=label).click()
        await page.wait_for_url("**/chats/*")
        await expect(page.locator(".mine .said")).to_have_text(text)
        assert page.url != first


async def test_files_go_to_a_chat_of_their_own(tmp_path: Path) -> None:
    async with new_chat_page(tmp_path) as page:
        await page.set_input_files("[data-attach]", NOTES)
        first = await back(page)
        await page.set_input_files("[data-attach]", NOTES)
        await page.wait_for_url("**/chats/*")
        await expect(page.locator(".attachment")).to_have_count(1)
        assert page.url != first
