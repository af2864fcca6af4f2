"""The first page: what it costs, and when one can type. And that other sites are kept out."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage
from tests.support.scripted_provider import says
from tests.support.serving import serving

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.anyio

MOST_REQUESTS, MOST_BYTES = 6, 60_000
USUAL_SECONDS, MOST_SECONDS = 0.3, 2.0
"""Promised on a machine that does nothing else, and what a test may take on a busy one."""


class Wire:
    """What a page asked for, but its stream, and how many bytes came for it, heads included."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self.bytes: dict[str, int] = {}

    async def watch(self, context: BrowserContext, page: Page) -> None:
        client = await context.new_cdp_session(page)
        client.on("Network.requestWillBeSent", self._asked)
        client.on("Network.loadingFinished", self._came)
        await client.send("Network.enable")

    @property
    def counted(self) -> dict[str, int]:
        """Bytes by address."""
        return {address: self.bytes.get(id, 0) for id, address in self.addresses.items()}

    def _asked(self, event: dict[str, Any]) -> None:
        address = event["request"]["url"]
        if not address.startswith("data:") and "/stream?" not in address:
            self.addresses[event["requestId"]] = address

    def _came(self, event: dict[str, Any]) -> None:
        self.bytes[event["requestId"]] = event["encodedDataLength"]


async def test_the_first_page_is_light_and_quick(
    chromium: Browser, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    taken: list[float] = []
    with serving("--data-dir", str(tmp_path), "--no-open") as server:
        for _ in range(3):
            # A context of its own has an empty cache.
            context = await chromium.new_context()
            page, wire = await context.new_page(), Wire()
            await wire.watch(context, page)
            async with page.expect_request(lambda request: "/stream?" in request.url):
                await page.goto(server.address, wait_until="load")
            await expect(page.locator(BOX)).to_be_focused()
            # The script is there as soon as its modules have run, which `load` waits for.
            taken.append(
                await page.evaluate(
                    """() => {
                      const [navigation] = performance.getEntriesByType("navigation");
                      return navigation.domContentLoadedEventEnd / 1000;
                    }"""
                )
            )
            await page.keyboard.type("x")
            assert await page.input_value(BOX) == "x"
            await context.close()
            if taken[-1] < MOST_SECONDS:
                break
    assert len(wire.counted) <= MOST_REQUESTS, wire.counted
    assert sum(wire.counted.values()) < MOST_BYTES, wire.counted
    seconds = statistics.median(taken)
    record_property("first_page", {"bytes": wire.counted, "seconds": taken})
    print(f"first page: {len(wire.counted)} requests, {sum(wire.counted.values()):,} bytes,")
    print(f"usable after {seconds:.3f} s (promised {USUAL_SECONDS} s); {wire.counted}")
    # One of them is enough, since others may keep this machine busy for some of the time.
    assert min(taken) < MOST_SECONDS


async def test_a_page_of_another_site_can_do_nothing_here(stage: Stage) -> None:
    """A smoke test; tests/ui has every case."""
    stage.complaints.allow("CORS policy|Failed to load resource")
    chat = await stage.answered("Mine", *says("private words"))
    page = await stage.context.new_page()
    await page.goto("about:blank")
    outcome = await page.evaluate(
        """async ([there, chat]) => {
          const body = new URLSearchParams({text: "forged"});
          const answers = [];
          for (const path of ["/chats", `/chats/${chat}/messages`, `/chats/${chat}/delete`]) {
            for (const mode of ["cors", "no-cors"]) {
              const answer = fetch(there + path, {method: "POST", body, mode});
              answers.push(await answer.then(({type}) => type, () => "refused"));
            }
          }
          const read = fetch(`${there}/api/chats/${chat}`);
          return [...answers, await read.then((answer) => answer.text(), () => "refused")];
        }""",
        [stage.server.address, chat],
    )
    assert outcome == ["refused"] * 7
    chats = (await stage.server.client.get("/api/chats")).json()
    assert [each["id"] for each in chats] == [chat]
    assert len((await stage.server.chat(chat))["messages"]) == 2
