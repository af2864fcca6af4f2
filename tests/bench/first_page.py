"""What a browser waits for: the first page after the command, and a page in Chromium."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from statistics import median

from tests.bench.processes import Running
from tests.bench.wire import fetch
from tests.support.browser import launched

SETTLE_SECONDS = 1.0
"""For requests that a page makes after it is usable."""


@dataclass(frozen=True, slots=True)
class FirstPage:
    """`requests` and `kilobytes` (over the wire, headers too) of a page with an empty cache.

    `usable_ms` is from the navigation until the message box takes text and the page's script runs.
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
    """Loads `/` in a fresh browser profile some times; gives the median of the times."""
    async with launched() as browser:
        visits = []
        for _ in range(repeats + 1):
            context = await browser.new_context()
            page = await context.new_page()
            devtools = await context.new_cdp_session(page)
            await devtools.send("Network.enable")
            requests: list[str] = []
            sizes: dict[str, float] = {}
            devtools.on(
                "Network.requestWillBeSent",
                lambda event, into=requests: _note_request(into, event),  # type: ignore[misc]
            )
            # The end of a stream is never told, so that every piece of every answer is counted.
            devtools.on(
                "Network.loadingFinished",
                lambda event, into=sizes: into.update(  # type: ignore[misc]
                    {event["requestId"]: event["encodedDataLength"]}
                ),
            )
            began = time.monotonic()
            await page.goto(address, wait_until="commit")
            await page.locator("#message").fill("hello")
            await page.wait_for_load_state("domcontentloaded")
            usable = time.monotonic() - began
            await asyncio.sleep(SETTLE_SECONDS)
            visits.append((len(requests), sum(sizes.values()) / 1000, 1000 * usable))
            await context.close()
    # The first visit of a browser pays for the browser.
    visits = visits[1:]
    return FirstPage(
        max(count for count, _, _ in visits),
        max(size for _, size, _ in visits),
        median(usable for _, _, usable in visits),
    )


def _note_request(into: list[str], event: dict[str, dict[str, str]]) -> None:
    address = event["request"]["url"]
    if address.startswith("http"):
        into.append(address)
