"""What the empty page suggests does what its label says, with the model that needs no key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import shows, watched, written
from tests.support.app_server import served
from web.app import create_app
from web.harness.providers.demo.provider import DemoProvider
from web.settings import Settings
from web.ui.pages.pages import SUGGESTIONS

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def clicked(browser: Browser, folder: Path, label: str) -> AsyncIterator[Page]:
    """The chat that a click on a suggestion leads to."""
    app = create_app(Settings(data_dir=folder), providers=lambda name: DemoProvider(pace=0))
    async with served(app) as address, watched(browser, address) as (context, _):
        page = await context.new_page()
        await page.goto(address)
        await page.locator(".suggestion", has_text=label).click()
        await page.wait_for_url("**/chats/*")
        await expect(page.locator(".mine .said")).to_have_text(dict(SUGGESTIONS)[label])
        yield page


@pytest.mark.full
async def test_all_of_them_are_seen_on_a_phone(chromium: Browser, tmp_path: Path) -> None:
    app = create_app(Settings(data_dir=tmp_path), providers=lambda name: DemoProvider(pace=0))
    async with served(app) as address, watched(chromium, address) as (context, _):
        page = await context.new_page()
        await page.set_viewport_size({"width": 390, "height": 844})
        await page.goto(address)
        for each in await page.locator(".suggestion").all():
            await expect(each).to_be_in_viewport(ratio=1)


@pytest.mark.full
async def test_it_says_what_it_can_do(chromium: Browser, tmp_path: Path) -> None:
    async with clicked(chromium, tmp_path, "See what it can do") as page:
        await shows(page, "idle")
        await expect(page.locator(".answer")).to_contain_text("Try one of these")
        await expect(page.locator(".answer")).to_contain_text("write_file")


@pytest.mark.full
async def test_it_runs_two_tools(chromium: Browser, tmp_path: Path) -> None:
    async with clicked(chromium, tmp_path, "Run two tools") as page:
        await shows(page, "idle")
        names = page.locator(".call summary b")
        await expect(names).to_have_text(["calculate", "current_time"])
        await expect(page.locator(".answer").last).to_contain_text("576")


@pytest.mark.full
async def test_it_asks_before_it_writes(chromium: Browser, tmp_path: Path) -> None:
    async with clicked(chromium, tmp_path, "Approve a file") as page:
        await page.get_by_role("button", name="Allow once").click()
        await shows(page, "idle")
        assert written(tmp_path, "note.txt") == ["Hello from the chat."]


@pytest.mark.full
async def test_it_writes_a_long_answer_with_everything_in_it(
    chromium: Browser, tmp_path: Path
) -> None:
    async with clicked(chromium, tmp_path, "Watch a long answer") as page:
        await shows(page, "idle")
        for what in ("table", "pre code", "math"):
            await expect(page.locator(f".answer {what}").first).to_be_attached()
        text = await page.locator(".answer").inner_text()
        assert len(text.split()) > 500
        assert text.rstrip().endswith(".")
        assert "**" not in text


@pytest.mark.full
async def test_it_follows_a_plan_with_a_sub_agent(chromium: Browser, tmp_path: Path) -> None:
    async with clicked(chromium, tmp_path, "Follow a plan") as page:
        await shows(page, "idle")
        await expect(page.locator(".plan h2")).to_have_text("Plan 3 of 3 done")
        await page.get_by_text("What the sub-agent did").click()
        await expect(page.locator(".nested .answer").last).to_contain_text("Asia/Tokyo")
        await expect(page.locator(".answer").last).to_contain_text("576")
