"""The line under an answer that says what it used."""

from __future__ import annotations

import pytest

from tests.browser.page.stage import BOX, Stage, shows
from tests.support.scripted_provider import says

pytestmark = pytest.mark.anyio

DOTS = """() => [...document.querySelectorAll(".foot span")].map(span =>
  [getComputedStyle(span, "::before").content, getComputedStyle(span, "::after").content])"""


async def test_no_line_of_it_begins_with_a_dot_however_narrow(stage: Stage) -> None:
    stage.play(says("Done."))
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await page.set_viewport_size({"width": 380, "height": 800})
    await page.locator(BOX).fill("Do it.")
    await page.locator(BOX).press("Enter")
    await shows(page, "idle")
    await page.locator(".foot span").first.wait_for()
    before, after = zip(*await page.evaluate(DOTS), strict=True)
    assert set(before) == {"none"}
    assert after[-1] == "none"
    assert "·" in after[0]
