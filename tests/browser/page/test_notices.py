"""What every page says of a store that does not work lies on nothing, and is said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.run_states import cut_off
from tests.browser.page.test_recoveries import look
from web.chats.storage.loading import told_of
from web.harness.values.errors import StoreError
from web.harness.values.events import TextDelta

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.anyio

LIES_ON = """() => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  const [log, notices, dock] = [".log", ".toasts", ".dock"].map(box);
  return [log.bottom - notices.top, notices.bottom - dock.top].some((each) => each > 1);
}"""


@pytest.mark.full
async def test_the_notices_of_a_page_lie_on_nothing_and_say_a_thing_once(
    chromium: Browser,
) -> None:
    async with cut_off(chromium) as made:
        page, chat = made.page, made.server.chat_here(made.chat)
        made.happens(*(TextDelta(f"Line {number}.\n\n", "m") for number in range(60)))
        side_bar = made.server.chats.side_bar(chat.identity)
        for code, words in (("temporal_unreachable", "tcp"), ("store_unavailable", "It is away.")):
            for id, notice in told_of(StoreError(words, code=code)).items():
                side_bar.put(id, "undo", notice)
        notices = page.locator(".toasts .notice")
        await expect(notices).to_have_count(2)
        for each in await notices.all():
            await expect(each).to_be_visible()
        await page.wait_for_function(f"() => !({LIES_ON})()")
        await look(page, "notices")
        # The answer says that it waits for Temporal, the page does not say it as well.
        chat.transcript.stand_alone(made.run_id, "temporal")
        await expect(page.locator(".status")).to_contain_text("Waiting for Temporal")
        await expect(page.locator("#z-temporal")).to_be_hidden()
        await expect(page.locator("#z-store")).to_be_visible()
        for width in (1280, 380):
            await page.set_viewport_size({"width": width, "height": 900})
            await page.wait_for_function(f"() => !({LIES_ON})()")
        await look(page, "notices-waiting")
