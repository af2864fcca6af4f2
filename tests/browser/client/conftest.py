"""A scripted server and a browser for the tests of the client script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.client.server import Script, running
from tests.support.browser import Complaints

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page


# Several browsers may share a small machine.
expect.set_options(timeout=10_000)


@dataclass
class Scene:
    """A scripted server, and one browser context that looks at it."""

    script: Script
    address: str
    context: BrowserContext
    complaints: Complaints

    async def open(self, path: str = "/chats/one", *, live: bool = True) -> Page:
        """A new tab; `live` waits until a stream of the browser carries its chat."""
        page = await self.context.new_page()
        await page.goto(self.address + path)
        if live:
            name = path.rpartition("/")[2] or "chats"
            await self.script.until(lambda: any(name in s.names for s in self.script.open))
        return page


@pytest.fixture
async def scene(chromium: Browser) -> AsyncIterator[Scene]:
    """One chat, "one", with nothing in it yet. Fails if a page complained."""
    script = Script()
    script.chat("one")
    async with running(script) as address:
        context = await chromium.new_context()
        context.set_default_timeout(10_000)
        context.set_default_navigation_timeout(20_000)
        complaints = Complaints(context)
        yield Scene(script, address, context, complaints)
        await context.close()
        assert complaints.unexpected == []
