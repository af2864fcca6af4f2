"""The real application in the test's event loop, played by a scripted model, and its browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

from tests.support.app_server import AppServer, app_server
from tests.support.browser import Complaints
from tests.support.environment import CHECKOUT
from tests.support.scripted_provider import ScriptedProvider, Step, says

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Request

    from web.harness.values.model import ModelRequest

PICTURES = CHECKOUT / "test-results" / "page"

BOX = "#message"
LOG = "[data-log]"
STATUS = ".status-region [data-part]"
ERRORS_OF_OUR_OWN = r"Response Status Error Code|Failed to load resource: the server responded"
"""What the browser and htmx write to the console when the server refuses a form on purpose."""


@dataclass
class Stage:
    """A server, the model behind it, and one browser context that looks at it."""

    server: AppServer
    model: ScriptedProvider
    context: BrowserContext
    complaints: Complaints

    def play(self, *answers: Sequence[Step]) -> None:
        """What the model answers from its next request on."""
        self.model.answers[len(self.model.requests) :] = answers

    async def open(self, path: str = "/", *, live: bool = True) -> Page:
        """A new tab; `live` waits until it asks for its stream."""
        page = await self.context.new_page()
        if live:
            async with page.expect_request(lambda request: "/stream?" in request.url):
                await page.goto(self.server.address + path)
        else:
            await page.goto(self.server.address + path)
        return page

    async def asked(self, text: str = "Hello", **fields: Any) -> str:
        """A chat whose first message was sent; its id."""
        chat = await self.server.new_chat(**fields)
        await self.server.send(chat, text)
        return chat

    async def answered(self, text: str, *answer: Step) -> str:
        """A chat with one message and its whole answer; its id."""
        if answer:
            self.play(list(answer))
        chat = await self.server.new_chat()
        run_id = await self.server.send(chat, text)
        await self.server.wait_for(run_id, "run_result")
        return chat

    async def requests(self, times: int) -> list[ModelRequest]:
        """What the model was asked, once it was asked so many times in all.

        A message is on the page before the model is asked: no test may count requests at once.
        """
        async with asyncio.timeout(10):
            while len(self.model.requests) < times:
                self.model.asked.clear()
                await self.model.asked.wait()
        return list(self.model.requests)

    def allow_refusals(self) -> None:
        self.complaints.allow(ERRORS_OF_OUR_OWN)


async def shows(page: Page, state: str) -> None:
    """Waits until the status line is in this state."""
    await expect(page.locator(STATUS)).to_have_attribute("data-state", state)


async def picture(page: Page, name: str) -> None:
    """Puts a picture of the page into test-results/, for people to look at."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")


def written(folder: Path, name: str) -> list[str]:
    """What is in the files of that name, of all chats of a stage."""
    return [path.read_text() for path in folder.rglob(name)]


@asynccontextmanager
async def watched(
    browser: Browser, address: str, *, others: Sequence[str] = (), **options: Any
) -> AsyncIterator[tuple[BrowserContext, Complaints]]:
    """A browser context for one server; `options` are Playwright's.

    Fails at the end if a page wrote an error to its console (a violation of its policy is one), or
    asked another server for anything than those at the addresses of `others`.
    """
    own = (*(f"{each}/" for each in (address, *others)), "data:", "blob:")
    context = await browser.new_context(**options)
    context.set_default_timeout(10_000)
    # Loading a page costs a busy machine most.
    context.set_default_navigation_timeout(20_000)
    complaints = Complaints(context)
    foreign: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith(own):
            foreign.append(request.url)

    context.on("request", note)
    try:
        yield context, complaints
    finally:
        await context.close()
    assert foreign == []
    unexpected = complaints.unexpected
    assert unexpected == [], unexpected


@asynccontextmanager
async def staged(
    browser: Browser, folder: Path, *, limits: dict[str, int] | None = None, **options: Any
) -> AsyncIterator[Stage]:
    """A server of its own with these limits, and a `watched` context."""
    model = ScriptedProvider(says("ok"))
    async with (
        app_server(folder, model, settings=None, **(limits or {})) as server,
        watched(browser, server.address, **options) as (context, complaints),
    ):
        yield Stage(server, model, context, complaints)
