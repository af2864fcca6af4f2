"""What is remembered in the page: it comes by itself, is searched, edited, forgotten and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, picture, shows
from tests.support.axe import serious
from tests.support.scripted_provider import calls, says

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.anyio


def memory(page: Page, text: str) -> Locator:
    return page.locator("li.memory").filter(has_text=text)


async def open_chat(stage: Stage, **options: bool) -> Page:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}", **options)
    await page.set_viewport_size({"width": 1400, "height": 1000})
    return page


async def add(page: Page, text: str, title: str = "", tags: str = "") -> None:
    more = page.locator(".memories > .more")
    if await more.get_attribute("open") is None:
        await more.locator("summary").click()
    await page.get_by_label("What to remember").fill(text)
    await page.get_by_label("Title (with one it is a note").fill(title)
    await page.get_by_label("Tags, or the category").fill(tags)
    await page.get_by_role("button", name="Remember", exact=True).click()
    await expect(page.get_by_label("What to remember")).to_have_value("")
    await expect(more.get_by_role("status")).to_contain_text("Kept as")


@pytest.mark.full
async def test_what_a_model_saves_is_listed_at_once_in_every_tab(stage: Stage) -> None:
    stage.play(calls(("save_memory", {"text": "Likes tea", "category": "person"})), says("Saved."))
    page, other = await open_chat(stage), await open_chat(stage, live=False)
    await expect(page.locator(".memories")).to_contain_text("Nothing is remembered yet.")
    await page.locator(BOX).fill("Remember that I like tea.")
    await page.locator(BOX).press("Enter")
    await shows(page, "idle")
    await expect(memory(page, "Likes tea")).to_be_visible()
    await expect(memory(page, "Likes tea")).to_contain_text("person")
    await expect(memory(other, "Likes tea")).to_be_visible()
    await expect(page.locator(".call .gist")).to_contain_text("Saved as the fact")
    await page.locator(".memories").scroll_into_view_if_needed()
    await picture(page, "memory-saved")


async def test_a_memory_is_added_edited_forgotten_and_comes_back(stage: Stage) -> None:
    page = await open_chat(stage)
    await add(page, "They come by *mail*.", "Invoices", "project, money")
    await add(page, "Likes tea", tags="person")
    row = memory(page, "Invoices")
    await expect(row).to_contain_text("They come by")
    await page.locator(".memories").scroll_into_view_if_needed()
    await picture(page, "memory")
    assert await serious(page) == []
    await row.get_by_role("link", name="Edit Invoices").click()
    await expect(page.locator(".md em")).to_have_text("mail")
    await picture(page, "memory-edit")
    assert await serious(page) == []
    await page.get_by_label("Text, in markdown").fill("They come by post.")
    await page.get_by_role("button", name="Save").click()
    await expect(memory(page, "They come by post.")).to_be_visible()
    await memory(page, "Likes tea").get_by_role("button", name="Forget Likes tea").click()
    await expect(memory(page, "Likes tea")).to_have_count(0)
    toast = page.locator(".toasts .undo")
    await expect(toast).to_contain_text("Forgot “Likes tea”")
    await toast.get_by_role("button", name="Undo").click()
    await expect(memory(page, "Likes tea")).to_be_visible()
    await expect(toast).to_have_count(0)


@pytest.mark.full
async def test_many_are_searched_and_the_list_comes_back_after_it(stage: Stage) -> None:
    page = await open_chat(stage)
    box = page.get_by_label("Search what is remembered")
    await expect(box).to_be_hidden()
    chat = page.url.rpartition("/")[2]
    for number in range(7):
        body = {"text": f"fact number {number}", "tags": ["number"]}
        await stage.server.client.post(f"/api/chats/{chat}/memories", json=body)
    await expect(box).to_be_visible()
    await box.fill("number 3")
    await box.press("Enter")
    await expect(page.locator(".memories .found li.memory").first).to_contain_text("fact number 3")
    await expect(page.locator(".memory-all > .memory-list")).to_be_hidden()
    await picture(page, "memory-search")
    # What is forgotten in the results is gone from the list as well.
    found = page.locator(".memories .found")
    await found.get_by_role("button", name="Forget fact number 3").click()
    await expect(found.locator("li.memory").filter(has_text="fact number 3")).to_have_count(0)
    await expect(found.locator("li.memory")).to_have_count(6)
    await box.fill("")
    await box.press("Enter")
    await expect(page.locator(".memory-all > .memory-list > li")).to_have_count(6)
    await expect(page.locator(".memory-all > .memory-list")).to_be_visible()


@pytest.mark.full
async def test_the_switch_says_what_it_does_and_keeps_what_is_typed(stage: Stage) -> None:
    page = await open_chat(stage)
    switch = page.get_by_role("switch", name="Use memory in this chat")
    await page.locator(".memories > .more > summary").click()
    await page.get_by_label("What to remember").fill("half a thou")
    await expect(switch).to_have_attribute("aria-checked", "true")
    await switch.click()
    await expect(switch).to_have_attribute("aria-checked", "false")
    await expect(page.locator(".memory-switch")).to_contain_text("This chat does not use it.")
    await expect(page.get_by_label("What to remember")).to_have_value("half a thou")
    await page.reload()
    await expect(switch).to_have_attribute("aria-checked", "false")


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_long_and_broken_memories_fit_a_phone(stage: Stage, scheme: str) -> None:
    chat = await stage.server.new_chat()
    path = f"/api/chats/{chat}/memories"
    for body in (
        {"text": "word" * 200, "tags": ["c" * 50]},
        {"text": "x " * 600, "title": "w" * 200, "tags": ["t" * 50, "short"]},
        {"text": "short"},
    ):
        assert (await stage.server.client.post(path, json=body)).status_code == 201
    page = await stage.context.new_page()
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await page.set_viewport_size({"width": 380, "height": 800})
    await page.goto(f"{stage.server.address}/chats/{chat}")
    await page.get_by_role("button", name="Setup").click()
    await page.locator(".memories").scroll_into_view_if_needed()
    await picture(page, f"memory-phone-{scheme}")
    panel = page.locator("#setup")
    assert await panel.evaluate("each => each.scrollWidth <= each.clientWidth")
    assert await serious(page) == []
    await memory(page, "short").last.get_by_role("link").click()
    await picture(page, f"memory-phone-edit-{scheme}")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await serious(page) == []
