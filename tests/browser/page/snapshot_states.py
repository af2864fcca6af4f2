"""The states of the page that are about snapshots, instructions and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.browser.page.stage import Stage
from tests.harness.snapshots.kept import SAMPLES
from tests.support.scripted_provider import says

if TYPE_CHECKING:
    from playwright.async_api import Page


async def loaded(stage: Stage) -> Page:
    sample = (SAMPLES / "harnessx-0.4.0.json").read_bytes()
    files = {"file": ("snapshot.json", sample, "application/json")}
    answer = await stage.server.client.post("/api/chats/from-snapshot", files=files)
    page = await stage.open(f"/chats/{answer.json()['id']}")
    await expect(page.get_by_text("Loaded from a snapshot.")).to_be_visible()
    return page


async def instructions(stage: Stage) -> Page:
    stage.allow_refusals()
    page = await stage.open(f"/chats/{await stage.answered('Hello', *says('Hello to you.'))}")
    await page.set_viewport_size({"width": 1440, "height": 900})
    await page.get_by_text("Instructions and limits").click()
    await page.get_by_label("Instructions to the model").fill("Answer in verse.")
    await page.get_by_label("Model calls", exact=True).fill("12")
    await page.get_by_label("Cost in dollars").fill("a lot")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator(".settings [role=alert]")).to_be_visible()
    return page
