"""A real browser for tests, and contexts that notice when a page complains."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.support.chromium import launch_options

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, WebError


@asynccontextmanager
async def launched(*, without: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """Starts Chromium; `without` names default arguments that it is not to get."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            ignore_default_args=list(without), **launch_options()
        )
        yield browser
        await browser.close()


async def scrolled(page: Page, selector: str, pixels: int) -> None:
    """Turns the wheel over an element, and waits until what it scrolls has come to rest."""
    await page.hover(selector)
    await page.locator(selector).evaluate(
        """(each) => {
          const before = each.scrollTop;
          window.atRest = false;
          each.addEventListener("scrollend", () => (window.atRest ||= each.scrollTop !== before));
        }"""
    )
    await page.mouse.wheel(0, pixels)
    await page.wait_for_function("() => window.atRest")


class Complaints:
    """What the pages of a context wrote to their consoles as errors, or threw.

    That includes violations of the Content-Security-Policy. What a test expects it `allows`.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.heard: list[str] = []
        self._allowed: list[re.Pattern[str]] = []
        context.on("console", self._console)
        context.on("weberror", self._error)

    def allow(self, pattern: str) -> None:
        self._allowed.append(re.compile(pattern))

    @property
    def unexpected(self) -> list[str]:
        return [text for text in self.heard if not any(each.search(text) for each in self._allowed)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.heard.append(f"{message.text} ({message.location.get('url')})")

    def _error(self, error: WebError) -> None:
        self.heard.append(str(error.error))
