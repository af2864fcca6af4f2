"""The states of the page that are about what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.browser.page.stage import Stage
from tests.support.scripted_provider import calls, says

if TYPE_CHECKING:
    from playwright.async_api import Page

NOTE = "Invoices come by mail, as **PDF** files.\n\n- each month\n- from three suppliers\n"


async def _remembering(stage: Stage) -> str:
    """A chat that has saved something; its id."""
    stage.play(
        calls(("save_memory", {"text": "This project analyzes invoices", "category": "project"})),
        says("I will remember that."),
    )
    chat = await stage.answered("Remember that this project analyzes invoices.")
    path = f"/api/chats/{chat}/memories"
    for body in (
        {"text": NOTE, "title": "How invoices come", "tags": ["invoices", "suppliers"]},
        {"text": "Prefers short answers", "tags": ["preference"]},
    ):
        assert (await stage.server.client.post(path, json=body)).status_code == 201
    return chat


async def memory(stage: Stage) -> Page:
    page = await stage.open(f"/chats/{await _remembering(stage)}")
    await page.set_viewport_size({"width": 1000, "height": 900})
    await page.get_by_role("button", name="Setup").click()
    await expect(page.locator("li.memory")).to_have_count(3)
    await page.locator(".memories").evaluate("each => each.scrollIntoView()")
    return page


async def memory_edited(stage: Stage) -> Page:
    page = await stage.open(f"/chats/{await _remembering(stage)}")
    await page.set_viewport_size({"width": 1440, "height": 900})
    await page.get_by_role("link", name="Edit How invoices come").click()
    await expect(page.get_by_label("Text, in markdown")).to_be_visible()
    return page
