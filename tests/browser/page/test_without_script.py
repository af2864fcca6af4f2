"""The page in a browser that runs no script: all that a chat needs works by links and forms."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, LOG, Stage, staged, written
from tests.support.scripted_provider import breaks, calls, says
from web.harness.values.messages import ToolResultBlock

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


async def open_plain(stage: Stage, path: str = "/") -> Page:
    return await stage.open(path, live=False)


async def result(stage: Stage) -> ToolResultBlock:
    """The last tool result that the model was given, once its next request is there."""
    block = stage.model.requests[-1].messages[-1].content[0]
    assert isinstance(block, ToolResultBlock)
    return block


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.full)])
async def test_a_message_is_sent_and_its_answer_read(plain: Stage, again: bool) -> None:
    going = asyncio.Event()
    said = says("The first half, ", "the **second** half.")
    plain.play([said[0], going, *said[1:]])
    page = await open_plain(plain)
    await page.fill(BOX, "Tell me")
    await page.click(".send")
    await page.wait_for_url("**/chats/*")
    await expect(page.locator(".mine .said")).to_have_text("Tell me")
    # While the model writes the page refreshes itself, which would lose what is typed meanwhile.
    await expect(page.locator(BOX)).to_be_hidden()
    await expect(page.locator(".dock .aside")).to_be_visible()
    async with page.expect_event("load"):
        going.set()
    await expect(page.locator(".answer")).to_have_text("The first half, the second half.")
    await expect(page.locator(".answer strong")).to_have_text("second")
    await expect(page.locator(".status")).to_contain_text("Done")
    assert await page.locator("noscript").count() == 0
    if not again:
        return
    plain.play(says("And more."))
    await page.fill(BOX, "Go on")
    await page.click(".send")
    await expect(page.locator(".mine")).to_have_count(2)
    await expect(page.locator(".answer").last).to_have_text("And more.")
    # The end of the conversation is what a person sees first, also in a long one.
    await expect(page.locator(".foot").last).to_be_in_viewport()


@pytest.mark.full
async def test_a_long_chat_opens_at_its_end(plain: Stage) -> None:
    chat = await plain.answered("Long", *says("paragraph\n\n" * 100 + "the last words"))
    page = await open_plain(plain, f"/chats/{chat}")
    await expect(page.get_by_text("the last words")).to_be_in_viewport()


async def test_a_running_answer_is_stopped(plain: Stage) -> None:
    plain.play([says("kept")[0], asyncio.Event()])
    chat = await plain.asked()
    page = await open_plain(plain, f"/chats/{chat}")
    await page.click("[data-stop]")
    await expect(page.locator(".status")).to_contain_text("Stopped")
    assert plain.model.open == 0


@pytest.mark.full
async def test_a_tool_allowed_for_the_chat_asks_again_when_told(plain: Stage) -> None:
    plain.play(calls(WRITE), says("written"))
    chat = await plain.asked("Write")
    page = await open_plain(plain, f"/chats/{chat}")
    await page.set_viewport_size({"width": 1400, "height": 800})
    await page.get_by_role("button", name="Allow in this chat").click()
    await expect(page.locator(".tools")).to_contain_text("allowed in this chat")
    await page.get_by_role("button", name="Ask again").click()
    await expect(page).to_have_url(f"{plain.server.address}/chats/{chat}")
    await expect(page.locator(".tools")).not_to_contain_text("allowed in this chat")


@pytest.mark.full
async def test_the_send_button_stands_at_the_end_of_the_message_box(plain: Stage) -> None:
    chat = await plain.answered("Hello")
    page = await open_plain(plain, f"/chats/{chat}")
    row = await page.locator(".box .row").bounding_box()
    send = await page.locator(".box .send").bounding_box()
    assert row is not None
    assert send is not None
    assert abs(row["x"] + row["width"] - send["x"] - send["width"]) < 2


async def test_a_call_is_allowed_once(plain: Stage, tmp_path: Path) -> None:
    plain.play(calls(WRITE), says("written"))
    chat = await plain.asked("Write")
    page = await open_plain(plain, f"/chats/{chat}")
    await page.get_by_role("button", name="Allow once").click()
    await plain.requests(2)
    assert written(tmp_path, "note.txt") == ["hello"]


@pytest.mark.full
async def test_a_tool_is_allowed_for_the_chat(plain: Stage) -> None:
    other = ("write_file", {"path": "two.txt", "content": "2"})
    plain.play(calls(WRITE), calls(other), says("both"))
    chat = await plain.asked("Write")
    page = await open_plain(plain, f"/chats/{chat}")
    await page.get_by_role("button", name="Allow in this chat").click()
    await plain.requests(3)
    await page.goto(f"{plain.server.address}/chats/{chat}")
    await expect(page.locator(".call")).to_have_count(2)
    await expect(page.locator(".ask-card")).to_have_count(0)


@pytest.mark.full
async def test_a_call_is_denied_with_a_reason(plain: Stage, tmp_path: Path) -> None:
    plain.play(calls(WRITE), says("I see"))
    chat = await plain.asked("Write")
    page = await open_plain(plain, f"/chats/{chat}")
    await page.click("summary:has-text('Deny…')")
    await page.fill("[name=reason]", "Not on a Sunday")
    await page.get_by_role("button", name="Deny", exact=True).click()
    await plain.requests(2)
    told = await result(plain)
    assert told.is_error
    assert "Not on a Sunday" in told.text
    assert written(tmp_path, "note.txt") == []


@pytest.mark.full
async def test_arguments_are_edited_and_wrong_ones_refused(plain: Stage, tmp_path: Path) -> None:
    plain.allow_refusals()
    plain.play(calls(WRITE), says("written"))
    chat = await plain.asked("Write")
    page = await open_plain(plain, f"/chats/{chat}")
    for wrong, words in (("{", "not JSON"), ('{"path": {}, "content": ""}', "path")):
        await page.click("summary:has-text('Edit…')")
        await page.fill("[name=arguments]", wrong)
        await page.get_by_role("button", name="Allow with these arguments").click()
        await expect(page.locator("h1")).to_contain_text(words)
        await expect(page.locator("body")).to_contain_text("still open")
        # What was typed is not lost, and can be put right where it is.
        await expect(page.locator("#typed")).to_have_value(wrong)
        await page.get_by_role("link", name="Back").click()
        await expect(page.locator(".ask-card")).to_be_visible()
    await page.go_back()
    await page.fill("#typed", '{"path": "other.txt", "content": "edited"}')
    await page.get_by_role("button", name="Send once more").click()
    await plain.requests(2)
    assert written(tmp_path, "other.txt") == ["edited"]


@pytest.mark.full
async def test_a_waiting_message_is_taken_back_into_the_box(plain: Stage) -> None:
    plain.play([asyncio.Event()])
    chat = await plain.asked("First")
    await plain.server.send(chat, "Second", queue=True)
    page = await open_plain(plain, f"/chats/{chat}")
    await expect(page.locator(".queued")).to_contain_text("Second")
    await page.get_by_role("button", name="Take back").click()
    await expect(page.locator(BOX)).to_have_value("Second")
    await expect(page.locator(".queued")).to_have_count(0)


@pytest.mark.full
async def test_deleting_asks_and_can_be_undone(plain: Stage) -> None:
    chat = await plain.answered("Keep me")
    page = await open_plain(plain, f"/chats/{chat}")
    await page.locator(".head [data-confirm]").click()
    await expect(page.locator("h1")).to_have_text("Delete “Keep me”?")
    await page.get_by_role("link", name="Keep it").click()
    await expect(page.locator(LOG)).to_contain_text("Keep me")
    await page.locator(".head [data-confirm]").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page).to_have_url(plain.server.address + "/")
    await expect(page.locator(".row-chat")).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(page).to_have_url(f"{plain.server.address}/chats/{chat}")
    await expect(page.locator(LOG)).to_contain_text("Keep me")


async def test_an_error_keeps_what_was_typed(chromium: Browser, tmp_path: Path) -> None:
    limits = {"max_message_chars": 20}
    async with staged(chromium, tmp_path, limits=limits, java_script_enabled=False) as stage:
        stage.allow_refusals()
        page = await open_plain(stage)
        for start in ("new chat", "old chat"):
            too_long = f"Far too long a message for {start}"
            await page.fill(BOX, too_long)
            await page.click(".send")
            await expect(page.locator("h1")).to_contain_text("at most 20")
            await expect(page.locator("#typed")).to_have_value(too_long)
            await page.fill("#typed", f"Short: {start}")
            await page.get_by_role("button", name="Send once more").click()
            await page.wait_for_url("**/chats/*")
            await expect(page.locator(LOG)).to_contain_text(f"Short: {start}")


@pytest.mark.full
async def test_a_failed_answer_is_tried_again(plain: Stage) -> None:
    chat = await plain.answered("Try", *breaks("half", transient=False))
    plain.play(says("whole"))
    page = await open_plain(plain, f"/chats/{chat}")
    await expect(page.locator(".failure")).to_contain_text("The model is overloaded.")
    await page.get_by_role("button", name="Try again").click()
    await plain.requests(2)
    await expect(page.locator(".failure")).to_have_count(0)
