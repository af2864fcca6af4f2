"""Sub-agents at work inside their call, and plans as a card that changes in its place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.agent_states import delegates, plan, plans, saves, sub_agent
from tests.browser.page.stage import STATUS, Stage, shows, written
from tests.support.scripted_provider import calls, says
from web.harness.values.model import ModelDone, TextChunk

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio


async def outer(page: Page) -> list[str]:
    """The calls of the agent itself, by name."""
    return await page.locator(".call > details > summary b").all_inner_texts()


async def test_a_sub_agent_works_inside_its_call_and_its_question_is_answered_there(
    stage: Stage, tmp_path: Path
) -> None:
    go_on = asyncio.Event()
    stage.play(
        delegates(),
        saves(),
        [TextChunk("It is "), go_on, TextChunk("42.5."), ModelDone("end_turn")],
        says("All is done."),
    )
    page = await stage.open(f"/chats/{await stage.asked('Add up my invoices')}")
    nested = page.locator(".nested")
    card = nested.locator(".ask-card")
    await expect(card.get_by_role("heading")).to_have_text("Allow write_file to write sum.txt?")
    await expect(page.locator(STATUS)).to_contain_text("Needs your answer: write_file")
    await expect(nested.locator(":scope > summary")).to_contain_text("needs your answer")
    await card.get_by_role("button", name="Allow once").click()
    # Live, and inside: the text of the sub-agent is no answer of the chat.
    await expect(nested.locator(".answer").last).to_have_text("It is")
    await expect(page.locator(STATUS)).to_contain_text("delegate: Writing")
    assert written(tmp_path, "sum.txt") == ["42.5\n"]
    go_on.set()
    await expect(page.locator(".answer").last).to_have_text("All is done.")
    await expect(nested).not_to_have_attribute("open", "")
    await expect(nested.locator(":scope > summary")).to_have_text("What the sub-agent did")
    await shows(page, "idle")
    # After a reload the same lies in the same place.
    await page.reload()
    await page.get_by_text("What the sub-agent did").click()
    await expect(nested.locator(".answer")).to_have_text(["Now I save it.", "It is 42.5."])
    await expect(nested.locator(".foot")).to_contain_text("tokens in")
    assert await outer(page) == ["delegate", "write_file"]


@pytest.mark.full
async def test_what_a_person_closed_stays_closed_while_the_sub_agent_goes_on(
    stage: Stage,
) -> None:
    go_on, end = asyncio.Event(), asyncio.Event()
    stage.play(
        delegates(),
        [TextChunk("First."), go_on, *calls(("calculate", {"expression": "1+1"}))],
        [TextChunk("Second."), end, ModelDone("end_turn")],
        says("Done."),
    )
    page = await stage.open(f"/chats/{await stage.asked('Go')}")
    nested = page.locator(".nested")
    await expect(nested.locator(".answer")).to_have_text("First.")
    await nested.locator(":scope > summary").click()
    go_on.set()
    await expect(nested.locator(".answer")).to_have_text(["First.", "Second."])
    await expect(nested.locator(".answer").last).to_be_hidden()
    end.set()
    await expect(page.locator(".answer").last).to_have_text("Done.")
    await expect(nested.locator(".answer").last).to_be_hidden()


@pytest.mark.full
async def test_stop_ends_the_sub_agent_and_what_it_wrote_is_kept(stage: Stage) -> None:
    stage.play(delegates(), [TextChunk("I have begun"), asyncio.Event()])
    page = await stage.open(f"/chats/{await stage.asked('Go')}")
    await expect(page.locator(".nested .answer")).to_have_text("I have begun")
    await page.get_by_role("button", name="Stop").click()
    await shows(page, "idle")
    await expect(page.locator(".call > details > summary small").first).to_contain_text("stopped")
    await page.get_by_text("What the sub-agent did").click()
    await expect(page.locator(".nested .answer")).to_have_text("I have begun")
    assert stage.model.open == 0


@pytest.mark.full
async def test_a_question_of_a_sub_agent_survives_a_reload_and_can_be_denied(stage: Stage) -> None:
    page = await sub_agent(stage)
    stage.play(says("I could not save it."), says("It was not saved."))
    await page.reload()
    card = page.locator(".nested .ask-card")
    await card.locator("summary", has_text="Deny").click()
    await card.get_by_role("button", name="Deny").click()
    await expect(page.locator(".answer").last).to_have_text("It was not saved.")
    await page.get_by_text("What the sub-agent did").click()
    await expect(page.locator(".nested .call[data-status='denied']")).to_have_count(1)


@pytest.mark.full
async def test_a_plan_is_one_card_that_changes_in_its_place(stage: Stage) -> None:
    page = await plan(stage)
    card = page.locator(".plan")
    await expect(card.locator("h2")).to_have_text("Plan 1 of 3 done")
    await expect(card.locator("li")).to_contain_text(["Done:", "Under way:", "Open:"])
    assert await outer(page) == []
    place = await card.evaluate("element => element.previousElementSibling.className")
    await page.get_by_role("button", name="Stop").click()
    await shows(page, "idle")
    await expect(card.locator("li").nth(1)).to_contain_text("Begun:")
    assert await card.evaluate("element => element.previousElementSibling.className") == place


@pytest.mark.full
async def test_each_update_shows_at_once_and_the_calls_take_no_room(stage: Stage) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    stage.play(
        [TextChunk("One. "), *plans("in_progress", "pending", "pending")],
        [first, *plans("completed", "in_progress", "pending")],
        [second, *plans("completed", "completed", "completed")],
        says("All done."),
    )
    page = await stage.open(f"/chats/{await stage.asked('Go')}")
    heading = page.locator(".plan h2")
    await expect(heading).to_have_text("Plan 0 of 3 done")
    first.set()
    await expect(heading).to_have_text("Plan 1 of 3 done")
    second.set()
    await expect(heading).to_have_text("Plan 3 of 3 done")
    await expect(page.locator(".answer").last).to_have_text("All done.")
    await expect(page.locator(".plan")).to_have_count(1)
    assert await outer(page) == []


@pytest.mark.full
async def test_a_plan_with_markup_in_it_is_text(stage: Stage) -> None:
    steps = [{"text": "<img src=x onerror=alert(1)> **bold**", "status": "pending"}]
    stage.play(calls(("update_plan", {"steps": steps})), says("ok"))
    page = await stage.open(f"/chats/{await stage.asked('Go')}")
    await expect(page.locator(".plan li")).to_contain_text("<img src=x onerror=alert(1)> **bold**")
    await expect(page.locator(".plan img")).to_have_count(0)
