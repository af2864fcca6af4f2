"""MCP servers from the page: connected, used, watched, switched off, and ended."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import Stage, picture, shows
from tests.support.axe import serious
from tests.support.environment import CHECKOUT
from tests.support.mcp_wire import pids_in, until_gone
from tests.support.scripted_provider import calls, says

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.anyio

SLOW = 40_000
"""Milliseconds that a program may take to start on a busy machine."""


def changing(folder: Path) -> str:
    """The command line of a server that notes its process ids in the folder."""
    server = str(CHECKOUT / "tests/support/changing_server.py")
    return shlex.join([sys.executable, "-S", "-E", server, str(folder), "--child"])


def server(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name, exact=True)


async def open_chat(stage: Stage) -> Page:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await page.set_viewport_size({"width": 1400, "height": 900})
    return page


async def propose(page: Page, target: str, **fields: str) -> Locator:
    """Types a command and sends the form; the card that asks whether to start it."""
    if await page.locator("#server-target").is_hidden():
        await page.locator(".connect > summary").click()
    await page.get_by_label("Address or command line").fill(target)
    for name, text in fields.items():
        await page.locator(f"#server-{name}").fill(text)
    await page.get_by_role("button", name="Connect", exact=True).click()
    card = page.locator(".proposal")
    await expect(card).to_be_visible()
    return card


@pytest.mark.full
async def test_the_demo_server_is_a_click_away_and_its_tool_asks_and_answers(stage: Stage) -> None:
    stage.play(calls(("demo__greet", {"name": "Ada"})), says("Greeted."))
    page = await stage.open()
    await page.set_viewport_size({"width": 1400, "height": 900})
    await page.get_by_role("button", name="Connect the demo server").click()
    await page.wait_for_url("**/chats/*")
    await expect(server(page, "demo")).to_contain_text("ready", timeout=SLOW)
    await page.locator(".suggestion", has_text="Say hello").click()
    card = page.get_by_role("region", name="Allow demo__greet?")
    await expect(page.locator(".call .hints").last).to_contain_text("read-only")
    await card.get_by_role("button", name="Allow in this chat").click()
    await shows(page, "idle")
    await expect(page.locator(".call .gist")).to_contain_text("Hello, Ada!")
    await expect(page.locator(".first")).to_be_hidden()
    await server(page, "demo").locator("summary", has_text="7 tools").click()
    greet = server(page, "demo").locator("li", has_text="demo__greet")
    await expect(greet).to_contain_text("allowed in this chat")
    await greet.get_by_role("button", name="Ask again").click()
    await expect(greet.get_by_text("allowed in this chat")).to_have_count(0)
    switch = greet.get_by_role("switch", name="Offer demo__greet to the model")
    await switch.press("Space")
    await expect(switch).to_have_attribute("aria-checked", "false")
    await expect(switch).to_be_focused()
    await page.locator(".connect > summary").click()
    assert await serious(page) == []
    await picture(page, "mcp-servers")


@pytest.mark.full
async def test_a_command_runs_only_after_it_was_shown_and_tells_why_it_failed(
    stage: Stage, tmp_path: Path
) -> None:
    page = await open_chat(stage)
    code = f"open({str(tmp_path / 'ran')!r}, 'w'); import sys; sys.exit('No key for the weather.')"
    command = shlex.join([sys.executable, "-c", code])
    card = await propose(page, command, name="weather", secrets="WEATHER_KEY=open-sesame")
    await expect(card).to_contain_text("runs a program on this computer")
    values = await card.locator("dd").all_text_contents()
    assert values == [sys.executable, "-c", code, str(Path.cwd()), "WEATHER_KEY"]
    assert await serious(page) == []
    await picture(page, "mcp-proposal")
    assert not (tmp_path / "ran").exists()
    # Typed secrets are gone from the page, and no answer brings them back.
    await expect(page.locator("#server-secrets")).to_have_value("")
    await card.get_by_role("button", name="Start this program").click()
    await expect(card).to_have_count(0)
    weather = server(page, "weather")
    await expect(weather).to_contain_text(
        "The command ended with exit code 1: No key for the weather.", timeout=SLOW
    )
    await weather.locator("summary", has_text="Printed by the program").click()
    await expect(weather.locator(".result")).to_have_text("No key for the weather.")
    assert (tmp_path / "ran").exists()
    await page.reload()
    await expect(weather).to_contain_text("not connected")
    assert "open-sesame" not in await page.content()
    await picture(page, "mcp-failed")


@pytest.mark.full
async def test_a_killed_server_comes_back_and_a_disconnected_one_is_gone(
    stage: Stage, tmp_path: Path
) -> None:
    page = await open_chat(stage)
    card = await propose(page, changing(tmp_path), name="moody")
    await card.get_by_role("button", name="Start this program").press("Enter")
    moody = server(page, "moody")
    await expect(moody).to_contain_text("ready", timeout=SLOW)
    await expect(moody.locator("summary", has_text="1 tool")).to_be_visible()
    first, child = await pids_in(tmp_path / "pids")
    (tmp_path / "pids").unlink()
    os.kill(first, 9)
    again = await pids_in(tmp_path / "pids")
    await expect(moody.locator(".state")).to_have_text("ready", timeout=SLOW)
    await until_gone([first, child])
    await moody.get_by_role("button", name="Disconnect moody").click()
    await expect(moody).to_have_count(0)
    await expect(page.locator(".servers .none")).to_be_visible()
    await until_gone(again)


@pytest.mark.full
async def test_a_form_that_cannot_be_read_keeps_what_was_typed(stage: Stage) -> None:
    stage.allow_refusals()
    page = await open_chat(stage)
    await page.locator(".connect > summary").click()
    await page.get_by_label("Address or command line").fill("ftp://example.com")
    await page.get_by_label("Name (may be empty)").fill("files")
    await page.get_by_role("button", name="Connect", exact=True).click()
    await expect(page.locator(".connect .error")).to_contain_text("ftp:// cannot be connected to")
    await expect(page.get_by_label("Address or command line")).to_have_value("ftp://example.com")
    await expect(page.get_by_label("Name (may be empty)")).to_have_value("files")


@pytest.mark.full
async def test_without_script_a_command_is_shown_started_and_disconnected(
    plain: Stage, tmp_path: Path
) -> None:
    page = await plain.open(f"/chats/{await plain.server.new_chat()}", live=False)
    await page.set_viewport_size({"width": 1400, "height": 900})
    card = await propose(page, changing(tmp_path), name="moody")
    await card.get_by_role("button", name="Start this program").click()
    pids = await pids_in(tmp_path / "pids")
    moody = server(page, "moody")
    await expect(moody).to_be_visible()
    await moody.get_by_role("button", name="moody").click()
    await expect(moody).to_have_count(0)
    await until_gone(pids)
