"""States of the page in which an agent has a plan, and sub-agents at work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.browser.page.stage import Stage
from tests.support.scripted_provider import Step, calls, says
from web.harness.values.model import TextChunk

if TYPE_CHECKING:
    from playwright.async_api import Page

STEPS = [
    {"text": "Read the invoices of March", "status": "completed"},
    {"text": "Have a sub-agent add them up and save the sum", "status": "in_progress"},
    {
        "text": "Write to the office what came of it, and ask for what is missing",
        "status": "pending",
    },
]


def plans(*statuses: str) -> list[Step]:
    """An answer that writes the plan, with these statuses in place of its own."""
    steps = [
        {**step, "status": status or step["status"]}
        for step, status in zip(STEPS, statuses or ("",) * len(STEPS), strict=True)
    ]
    return calls(("update_plan", {"steps": steps}))


def delegates() -> list[Step]:
    return calls(("delegate", {"task": "Add up 12.5 and 30, and save the sum to sum.txt"}))


def saves() -> list[Step]:
    write = ("write_file", {"path": "sum.txt", "content": "42.5\n"})
    return calls(write, text="Now I **save** it.")


async def plan(stage: Stage) -> Page:
    stage.play(plans(), [TextChunk("I add them up."), asyncio.Event()])
    page = await stage.open(f"/chats/{await stage.asked('Add up my invoices')}")
    await expect(page.locator(".plan li")).to_have_count(3)
    await expect(page.locator(".answer").last).to_contain_text("I add them up.")
    return page


async def sub_agent(stage: Stage) -> Page:
    """A sub-agent has worked and asks."""
    stage.play(plans(), delegates(), calls(("calculate", {"expression": "12.5+30"})), saves())
    page = await stage.open(f"/chats/{await stage.asked('Add up my invoices')}")
    await expect(page.locator(".nested .ask-card")).to_be_visible()
    return page


async def sub_agent_done(stage: Stage) -> Page:
    stage.play(
        *(plans(), delegates(), calls(("calculate", {"expression": "12.5+30"}))),
        *(says("It is **42.5**."), plans("completed", "completed", "completed")),
        says("The invoices of March come to **42.5**."),
    )
    page = await stage.open(f"/chats/{await stage.asked('Add up my invoices')}")
    await expect(page.locator(".answer").last).to_contain_text("come to")
    await page.get_by_text("What the sub-agent did").click()
    await expect(page.locator(".nested .foot")).to_be_visible()
    return page
