"""What servers offer a person: resources and templates in the panel, prompts as commands."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, picture, shows
from tests.support.axe import serious
from tests.support.mcp_wire import NOTES
from tests.support.notes_server import TODAY
from tests.support.scripted_provider import calls, says

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.anyio

SLOW = 40_000
"""Milliseconds that a program may take to start on a busy machine."""
WIDE = {"width": 1400, "height": 900}
TOKEN = re.compile(r'name="token" value="([^"]+)"')
START = re.compile(r'action="(/chats/[^"]+/proposals/[^"]+/start)"')


async def connected(
    stage: Stage, *command: str, name: str = "notes", protocol: str = "legacy", live: bool = True
) -> Page:
    """The page of a chat that has a server of this name, with all that it offers."""
    client, chat = stage.server.client, await stage.server.new_chat()
    address = f"/chats/{chat}"
    (token, *_) = TOKEN.findall((await client.get(address)).text)
    target = shlex.join([sys.executable, *(command or ("-S", "-E", str(NOTES), "0"))])
    fields = {"token": token, "target": target, "name": name, "protocol": protocol}
    await client.post(f"{address}/servers", data=fields)
    (start,) = START.findall((await client.get(address)).text)
    await client.post(start, data={"token": token})
    page = await stage.open(address, live=live)
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    if live:
        await expect(offered(page, "prompts")).to_be_visible(timeout=SLOW)
    return page


def offered(page: Page, kind: str) -> Locator:
    return page.locator(".server summary", has_text=kind)


def resource(page: Page, title: str) -> Locator:
    return page.locator(".offered > li", has=page.locator("b", has_text=title))


def chips(page: Page) -> Locator:
    return page.locator(".attachment")


@pytest.mark.full
async def test_a_resource_is_read_attached_shown_in_every_tab_and_sent_once(stage: Stage) -> None:
    page = await connected(stage)
    await offered(page, "resources").click()
    today = resource(page, "Today")
    await today.get_by_role("button", name="Read Today").click()
    await expect(today.locator(".reading h1")).to_have_text("Today")
    await today.get_by_role("button", name="Attach Today").click()
    await expect(chips(page)).to_have_text(re.compile("Today"))
    # What was read stays where it is while the page goes on.
    await expect(today.locator(".reading h1")).to_be_visible()
    await page.get_by_role("button", name="Attach <img src=x").click()
    await expect(chips(page)).to_have_count(2)
    other = await stage.open(page.url.removeprefix(stage.server.address), live=False)
    await expect(chips(other)).to_have_count(2)
    await other.get_by_role("button", name="Remove <img src=x").click()
    await expect(chips(page)).to_have_count(1)
    await page.fill(BOX, "What is on?")
    await page.press(BOX, "Enter")
    await page.press(BOX, "Enter")
    await expect(chips(other)).to_have_count(0)
    said = other.locator(".mine")
    await expect(said.locator(".attached summary")).to_contain_text("Today")
    await said.locator(".attached summary").click()
    await expect(said.locator("pre")).to_contain_text("Touched 0 times. <b onclick")
    (request,) = await stage.requests(1)
    (block,) = request.messages[-1].attachments
    assert (block.uri, block.source) == (TODAY, "notes")


@pytest.mark.full
async def test_a_watched_resource_says_that_it_changed_until_it_is_read_again(
    stage: Stage,
) -> None:
    stage.play(calls(("notes__touch", {"uri": TODAY})), says("Touched."))
    page = await connected(stage)
    await offered(page, "resources").click()
    today = resource(page, "Today")
    watch = today.get_by_role("button", name="Watch Today")
    await watch.press("Enter")
    await expect(watch).to_have_attribute("aria-pressed", "true")
    await page.fill(BOX, "Touch it")
    await page.press(BOX, "Enter")
    await page.get_by_role("button", name="Allow once").click()
    await expect(today.locator(".updated")).to_have_text(re.compile(r"updated \d\d:\d\d"))
    await today.get_by_role("button", name="Read Today").click()
    await expect(today.locator(".reading")).to_contain_text("Touched 1 times")
    await expect(today.locator(".updated")).to_have_count(0)


async def test_commands_are_found_filled_in_and_left_by_the_keyboard_alone(stage: Stage) -> None:
    page = await connected(stage)
    box, options = page.locator(BOX), page.locator("[data-command]:visible")
    selected = page.locator("[data-command][aria-selected=true]")
    await box.focus()
    await page.keyboard.type("/")
    # Six prompts, and the three skills that come with the program.
    await expect(options).to_have_count(9)
    await expect(box).to_have_attribute("aria-expanded", "true")
    await expect(selected).to_contain_text("/plain")
    for _ in range(4):
        await page.keyboard.press("ArrowUp")
    await expect(selected).to_contain_text("ü" * 200)
    await page.keyboard.type("let")
    await expect(options).to_have_count(1)
    active = await box.get_attribute("aria-activedescendant")
    assert active == await options.get_attribute("id")
    await page.keyboard.press("Escape")
    await expect(options).to_have_count(0)
    assert await box.get_attribute("role") is None
    await box.fill("")
    await page.keyboard.type("/let")
    await page.keyboard.press("Tab")
    # Its name is no message, so it is no draft either.
    await expect(box).to_have_value("")
    to = page.locator(".command").get_by_label("to required")
    await expect(to).to_be_focused()
    await page.keyboard.type("A")
    suggested = page.locator(".command datalist").first.locator("option")
    await expect(suggested).to_have_count(2)
    await page.keyboard.type("da")
    await page.keyboard.press("Tab")
    tone = page.locator(".command datalist").last.locator("option")
    await expect(tone).to_have_attribute("value", "kind to Ada")
    await page.keyboard.type("kind")
    await page.keyboard.press("Enter")
    await expect(box).to_have_value("A kind letter to Ada.")
    await expect(box).to_be_focused()
    await expect(page.locator(".command")).to_have_count(0)


@pytest.mark.full
async def test_several_messages_are_attached_and_a_message_with_a_slash_is_sent(
    stage: Stage,
) -> None:
    stage.allow_refusals()
    page = await connected(stage)
    box = page.locator(BOX)
    await box.press_sequentially("/mix")
    await page.locator("[data-command]:visible").click()
    await expect(box).to_have_value("And tomorrow?")
    await expect(chips(page)).to_have_count(4)
    await expect(chips(page).locator("img")).to_have_count(1)
    await box.fill("")
    await box.press_sequentially("/brok")
    await box.press("Enter")
    error = page.locator("[data-command-use] .error")
    await expect(error).to_contain_text("the prompt is out of order")
    await expect(box).to_have_value("/brok")
    await box.fill("")
    await box.press_sequentially("/usr/bin holds programs")
    await box.press("Enter")
    await expect(page.locator(".mine .said")).to_have_text("/usr/bin holds programs")
    await expect(page.locator("[data-command-place]")).to_be_empty()


@pytest.mark.full
@pytest.mark.parametrize("width", [1400, 380])
async def test_what_is_offered_is_open_to_everybody(stage: Stage, width: int) -> None:
    stage.allow_refusals()
    page = await connected(stage)
    await offered(page, "resources").click()
    await page.get_by_role("button", name="Read Today").click()
    await expect(page.locator(".reading")).to_be_visible()
    await page.get_by_role("button", name="Attach Today").click()
    await page.get_by_role("button", name="Attach data").click()
    refused = resource(page, "data").locator(".error")
    await expect(refused).to_contain_text("is neither text nor a picture that models take")
    await offered(page, "prompts").click()
    assert await serious(page) == []
    await picture(page, "mcp-resources")
    await page.set_viewport_size({"width": width, "height": 900})
    await page.emulate_media(color_scheme="dark")
    await page.locator(BOX).press_sequentially("/")
    assert await serious(page) == []
    await picture(page, f"commands-{width}")
    await page.keyboard.type("letter")
    await page.keyboard.press("Enter")
    await expect(page.locator(".command")).to_be_visible()
    assert await serious(page) == []
    await picture(page, f"command-form-{width}")


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["2026-07-28", "legacy"])
async def test_the_demo_server_shows_it_all_in_both_eras(stage: Stage, protocol: str) -> None:
    stage.play(calls(("demo__count_to", {"number": 2, "pause_seconds": 0})), says("Counted."))
    page = await connected(stage, "-m", "web", "demo-server", name="demo", protocol=protocol)
    await offered(page, "resources").click()
    count = resource(page, "The last count")
    await count.get_by_role("button", name="Watch The last count").click()
    await expect(count.locator("[aria-pressed=true]")).to_be_visible()
    await offered(page, "template").click()
    template = page.locator(".offered > li", has_text="One planet")
    await template.get_by_label("name").fill("sat")
    await expect(template.locator("option")).to_have_attribute("value", "Saturn")
    await template.get_by_label("name").fill("Saturn")
    await template.get_by_label("name").press("Enter")
    await expect(template.locator(".reading h1")).to_have_text("Saturn")
    await page.locator(BOX).press_sequentially("/tour")
    await page.press(BOX, "Enter")
    await expect(chips(page)).to_have_text(re.compile("guide"))
    await expect(page.locator(BOX)).to_have_value(re.compile("three sentences"))
    await page.press(BOX, "Enter")
    await page.get_by_role("button", name="Allow once").click()
    await expect(count.locator(".updated")).to_be_visible()
    await shows(page, "idle")


@pytest.mark.full
async def test_without_script_a_prompt_and_a_resource_are_forms(plain: Stage) -> None:
    page = await connected(plain, live=False)
    async with asyncio.timeout(SLOW / 1_000):
        while not await offered(page, "prompts").count():
            await page.reload()
    await offered(page, "prompts").click()
    letter = page.locator(".offered > li", has_text="/letter")
    await letter.get_by_label("to required").fill("Ada")
    await letter.get_by_role("button", name="Use /letter").click()
    await expect(page.locator(BOX)).to_have_value("A calm letter to Ada.")
    await offered(page, "resources").click()
    await page.get_by_role("button", name="Read Today").click()
    await expect(page.get_by_role("heading", name="Today").first).to_be_visible()
    await page.get_by_role("link", name="Back").click()
    await offered(page, "resources").click()
    await page.get_by_role("button", name="Attach Today").click()
    await expect(chips(page)).to_have_count(1)
