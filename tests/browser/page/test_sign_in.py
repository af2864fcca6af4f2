"""A person signs in to a server: the button, the other tab, the way back, a refresh in between."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import picture, staged
from tests.browser.page.states import NARROW, WIDE
from tests.browser.page.test_servers import SLOW, server
from tests.support.authorization_server import realm
from tests.support.axe import serious

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio


async def look(page: Page, name: str) -> None:
    """Pictures of this moment, and whether it is open to everybody."""
    for size, scheme, words in ((WIDE, "light", "wide"), (NARROW, "dark", "narrow")):
        await page.set_viewport_size(size)  # type: ignore[arg-type]
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        setup = page.get_by_role("button", name="Setup")
        if await setup.is_visible():
            await setup.click()
            await expect(page.locator(".server .acts")).to_be_visible()
        await picture(page, f"{name}-{words}-{scheme}")
    assert await serious(page) == []
    await page.keyboard.press("Escape")
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]


@pytest.mark.full
@pytest.mark.parametrize("pictured", [False, pytest.param(True, marks=pytest.mark.full)])
async def test_a_sign_in_from_the_button_to_the_tools(
    chromium: Browser, tmp_path: Path, pictured: bool
) -> None:
    async with (
        realm() as made,
        staged(chromium, tmp_path, others=[made.issuer]) as stage,
    ):
        page = await stage.open(f"/chats/{await stage.server.new_chat()}")
        await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        await page.locator(".connect > summary").click()
        await page.get_by_label("Address or command line").fill(made.url)
        await page.locator("#server-name").fill("shop")
        await page.get_by_role("button", name="Connect", exact=True).click()
        card = server(page, "shop")
        await expect(card).to_contain_text("needs sign-in", timeout=SLOW)
        await card.get_by_role("button", name="Sign in shop").click()
        link = card.get_by_role("link", name="Continue at localhost:")
        await expect(link).to_be_visible(timeout=SLOW)
        await page.reload()
        await expect(card).to_contain_text("waiting for your sign-in")
        if pictured:
            await look(page, "sign-in-waiting")
        async with stage.context.expect_page() as opened:
            await link.click()
        other = await opened.value
        await expect(other.get_by_role("heading")).to_have_text("Signed in to shop", timeout=SLOW)
        if pictured:
            await look(other, "sign-in-done")
        await expect(card).to_contain_text("8 tools", timeout=SLOW)
        await expect(link).to_have_count(0)
        await card.get_by_role("button", name="Sign out shop").click()
        await expect(card).to_contain_text("You have signed out.")
        await expect(card.get_by_role("button", name="Sign in shop")).to_be_visible()
