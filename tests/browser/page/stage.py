"""The real application in the test's event loop, played by a scripted model, and its browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

from tests.support.app_server import AppServer, app_server
from tests.support.browser import Complaints
from tests.support.scripted_provider import ScriptedProvider, Step, says

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Request

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
    foreign: list[str] = field(default_factory=list)
    """Addresses beyond the server that a page asked for."""

    def play(self, *answers: Sequence[Step]) -> None:
        """What the model answers from its next request on."""
        self.model.answers[len(self.model.requests) :] = answers

    async def open(self, path: str = "/", *, live: bool = True) -> Page:
        """A new tab; `live` waits until its stream is there."""
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

    async def shows(self, page: Page, state: str) -> None:
        """Waits until the status line is in this state."""
        await expect(page.locator(STATUS)).to_have_attribute("data-state", state)

    def allow_refusals(self) -> None:
        self.complaints.allow(ERRORS_OF_OUR_OWN)


@asynccontextmanager
async def staged(
    browser: Browser, folder: Path, *answers: Sequence[Step], limits: dict[str, int] | None = None,
    **options: Any,
) -> AsyncIterator[Stage]:
    """A stage of its own; `options` are those of a browser context.

    Fails at the end if a page wrote an error to its console, or asked another server for anything.
    """
    model = ScriptedProvider(*(answers or (says("ok"),)))
    async with app_server(folder, model, **(limits or {})) as server:
        context = await browser.new_context(**options)
        context.set_default_timeout(10_000)
        stage = Stage(server, model, context, Complaints(context))

        def note(request: Request) -> None:
            if not request.url.startswith((server.address + "/", "data:", "blob:")):
                stage.foreign.append(request.url)

        context.on("request", note)
        try:
            yield stage
        finally:
            await context.close()
        assert stage.foreign == []
        assert stage.complaints.unexpected == []
