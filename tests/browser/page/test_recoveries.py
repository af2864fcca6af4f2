"""A run that was cut off, on the page: said once, in every tab, by keyboard, with focus kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.async_api import expect

from tests.browser.page.run_states import cut_off, written_down
from tests.browser.page.stage import STATUS, picture, shows
from tests.support.axe import serious
from web.harness.values.events import AttemptReset, TextDelta

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio


VIEWS: tuple[tuple[str, int, Literal["light", "dark"]], ...] = (
    ("wide", 1280, "light"),
    ("wide", 1280, "dark"),
    ("narrow", 380, "light"),
    ("narrow", 380, "dark"),
)


async def look(page: Page, name: str) -> None:
    """Nothing serious in each size and colour, and a picture of it."""
    for width, pixels, scheme in VIEWS:
        await page.set_viewport_size({"width": pixels, "height": 900})
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await picture(page, f"{name}-{width}-{scheme}")
        assert await serious(page) == [], f"{name}, {width}, {scheme}"
        # Nothing lies beyond the edge.
        assert await page.evaluate("document.documentElement.scrollWidth") <= pixels


@pytest.mark.full
async def test_each_card_is_open_to_everybody(chromium: Browser) -> None:
    async with cut_off(chromium) as made:
        page, transcript = made.page, made.server.chat_here(made.chat).transcript
        made.asks()
        await page.locator("summary", has_text="It ran").click()
        await look(page, "recovery")
        transcript.halt(made.run_id, "stopped")
        await expect(page.get_by_role("button", name="Go on", exact=True)).to_be_visible()
        await look(page, "halted")
        transcript.halt(made.run_id, "paused")
        await expect(page.get_by_text("This answer is paused")).to_be_visible()
        await look(page, "paused")


async def test_what_a_call_gave_is_typed_by_keyboard_and_other_tabs_follow(
    chromium: Browser,
) -> None:
    async with cut_off(chromium) as made:
        page = made.page
        made.asks()
        card = page.locator(".ask-card")
        await expect(card.get_by_role("heading")).to_have_text("We do not know if transfer ran")
        await expect(page.locator(STATUS)).to_contain_text("Needs your answer: transfer")
        await expect(card).to_contain_text("125.50 EUR")
        other = await made.context.new_page()
        await other.goto(page.url)
        await expect(other.locator(".ask-card")).to_be_visible()
        await page.bring_to_front()
        ran = card.locator("summary", has_text="It ran")
        await ran.focus()
        await page.keyboard.press("Enter")
        await expect(card.get_by_label("What it gave")).to_be_focused()
        await page.keyboard.type("paid, receipt 7")
        await expect(card.get_by_label("What it gave")).to_have_value("paid, receipt 7")
        # What the run tells meanwhile takes neither the text nor the focus.
        made.happens(TextDelta("By the way. ", f"{made.run_id}-1"))
        await expect(page.locator(".answer").last).to_contain_text("By the way.")
        await page.keyboard.type("8")
        await expect(card.get_by_label("What it gave")).to_have_value("paid, receipt 78")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        for tab in (page, other):
            await expect(tab.locator(".ask-card")).to_have_count(0)
            line = tab.locator(".call > details > summary", has_text="transfer")
            await expect(line).to_contain_text("receipt 78")
        await shows(page, "working")


@pytest.mark.full
async def test_a_call_that_runs_again_says_so_and_giving_up_ends_the_run(chromium: Browser) -> None:
    async with cut_off(chromium) as made:
        page = made.page
        made.asks()
        await page.get_by_role("button", name="Run it again").click()
        await expect(page.locator(".call", has_text="transfer")).to_have_attribute(
            "data-status", "running"
        )
        await page.locator(".call > details > summary", has_text="transfer").click()
        await expect(page.get_by_text("You had it run again.")).to_be_visible()
    async with cut_off(chromium) as made:
        page = made.page
        made.asks()
        await page.get_by_role("button", name="Give up").click()
        await shows(page, "idle")
        await expect(page.get_by_text("Given up, as it is not known")).to_be_visible()
        await expect(page.locator(".call", has_text="not known if it ran")).to_have_count(1)


@pytest.mark.full
async def test_an_answer_that_comes_too_late_is_told_at_the_card(chromium: Browser) -> None:
    async with cut_off(chromium) as made:
        page = made.page
        made.asks()
        await expect(page.locator(".ask-card")).to_be_visible()
        # The other one answers while this tab hears nothing.
        await page.evaluate(
            "document.querySelector('.ask-card').closest('[data-part]').dataset.version = 1e9"
        )
        path = f"/api/runs/{made.run_id}/recoveries/{made.key}"
        await made.server.client.post(path, json={"how": "retry"})
        await page.get_by_role("button", name="Give up").click()
        await expect(page.locator(".ask-card [role=alert]")).to_contain_text("answered already")


@pytest.mark.full
async def test_a_run_that_was_cut_off_goes_on_when_a_person_says_so(chromium: Browser) -> None:
    async with cut_off(chromium) as made:
        page = made.page
        made.server.chat_here(made.chat).transcript.halt(made.run_id, "stopped")
        card = page.locator(".ask-card")
        await expect(card).to_contain_text("The server was stopped while this answer was written")
        await shows(page, "asking")
        await card.get_by_role("button", name="Go on").click()
        await expect(card).to_have_count(0)
        await expect(page.get_by_text("the answer goes on below")).to_be_visible()
        # What the dead attempt showed is taken back, and comes once.
        made.happens(
            AttemptReset(f"{made.run_id}-1", 1, "The server was stopped."),
            TextDelta("Anew: I pay.", f"{made.run_id}-1"),
        )
        await expect(page.locator(".answer")).to_have_text(["Anew: I pay."])
        await expect(page.locator(".call")).to_have_count(0)


@pytest.mark.full
async def test_a_run_is_paused_goes_on_and_is_left(chromium: Browser) -> None:
    async with cut_off(chromium) as made:
        page = made.page
        await page.get_by_role("button", name="Pause").click()
        await expect(page.locator(".ask-card")).to_contain_text("This answer is paused")
        await shows(page, "paused")
        await page.get_by_role("button", name="Go on").click()
        await shows(page, "working")
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_role("button", name="Leave it").click()
        await shows(page, "failed")
        await expect(page.locator(".failure")).to_contain_text("incomplete")


@pytest.mark.full
async def test_without_script_all_of_it_works_too(chromium: Browser) -> None:
    async with cut_off(chromium, java_script_enabled=False) as made:
        page = made.page
        made.asks()
        await page.reload()
        await page.locator("summary", has_text="It ran").click()
        await page.get_by_label("What it gave").fill("paid")
        await page.get_by_role("button", name="It ran, go on with this").click()
        await expect(page.locator(".ask-card")).to_have_count(0)
        await expect(page.locator(".call", has_text="transfer")).to_contain_text("paid")
        made.server.chat_here(made.chat).transcript.halt(made.run_id, "stopped")
        await page.reload()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_text("the answer goes on below")).to_be_visible()


@pytest.mark.full
async def test_steps_are_looked_at_exported_dropped_in_again_and_gone_on_from(
    chromium: Browser, tmp_path: Path
) -> None:
    async with written_down(chromium) as (server, page):
        await page.locator(".foot a", has_text="Steps").click()
        await expect(page.locator(".step")).to_have_count(13)
        await expect(page.locator("#step-10")).to_contain_text("You allowed it: transfer")
        await look(page, "steps")
        async with page.expect_download() as download:
            await page.get_by_text("Export as a file").click()
        exported = tmp_path / "run.json"
        await (await download.value).save_as(exported)
        await page.locator("#step-3").get_by_role("button", name="Start a new chat").click()
        await expect(page.locator(".head")).to_contain_text("Step 3 of Towns with trams")
        await expect(page.locator(".log")).to_contain_text("Begun from step 3")
        # Dropped in like a snapshot, it is no chat: it is looked at.
        drop = """([name, text]) => {
          const data = new DataTransfer();
          data.items.add(new File([text], name, { type: "application/json" }));
          const init = { dataTransfer: data, bubbles: true, cancelable: true };
          document.body.dispatchEvent(new DragEvent("dragover", init));
          document.body.dispatchEvent(new DragEvent("drop", init));
        }"""
        await page.evaluate(drop, ["run.json", exported.read_text()])
        await page.wait_for_url("**/opened-runs/*")
        await expect(page.locator(".step")).to_have_count(13)
        await expect(page.locator("form")).to_have_count(0)
        assert len((await server.client.get("/api/chats")).json()) == 2
