"""Two people at one browser, one after the other: neither sees or sends what is the other's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, picture, watched
from tests.support.app_server import app_server
from tests.support.scripted_provider import ScriptedProvider, says

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

ANN, BOB = "ann-has-this-long-token", "bob-has-another-long-token"
NAMES = ".side .row-chat .open > span:first-child"


@pytest.fixture
async def stage(chromium: Browser, tmp_path: Path) -> AsyncIterator[Stage]:
    tokens, model = tmp_path / "tokens", ScriptedProvider(says("ok"))
    tokens.write_text(f"{ANN} ann\n{BOB} bob\n")
    tokens.chmod(0o600)
    settings = {"identity": f"token:{tokens}"}
    async with (
        app_server(tmp_path / "data", model, settings=settings) as server,
        watched(chromium, server.address) as (context, complaints),
    ):
        complaints.allow(r"Failed to load resource: the server responded with a status of 401")
        complaints.allow(r"Response Status Error Code 401 from /chats/\w+/messages")
        # A page keeps what was typed a moment later, when the next person may have signed in: to
        # them there is no such chat.
        not_found = "Failed to load resource: the server responded with a status of 404"
        complaints.allow(not_found + r" .*/draft\)")
        server.client.headers["authorization"] = f"Bearer {ANN}"
        yield Stage(server, model, context, complaints)


async def sign_in(page: Page, token: str) -> None:
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Sign in").click()


async def test_what_one_person_sees_and_types_is_not_there_for_the_next(stage: Stage) -> None:
    chat = await stage.answered("About secrets")
    address = f"{stage.server.address}/chats/{chat}"
    page = await stage.context.new_page()
    await page.goto(address)
    await sign_in(page, "not-a-token-that-is-known")
    await expect(page.get_by_role("alert")).to_contain_text("not known here")
    await picture(page, "sign_in_refused")
    await page.goto(address)
    await sign_in(page, ANN)
    await page.wait_for_url(address)
    await expect(page.locator(NAMES)).to_have_text(["About secrets"])
    await expect(page.locator(".who bdi")).to_have_text("ann")
    await picture(page, "signed_in")
    await page.get_by_role("link", name="New chat").first.click()
    await page.fill(BOX, "Only ann may read this")
    other = await stage.open(f"/chats/{chat}", live=False)
    await expect(other.locator(NAMES)).to_have_text(["About secrets"])

    async with page.expect_navigation():
        await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    # The tab that is left open says so by itself.
    await expect(other.locator("[data-banner]")).to_contain_text("signed out")
    await expect(other.locator("[data-banner]")).to_be_visible()
    await picture(other, "signed_out_elsewhere")
    await page.go_back()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await expect(page.locator(BOX)).to_have_count(0)

    await sign_in(page, BOB)
    await expect(page.locator(".who bdi")).to_have_text("bob")
    await expect(page.locator(NAMES)).to_have_count(0)
    await expect(page.locator(BOX)).to_have_value("")
    # A message from the tab that ann left goes nowhere.
    await other.fill(BOX, "For ann's chat")
    await other.press(BOX, "Enter")
    await expect(other.locator("[data-composer] [data-error]")).to_contain_text(
        "not known who asks"
    )
    await expect(other.locator(BOX)).to_have_value("For ann's chat")
    assert len((await stage.server.chat(chat))["messages"]) == 2


async def test_the_next_person_gets_live_what_is_new_of_their_own_alone(stage: Stage) -> None:
    page = await stage.context.new_page()
    await page.goto(stage.server.address)
    await sign_in(page, BOB)
    await expect(page.locator(".who bdi")).to_have_text("bob")
    await stage.answered("Of ann")
    stage.server.client.headers["authorization"] = f"Bearer {BOB}"
    await stage.answered("Of bob")
    await expect(page.locator(NAMES)).to_have_text(["Of bob"])
