"""The message box and the log on the real application; tests/browser/client has the finer cases."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, LOG, Stage, shows
from tests.support.browser import scrolled
from tests.support.scripted_provider import says

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.anyio

BELOW = """() => { const log = document.querySelector("[data-log]");
  return Math.round(log.scrollHeight - log.clientHeight - log.scrollTop); }"""
AT_END = f"() => ({BELOW})() <= 1"


async def test_enter_sends_and_shift_enter_breaks_the_line(stage: Stage) -> None:
    page = await stage.open()
    await expect(page.locator(BOX)).to_be_focused()
    await page.keyboard.type("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/chats/*")
    assert await page.locator(".mine .said").inner_text() == "one\ntwo"
    await expect(page.locator(BOX)).to_have_value("")
    await shows(page, "idle")
    # White space alone is no message.
    await page.fill(BOX, "  \n ")
    await page.press(BOX, "Enter")
    await page.fill(BOX, "three")
    await page.press(BOX, "Enter")
    await expect(page.locator(".mine .said")).to_have_text(["one\ntwo", "three"])
    assert len(await stage.requests(2)) == 2


@pytest.mark.full
async def test_enter_that_ends_a_composition_does_not_send(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.answered('Hello')}")
    await page.click(BOX)
    client = await stage.context.new_cdp_session(page)
    await client.send(
        "Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3}
    )
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    await client.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
    await client.send("Input.insertText", {"text": "日本"})
    await client.send("Input.dispatchKeyEvent", {"type": "keyUp", **enter})
    assert await page.input_value(BOX) == "日本"
    # A while later Enter is a key like any other. Had the first one sent, there were two.
    await page.wait_for_function(
        "(since) => performance.now() > since + 60", arg=await page.evaluate("performance.now()")
    )
    await page.keyboard.press("Enter")
    await expect(page.locator(".mine .said")).to_have_text(["Hello", "日本"])


async def test_what_is_typed_survives_a_refresh_and_a_switch_of_chats(stage: Stage) -> None:
    one, two = await stage.answered("One"), await stage.answered("Two")
    page = await stage.open(f"/chats/{one}")
    await page.fill(BOX, "for one\nwith a second line")
    await page.reload()
    await expect(page.locator(BOX)).to_have_value("for one\nwith a second line")
    await page.locator(".row-chat .open", has_text="Two").click()
    await page.wait_for_url(f"**/chats/{two}")
    await expect(page.locator(BOX)).to_have_value("")
    await page.fill(BOX, "for two")
    await page.locator("a.new").click()
    await page.wait_for_url(stage.server.address + "/")
    await page.fill(BOX, "for a new one")
    await page.go_back()
    await expect(page.locator(BOX)).to_have_value("for two")
    await page.locator(".row-chat .open", has_text="One").click()
    await expect(page.locator(BOX)).to_have_value("for one\nwith a second line")
    await page.locator("a.new").click()
    await expect(page.locator(BOX)).to_have_value("for a new one")


@pytest.mark.full
async def test_a_draft_is_there_in_another_browser(stage: Stage, chromium: Browser) -> None:
    chat = await stage.answered("Hello")
    page = await stage.open(f"/chats/{chat}")
    async with page.expect_response(lambda answer: answer.url.endswith("/draft")):
        await page.fill(BOX, "begun here")
    other = await chromium.new_context()
    try:
        there = await other.new_page()
        await there.goto(f"{stage.server.address}/chats/{chat}")
        await expect(there.locator(BOX)).to_have_value("begun here")
    finally:
        await other.close()


async def test_a_second_message_waits_visibly_and_can_be_taken_back(stage: Stage) -> None:
    going = asyncio.Event()
    stage.play([going, *says("first answer")])
    page = await stage.open(f"/chats/{await stage.asked('First')}")
    for text in ("Second", "Third"):
        await page.fill(BOX, text)
        await page.press(BOX, "Enter")
    await expect(page.locator(".queued .said")).to_have_text(
        ["Waits its turn: Second", "Waits its turn: Third"]
    )
    await page.fill(BOX, "typed meanwhile")
    await page.locator(".queued", has_text="Second").get_by_role("button").click()
    await expect(page.locator(BOX)).to_have_value("Second\n\ntyped meanwhile")
    await expect(page.locator(".queued")).to_have_count(1)
    going.set()
    await expect(page.locator(".mine .said")).to_have_text(["First", "Third"])
    await expect(page.locator(".queued")).to_have_count(0)
    await shows(page, "idle")


async def test_the_log_follows_a_reader_at_its_end_and_no_other(stage: Stage) -> None:
    steps = [asyncio.Event() for _ in range(3)]
    texts = [f"paragraph {number}\n\n" * 30 for number in range(4)]
    said = says(*texts)
    stage.play([said[0], steps[0], said[1], steps[1], said[2], steps[2], *said[3:]])
    page = await stage.open(f"/chats/{await stage.asked('Long')}")

    async def count(number: int) -> None:
        await expect(page.locator(f"{LOG} p")).to_have_count(30 * number)

    await count(1)
    await page.wait_for_function(AT_END)
    steps[0].set()
    await count(2)
    await page.wait_for_function(AT_END)
    jump = page.locator("[data-jump]")
    await expect(jump).to_be_hidden()
    await scrolled(page, LOG, -400)
    await expect(jump).to_be_visible()
    top = await page.evaluate("() => document.querySelector('[data-log]').scrollTop")
    steps[1].set()
    await count(3)
    assert await page.evaluate("() => document.querySelector('[data-log]').scrollTop") == top
    await jump.click()
    await page.wait_for_function(AT_END)
    await expect(jump).to_be_hidden()
    steps[2].set()
    await count(4)
    await shows(page, "idle")
    await page.wait_for_function(AT_END)
    await page.reload()
    await page.wait_for_function(AT_END)
