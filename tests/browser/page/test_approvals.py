"""The card of a long call, and the page that shows all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import Stage, picture, written
from tests.support.scripted_provider import calls, says

pytestmark = pytest.mark.anyio


@pytest.mark.full
async def test_all_of_a_long_file_is_seen_in_a_tab_of_its_own(stage: Stage, tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(1_500)) + "the bad one\n"
    stage.play(calls(("write_file", {"path": "long.txt", "content": content})), says("done"))
    chat = await stage.asked("Write much")
    page = await stage.open(f"/chats/{chat}")
    card = page.locator(".ask-card")
    # The log is as long as what it shows: the page that opens shows the question.
    await expect(card.get_by_role("button", name="Allow once")).to_be_in_viewport()
    async with stage.context.expect_page() as opened:
        await card.get_by_role("link", name="See all of it").click()
    whole = await opened.value
    await expect(whole.locator(".add").last).to_have_text("added: the bad one")
    await expect(whole.locator(".add")).to_have_count(1_501)
    await picture(whole, "approval-whole")
    await whole.get_by_role("button", name="Allow once").click()
    await expect(whole).to_have_url(f"{stage.server.address}/chats/{chat}")
    await expect(page.locator(".answer").last).to_have_text("done")
    assert written(tmp_path, "long.txt") == [content]
