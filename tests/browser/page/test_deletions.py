"""What a person takes away is told where it is seen, and brought back from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import Stage, picture
from tests.support.axe import serious

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio


def file(name: str, content: bytes) -> Any:
    return {"name": name, "mimeType": "text/plain", "buffer": content}


async def attach(page: Page, *files: Any) -> None:
    await page.locator("[data-attach]").set_input_files(list(files))


@pytest.mark.full
async def test_an_undo_lies_over_the_panel_that_it_came_from(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await page.set_viewport_size({"width": 1100, "height": 700})
    await attach(page, file("notes.txt", b"Rain."))
    await expect(page.locator(".attachment")).to_have_count(1)
    await page.get_by_role("button", name="Setup").click()
    delete = page.get_by_role("button", name="Delete notes.txt")
    await delete.click()
    undo = page.locator(".panel .undo").get_by_role("button", name="Undo")
    await expect(undo).to_be_in_viewport()
    await expect(delete).to_have_count(0)
    assert await serious(page) == []
    await picture(page, "undo-in-panel")
    await undo.click()
    await expect(delete).to_be_visible()
    await delete.click()
    await page.get_by_role("button", name="Close setup").click()
    await expect(page.locator(".over .undo")).to_be_in_viewport()
    await page.locator(".over .undo").get_by_role("button", name="Undo").click()
    await expect(page.locator(".undo")).to_have_count(0)
    await page.get_by_role("button", name="Remove notes.txt").click()
    await expect(page.locator(".undo")).to_contain_text("is no longer among the chat")
    await expect(delete).to_have_count(0)


async def test_what_keeps_files_from_going_stands_before_other_words(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await attach(page, *(file(f"{name}.bin", b"\0") for name in "abcd"))
    await expect(page.locator(".told")).to_have_count(4)
    await attach(page, *(file(f"{number}.txt", b"x") for number in range(12)))
    await expect(page.locator(".told")).to_have_count(5)
    first = page.locator("[data-uploads] > li").first
    await expect(first).to_contain_text("6 files were left out")
    await expect(first).to_be_in_viewport()
    await expect(page.locator(".attachment")).to_have_count(10)
