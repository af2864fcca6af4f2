"""A person saves a chat, drops it in again, and changes how it is answered."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, picture, shows
from tests.harness.snapshots.kept import SAMPLES
from tests.support.axe import serious
from tests.support.scripted_provider import says
from web.harness.values.model import TextChunk

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 380, "height": 800}

DROP = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, { type: "application/json" }));
  for (const type of ["dragenter", "dragover", "drop"]) {
    const given = { bubbles: true, cancelable: true, dataTransfer: transfer };
    document.querySelector(".log").dispatchEvent(new DragEvent(type, given));
  }
}"""


async def drop(page: Page, text: str, name: str = "chat.json") -> None:
    await page.evaluate(DROP, [name, text])


async def saved(page: Page, folder: Path) -> str:
    """The snapshot that the page downloads."""
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Save a snapshot").click()
    await (await download.value).save_as(folder / "saved.json")
    return (folder / "saved.json").read_text()


async def test_a_chat_is_saved_and_dropped_in_again(stage: Stage, tmp_path: Path) -> None:
    chat = await stage.answered("Why is the sky blue?", *says("Because of *Rayleigh*."))
    page = await stage.open(f"/chats/{chat}")
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await shows(page, "idle")
    text = await saved(page, tmp_path)
    assert json.loads(text)["session_id"] == chat
    await drop(page, text)
    await page.wait_for_url(lambda url: "/chats/" in url and chat not in url)
    await expect(page.get_by_text("Loaded from a snapshot.")).to_be_visible()
    await expect(page.locator(".answer em")).to_have_text("Rayleigh")
    stage.play(says("Since the sun is low."))
    await page.fill(BOX, "And red in the evening?")
    await page.press(BOX, "Enter")
    await expect(page.get_by_text("Since the sun is low.")).to_be_visible()
    assert stage.model.requests[-1].messages[0].text == "Why is the sky blue?"


@pytest.mark.full
async def test_a_snapshot_dropped_on_a_new_chat_opens_and_is_shown_whole(stage: Stage) -> None:
    page = await stage.open()
    await drop(page, (SAMPLES / "harnessx-0.3.0.json").read_text())
    await page.wait_for_url(re.compile("/chats/"))
    await expect(page.get_by_text("The invoice total is 42.")).to_be_visible()
    await expect(page.locator(".call summary")).to_contain_text("add")
    await page.reload()
    await expect(page.get_by_text("The invoice total is 42.")).to_be_visible()
    await picture(page, "snapshot-loaded")


@pytest.mark.full
async def test_a_broken_snapshot_is_refused_where_it_is_seen_and_what_was_typed_stays(
    stage: Stage,
) -> None:
    stage.allow_refusals()
    page = await stage.open()
    await page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    await page.fill(BOX, "half a thought")
    sample = (SAMPLES / "v1.json").read_text()
    await drop(page, sample.replace("invoice assistant", "pirate"))
    alert = page.locator("[data-snapshot-form] [role=alert]")
    await expect(alert).to_contain_text("It was changed after it was saved")
    await expect(alert).to_be_in_viewport()
    await picture(page, "snapshot-refused-narrow")
    assert await serious(page) == []
    await expect(page.locator(BOX)).to_have_value("half a thought")
    assert (await stage.server.client.get("/api/chats")).json() == []


async def test_any_other_json_that_is_dropped_is_attached(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.answered('Hello')}")
    await drop(page, '{"format": "something else"}')
    await expect(page.locator(".attachment")).to_contain_text("chat.json")


@pytest.mark.full
async def test_a_snapshot_is_chosen_by_the_form(stage: Stage) -> None:
    page = await stage.open()
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await page.set_input_files("#snapshot-file", SAMPLES / "v1.json")
    await page.get_by_role("button", name="Load", exact=True).click()
    await page.wait_for_url(re.compile("/chats/"))
    await expect(page.get_by_text("What is the total of 40 and 2?").first).to_be_visible()


@pytest.mark.full
async def test_instructions_and_limits_hold_from_the_next_message_on(stage: Stage) -> None:
    stage.allow_refusals()
    page = await stage.open(f"/chats/{await stage.answered('Hello', *says('Hi'))}")
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    other = await stage.open(page.url.removeprefix(stage.server.address), live=False)
    await page.get_by_text("Instructions and limits").click()
    await page.get_by_label("Instructions to the model").fill("Answer in verse.")
    await page.get_by_label("Tokens of an answer").fill("none")
    await page.get_by_role("button", name="Save", exact=True).click()
    alert = page.locator(".settings [role=alert]")
    await expect(alert).to_contain_text("Tokens of an answer: 'none' is not a whole number.")
    await expect(page.get_by_label("Instructions to the model")).to_have_value("Answer in verse.")
    await page.get_by_label("Tokens of an answer").fill("77")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    await expect(other.locator(".settings summary .chip")).to_have_text("own")
    stage.play(says("Roses are red."))
    await page.fill(BOX, "And now?")
    await page.press(BOX, "Enter")
    await expect(page.get_by_text("Roses are red.")).to_be_visible()
    request = stage.model.requests[-1]
    assert request.max_tokens == 77
    assert request.system_prompt.startswith("Answer in verse.")


@pytest.mark.full
async def test_what_a_chat_used_is_counted_live_in_every_tab(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.answered('Hello', *says('Hi'))}")
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    other = await stage.open(page.url.removeprefix(stage.server.address), live=False)
    await other.set_viewport_size(WIDE)  # type: ignore[arg-type]
    spent = "#chat-spent"
    await expect(page.locator(spent)).to_contain_text(re.compile(r"answered\s*1"))
    stage.play(says("Again"))
    await page.fill(BOX, "Once more")
    await page.press(BOX, "Enter")
    for tab in (page, other):
        await expect(tab.locator(spent)).to_contain_text(re.compile(r"answered\s*2"))
        await expect(tab.locator(spent)).to_contain_text(re.compile(r"Tokens in\s*20"))
        await expect(tab.locator(spent)).to_contain_text("not known")


@pytest.mark.full
async def test_without_script_a_snapshot_is_saved_and_loaded(plain: Stage, tmp_path: Path) -> None:
    chat = await plain.answered("Why is the sky blue?", *says("Because."))
    page = await plain.open(f"/chats/{chat}", live=False)
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    (tmp_path / "again.json").write_text(await saved(page, tmp_path))
    await page.goto(plain.server.address)
    await page.set_input_files("#snapshot-file", tmp_path / "again.json")
    await page.get_by_role("button", name="Load", exact=True).click()
    await page.wait_for_url(re.compile("/chats/"))
    await expect(page.get_by_text("Because.")).to_be_visible()


@pytest.mark.full
async def test_a_snapshot_is_offered_when_no_answer_is_written(stage: Stage) -> None:
    go = asyncio.Event()
    stage.play([TextChunk("Because"), go, *says(" of Rayleigh.")])
    page = await stage.open(f"/chats/{await stage.asked('Why is the sky blue?')}")
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await shows(page, "working")
    link = page.get_by_role("link", name="Save a snapshot")
    await expect(page.get_by_text("It can be saved when the answer has ended.")).to_be_visible()
    await expect(link).to_be_hidden()
    go.set()
    await shows(page, "idle")
    await expect(link).to_be_visible()
