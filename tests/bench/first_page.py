"""What a browser waits for: the first page after the command, and a page in Chromium."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.bench.processes import Running
from tests.bench.wire import fetch
from tests.support.browser import launched

if TYPE_CHECKING:
    from playwright.async_api import Browser

SETTLE_SECONDS = 1.0
"""For requests that a page makes after it is usable."""


_SCRIPTS_RAN = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
"""When the page's scripts, which are deferred, have run: milliseconds after the navigation."""


@dataclass(frozen=True, slots=True)
class FirstPage:
    """`requests` and `kilobytes` (over the wire, headers too) of a page with an empty cache.

    `usable_ms` is from the navigation until the message box is there and the page's scripts ran.
    """

    requests: int
    kilobytes: float
    usable_ms: float


async def seconds_to_first_page(server: Running) -> float:
    """From the command to the first page, whole."""
    began = time.monotonic()
    await fetch(server.address, "GET", "/")
    return server.start_seconds + time.monotonic() - began


async def first_page(address: str, repeats: int) -> FirstPage:
    """Loads `/` with an empty cache some times; gives the most it asked for, the median time."""
    async with launched() as browser:
        # The first visit pays for the start of the browser.
        visits = [await _visit(browser, address) for _ in range(repeats + 1)][1:]
    return FirstPage(
        max(visit.requests for visit in visits),
        max(visit.kilobytes for visit in visits),
        median(visit.usable_ms for visit in visits),
    )


async def _visit(browser: Browser, address: str) -> FirstPage:
    context = await browser.new_context()
    page = await context.new_page()
    devtools = await context.new_cdp_session(page)
    await devtools.send("Network.enable")
    requests: list[str] = []
    sizes: list[float] = []

    def asked(event: dict[str, Any]) -> None:
        if event["request"]["url"].startswith("http"):
            requests.append(event["request"]["url"])

    devtools.on("Network.requestWillBeSent", asked)
    devtools.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    await page.goto(address, wait_until="load")
    await page.locator("#message").fill("hello")
    usable = await page.evaluate(_SCRIPTS_RAN)
    await asyncio.sleep(SETTLE_SECONDS)
    await context.close()
    return FirstPage(len(requests), sum(sizes) / 1000, usable)
