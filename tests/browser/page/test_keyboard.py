"""The keyboard alone is enough, and focus is always seen and never lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, LOG, STATUS, Stage, shows
from tests.browser.page.states import shown
from tests.support.scripted_provider import calls, says
from web.harness.values.model import TextChunk

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

REACHABLE = """() => [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), textarea, select, summary, [tabindex='0']")]
  .filter((each) => each.checkVisibility({visibilityProperty: true}) && !each.disabled)
  .map((each, at) => (each.dataset.stop_at = at)).length"""

FOCUSED = """() => {
  const each = document.activeElement;
  if (each === document.body) return null;
  const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(each);
  const ring = outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
  const around = each.closest(".box");
  const seen = ring || (around && getComputedStyle(around).boxShadow !== "none");
  const box = each.getBoundingClientRect();
  const inside = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
  return {at: each.dataset.stop_at ?? "", seen: Boolean(seen && inside),
    html: each.outerHTML.slice(0, 120)};
}"""

WRITES = tuple(("write_file", {"path": f"{name}.txt", "content": name}) for name in "abc")


async def tab_to(page: Page, selector: str, *, limit: int = 80) -> None:
    """Presses Tab until this element has focus."""
    for _ in range(limit):
        if await page.evaluate("(found) => document.activeElement.matches(found)", selector):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


@pytest.mark.parametrize(
    "name",
    [
        "approval_edited",
        *(
            pytest.param(name, marks=pytest.mark.full)
            for name in ("done", "empty", "failed", "queue")
        ),
    ],
)
async def test_tab_reaches_everything_and_focus_is_seen(stage: Stage, name: str) -> None:
    page = await shown(stage, name)
    await page.evaluate("() => { document.activeElement.blur(); getSelection().empty(); }")
    count = await page.evaluate(REACHABLE)
    reached = set()
    for _ in range(2 * count):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(FOCUSED)
        if focused is None:
            continue
        assert focused["seen"], focused["html"]
        reached.add(focused["at"])
    missed = await page.evaluate(
        """(reached) => [...document.querySelectorAll("[data-stop_at]")]
          .filter((each) => !reached.includes(each.dataset.stop_at))
          .map((each) => each.outerHTML.slice(0, 120))""",
        list(reached),
    )
    assert missed == []


async def test_a_chat_is_started_read_and_deleted_by_keys_alone(stage: Stage) -> None:
    stage.play(says("An answer."), says("Another one."))
    page = await stage.open()
    await expect(page.locator(BOX)).to_be_focused()
    await page.keyboard.type("Hello")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/chats/*")
    await shows(page, "idle")
    await page.keyboard.press("/")
    await expect(page.locator(BOX)).to_be_focused()
    await page.keyboard.type("And")
    await tab_to(page, "#composer .send", limit=3)
    await page.keyboard.press("Space")
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.locator(BOX)).to_be_visible()
    await page.locator("body").press("Control+Home")
    await tab_to(page, ".row-chat .delete")
    await page.keyboard.press("Enter")
    await expect(page.locator("dialog")).to_be_visible()
    await expect(page.locator("[data-dialog-no]")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_be_hidden()
    await expect(page.locator(".row-chat .delete")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-dialog-no]")).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(page.locator("[data-dialog-yes]")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.wait_for_url(stage.server.address + "/")
    await tab_to(page, ".undo button")
    await page.keyboard.press("Space")
    await page.wait_for_url("**/chats/*")


async def test_questions_are_answered_by_keys_and_focus_is_not_lost(stage: Stage) -> None:
    stage.play(calls(*WRITES), [TextChunk("Now I go on"), asyncio.Event()])
    page = await stage.open(f"/chats/{await stage.asked('Write')}")
    card = page.locator(".ask-card")
    await expect(card).to_have_count(3)
    await tab_to(page, ".ask-card [value=allow]")
    await page.keyboard.press("Enter")
    await expect(card).to_have_count(2)
    # Focus is where the question was, on the line of its call, so that Tab goes on from there.
    line = page.locator(".call > details > summary")
    await expect(line.nth(0)).to_be_focused()
    await tab_to(page, ".ask-card [data-keep=deny] > summary", limit=12)
    await page.keyboard.press("Enter")
    # What is opened to be filled in takes the focus by itself.
    await expect(page.locator("[data-keep=deny][open] [name=reason]")).to_be_focused()
    await page.keyboard.type("no")
    await page.keyboard.press("Enter")
    await expect(card).to_have_count(1)
    await expect(line.nth(1)).to_be_focused()
    await tab_to(page, ".ask-card [value=allow]", limit=12)
    await page.keyboard.press("Space")
    await expect(card).to_have_count(0)
    await expect(page.locator(STATUS)).to_contain_text("Writing")
    await expect(line.nth(2)).to_be_focused()


@pytest.mark.full
@pytest.mark.parametrize("name", ["setup", "side_bar"])
async def test_escape_closes_a_sheet_and_gives_focus_back(stage: Stage, name: str) -> None:
    page = await shown(stage, name)
    sheet = page.locator(":popover-open")
    await expect(sheet).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(":popover-open")).to_have_count(0)
    target = {"setup": "setup", "side_bar": "side"}[name]
    opener = page.locator(f"button[popovertarget={target}]:focus")
    await expect(opener).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(sheet).to_be_visible()
    await tab_to(page, f"#{target} .close")
    await page.keyboard.press("Space")
    await expect(page.locator(":popover-open")).to_have_count(0)


@pytest.mark.full
async def test_the_log_says_that_it_is_busy_and_one_line_says_what_goes_on(stage: Stage) -> None:
    going = asyncio.Event()
    stage.play(calls(WRITES[0], text="I write."), [TextChunk("Written"), going, *says(".")])
    page = await stage.open(f"/chats/{await stage.asked('Write')}")
    log = page.locator("[role=log]")
    await expect(log).to_have_count(1)
    line = page.locator(".status-region[role=status] [data-state]")

    async def says_that(state: str, words: str, *, busy: str) -> None:
        await expect(line).to_have_count(1)
        await expect(line).to_have_attribute("data-state", state)
        await expect(line).to_contain_text(words)
        await expect(log).to_have_attribute("aria-busy", busy)

    await says_that("asking", "Needs your answer: write_file", busy="false")
    await page.get_by_role("button", name="Allow once").click()
    await says_that("working", "Writing", busy="true")
    await page.reload()
    await says_that("working", "Writing", busy="true")
    going.set()
    await says_that("idle", "Done", busy="false")
    await page.reload()
    await says_that("idle", "Done", busy="false")
    # Nothing else on the page speaks up by itself while there is nothing to say.
    others = page.locator("[role=status]:not(.status-region), [role=alert]")
    assert [text.strip() for text in await others.all_inner_texts()] == [""] * await others.count()
    assert await page.locator(f"{LOG}[aria-live]").count() == 0
