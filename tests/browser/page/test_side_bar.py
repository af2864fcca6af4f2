"""The side bar: every chat with its title and state, newest first, the same in every tab."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, LOG, Stage, shows, staged
from tests.support.scripted_provider import breaks, calls, says

if TYPE_CHECKING:
    from playwright.async_api import Browser, Locator, Page

pytestmark = pytest.mark.anyio

NAMES = ".side .row-chat .open > span:first-child"


def row(page: Page, title: str) -> Locator:
    return page.locator(".side .row-chat", has_text=title)


async def test_the_first_message_starts_a_chat_and_names_it(stage: Stage) -> None:
    stage.play(says("All **well**."))
    page = await stage.open()
    await page.fill(BOX, "# How are `you`?\nSecond line")
    await page.press(BOX, "Enter")
    await page.wait_for_url("**/chats/*")
    await expect(page.locator(NAMES)).to_have_text(["How are you?"])
    await expect(page.locator(".head h1")).to_have_text("How are you?")
    await expect(page).to_have_title("How are you? · harness-web")
    await expect(page.locator(".answer strong")).to_have_text("well")
    await expect(row(page, "How").locator(".open")).to_have_attribute("aria-current", "page")
    await shows(page, "idle")


@pytest.mark.full
async def test_every_state_is_seen_at_a_glance_and_the_newest_chat_is_first(stage: Stage) -> None:
    going = asyncio.Event()
    page = await stage.open()
    for title, answer, state, words in (
        ("Rests", says("ok"), "idle", "Rests"),
        ("Breaks", breaks(transient=False), "failed", "Breaks, failed"),
        ("Asks", calls(("write_file", {"path": "a", "content": "b"})), "asking", "needs your"),
        ("Works", [going, *says("ok")], "working", "Works, working"),
    ):
        stage.play(answer)
        await stage.asked(title)
        await expect(row(page, title)).to_have_attribute("data-state", state)
        await expect(row(page, title).locator(".open")).to_contain_text(words)
    await expect(page.locator(NAMES)).to_have_text(["Works", "Asks", "Breaks", "Rests"])
    # A new message brings its chat to the top, in a page that was opened before.
    stage.play(says("ok"))
    await row(page, "Rests").locator(".open").click()
    await page.fill(BOX, "again")
    await page.press(BOX, "Enter")
    await expect(page.locator(NAMES)).to_have_text(["Rests", "Works", "Asks", "Breaks"])
    going.set()
    await expect(row(page, "Works")).to_have_attribute("data-state", "idle")


@pytest.mark.full
async def test_addresses_name_chats_and_back_and_forward_work(stage: Stage) -> None:
    stage.play(says("answer one"), says("answer two"))
    first, second = await stage.answered("One"), await stage.answered("Two")
    page = await stage.open()
    log = page.locator(LOG)
    await row(page, "One").locator(".open").click()
    await expect(log).to_contain_text("answer one")
    assert page.url.endswith(f"/chats/{first}")
    await row(page, "Two").locator(".open").click()
    await expect(log).to_contain_text("answer two")
    assert page.url.endswith(f"/chats/{second}")
    await page.go_back()
    await expect(log).to_contain_text("answer one")
    await page.go_back()
    await expect(page.locator(".welcome")).to_be_visible()
    await page.go_forward()
    await expect(log).to_contain_text("answer one")
    # What came by is live: an answer to this chat reaches the page that was gone back to.
    stage.play(says("answer three"))
    await stage.server.send(first, "Once more")
    await expect(log).to_contain_text("answer three")


@pytest.mark.full
async def test_a_second_tab_sees_the_same(stage: Stage) -> None:
    halfway = asyncio.Event()
    said = says("first half, ", "second half")
    stage.play([said[0], halfway, *said[1:]])
    chat = await stage.asked("Tell me")
    one, two = await stage.open(f"/chats/{chat}"), await stage.open(f"/chats/{chat}", live=False)
    for page in (one, two):
        await expect(page.locator(".answer")).to_have_text("first half,")
    halfway.set()
    for page in (one, two):
        await expect(page.locator(".answer")).to_have_text("first half, second half")
    html = "() => document.querySelector('[data-log]').innerHTML"
    await expect(two.locator(".foot")).to_be_visible()
    await expect(one.locator(".foot")).to_be_visible()
    assert await one.evaluate(html) == await two.evaluate(html)


async def test_a_running_answer_is_stopped_and_what_was_written_is_kept(stage: Stage) -> None:
    said = says("kept words")
    stage.play([said[0], asyncio.Event()])
    chat = await stage.asked("Go on for ever")
    page = await stage.open(f"/chats/{chat}")
    await expect(page.locator(".answer")).to_have_text("kept words")
    await page.click("[data-stop]")
    await expect(page.locator(".status")).to_contain_text("Stopped")
    await expect(page.locator("[data-stop]")).to_have_count(0)
    await expect(page.locator(".answer")).to_have_text("kept words")
    await expect(row(page, "Go on")).to_have_attribute("data-state", "idle")
    assert stage.model.open == 0


async def test_deleting_asks_and_can_be_undone(stage: Stage) -> None:
    stage.play(says("precious"))
    chat = await stage.answered("Keep me")
    page = await stage.open()
    await row(page, "Keep me").hover()
    await row(page, "Keep me").locator(".delete").click()
    dialog = page.locator("dialog")
    await expect(dialog).to_contain_text("Delete “Keep me”?")
    await dialog.get_by_text("Keep it").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, "Keep me")).to_have_count(1)
    await row(page, "Keep me").locator(".delete").click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.locator(".row-chat")).to_have_count(0)
    await page.locator(".undo").get_by_text("Undo").click()
    await page.wait_for_url(f"**/chats/{chat}")
    await expect(page.locator(LOG)).to_contain_text("precious")
    await expect(row(page, "Keep me")).to_have_count(1)
    await expect(page.locator(".undo")).to_have_count(0)
    # It is alive: the next message is answered.
    stage.play(says("and answered"))
    await page.fill(BOX, "still there?")
    await page.press(BOX, "Enter")
    await expect(page.locator(LOG)).to_contain_text("and answered")


@pytest.mark.full
async def test_a_chat_that_is_brought_back_comes_to_life_in_every_tab(stage: Stage) -> None:
    stage.allow_refusals()
    stage.play(says("precious"))
    chat = await stage.answered("Keep me")
    page, other = await stage.open(f"/chats/{chat}"), await stage.open(f"/chats/{chat}", live=False)
    await other.fill(BOX, "half a thought")
    await page.locator(".head [data-confirm]").click()
    await page.locator("dialog").get_by_role("button", name="Delete").click()
    await expect(other.locator("[data-banner]")).to_contain_text("deleted")
    await page.locator(".undo").get_by_text("Undo").click()
    await page.wait_for_url(f"**/chats/{chat}")
    await expect(other.locator("[data-banner]")).to_be_hidden()
    await expect(other.locator(BOX)).to_have_value("half a thought")
    stage.play(says("and answered"))
    await other.press(BOX, "Enter")
    await expect(other.locator(LOG)).to_contain_text("and answered")


@pytest.mark.full
async def test_deleting_another_chat_leaves_the_open_one_alone(stage: Stage) -> None:
    await stage.answered("Away with it")
    chat = await stage.answered("Stays open")
    page = await stage.open(f"/chats/{chat}")
    await page.fill(BOX, "being typed")
    await row(page, "Away").hover()
    await row(page, "Away").locator(".delete").click()
    await page.locator("dialog").get_by_role("button", name="Delete").click()
    await expect(page.locator(NAMES)).to_have_text(["Stays open"])
    await expect(page.locator(".undo")).to_be_visible()
    assert page.url.endswith(f"/chats/{chat}")
    await expect(page.locator(BOX)).to_have_value("being typed")


@pytest.mark.full
async def test_the_open_chat_is_deleted_from_its_head_and_other_tabs_are_told(
    stage: Stage,
) -> None:
    # The draft may be on its way to the server when the chat goes.
    stage.allow_refusals()
    chat = await stage.answered("Short lived")
    page, other = await stage.open(f"/chats/{chat}"), await stage.open(f"/chats/{chat}", live=False)
    await other.fill(BOX, "half a thought")
    await page.locator(".head [data-confirm]").click()
    await page.locator("dialog").get_by_role("button", name="Delete").click()
    await page.wait_for_url(stage.server.address + "/")
    await expect(page.locator(".undo")).to_contain_text("Short lived")
    await expect(other.locator("[data-banner]")).to_contain_text("deleted")
    await expect(other.locator(LOG)).to_contain_text("Short lived")
    await other.locator("[data-take-draft]").click()
    await other.wait_for_url("**/?from=*")
    await expect(other.locator(BOX)).to_have_value("half a thought")


@pytest.mark.full
async def test_after_the_time_to_undo_a_deleted_chat_is_gone(
    chromium: Browser, tmp_path: Path
) -> None:
    async with staged(chromium, tmp_path, limits={"undo_seconds": 3}) as stage:
        stage.allow_refusals()
        chat = await stage.answered("Fleeting")
        page = await stage.open()
        await row(page, "Fleeting").hover()
        await row(page, "Fleeting").locator(".delete").click()
        await page.locator("dialog").get_by_role("button", name="Delete").click()
        await expect(page.locator(".undo")).to_be_visible()
        await expect(page.locator(".undo")).to_have_count(0)
        answer = await page.goto(f"{stage.server.address}/chats/{chat}")
        assert answer is not None
        assert answer.status == 404
        await expect(page.locator("h1")).to_have_text("There is no such chat here.")
        await page.get_by_text("New chat").click()
        await expect(page.locator(".row-chat")).to_have_count(0)
