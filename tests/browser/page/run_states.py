"""Runs that were cut off, paused or written down, brought about on a server without a backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

from tests.browser.page.stage import ERRORS_OF_OUR_OWN, watched
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import ToolServer, tool_server
from web.harness.loop.actions import Decided, ModelFailed, Resolved, Resumed
from web.harness.sessions.journal import CallRecord, Step
from web.harness.tools.tool import KeepBlob, PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.events import EventBody, RecoveryRequired, ToolCallStart, ToolResult
from web.harness.values.messages import JsonObject, ToolUseBlock
from web.harness.values.model import ModelDone, TextChunk

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

TRANSFER: JsonObject = {"to": "Ana Sousa", "sum": "125.50 EUR", "for": "Rent of the boat, March"}


@dataclass
class CutOff:
    """A chat whose run was cut off while a payment went out, and a tab that shows it."""

    server: ToolServer
    context: BrowserContext
    page: Page
    chat: str
    run_id: str
    go_on: asyncio.Event

    @property
    def key(self) -> str:
        return f"{self.run_id}-1-1-recovery-1"

    def happens(self, *bodies: EventBody) -> None:
        self.server.log.append(self.run_id, list(bodies))

    def asks(self) -> None:
        """The server is there again, and asks what became of the call."""
        self.happens(RecoveryRequired(self.key, f"{self.run_id}-1-1", "transfer", TRANSFER))


@asynccontextmanager
async def cut_off(chromium: Browser, **options: Any) -> AsyncIterator[CutOff]:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("I look up the account, then I pay. "), go_on, TextChunk("That is all."),
         ModelDone("end_turn")],
        says("Anything else?"),
    )  # fmt: skip
    async with (
        tool_server(provider, lambda keep: []) as server,
        watched(chromium, server.address, **options) as (context, complaints),
    ):
        complaints.allow(ERRORS_OF_OUR_OWN)
        chat = await server.new_chat(title="The rent of the boat")
        server.chat_here(chat).transcript.written_down = True
        run_id = await server.send(chat, "Pay Ana what we owe her for the boat")
        await server.wait_for(run_id, "text_delta")
        page = await context.new_page()
        await page.goto(f"{server.address}/chats/{chat}")
        made = CutOff(server, context, page, chat, run_id, go_on)
        message = f"{run_id}-1"
        made.happens(
            ToolCallStart(f"{message}-0", "find_account", {"name": "Ana Sousa"}, message),
            ToolResult(f"{message}-0", "find_account", "PT50 0002 0123", seconds=0.4),
            ToolCallStart(f"{message}-1", "transfer", TRANSFER, message),
        )
        await expect(page.locator(".call")).to_have_count(2)
        yield made
        go_on.set()


def _tools(keep: KeepBlob) -> list[Tool]:
    async def look(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput.of(f"{arguments['name']}: 3 trams, 2 ferries <b>today</b>\n" * 3)

    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    return [Tool("look_up", "Looks up.", schema, look, PermissionLevel.ALLOW)]


@asynccontextmanager
async def written_down(chromium: Browser, **options: Any) -> AsyncIterator[tuple[ToolServer, Page]]:
    """A chat with a run of many steps of most kinds, and its page."""
    provider = ScriptedProvider(
        calls(("look_up", {"name": "Lisbon"}), ("look_up", {"name": "Porto"}), text="Let me look."),
        says("**Lisbon** it is: more ferries, more tiles."),
        says("And on."),
    )
    async with (
        tool_server(provider, _tools) as server,
        watched(chromium, server.address, **options) as (context, complaints),
    ):
        complaints.allow(ERRORS_OF_OUR_OWN)
        chat = await server.new_chat(title="Towns with trams")
        server.chat_here(chat).transcript.written_down = True
        run_id = await server.send(chat, "Which town shall we visit, and why?")
        await server.events(run_id)
        server.runs.write_down(run_id, server.chat_here(chat).messages)
        use = ToolUseBlock("x", "transfer", TRANSFER)
        asked = CallRecord(use, "m", decision="allow", edited=True)
        overloaded = ModelFailed("overloaded", True, message="The model is busy.", retry_after=2.0)
        server.runs.write(
            run_id,
            Step("model_failed", overloaded, about={"seconds": 0.3}),
            Step("decided", Decided("k", "allow"), calls=(asked,)),
            Step("resumed", Resumed((), ("x",)), calls=(asked,)),
            Step("resolved", Resolved("x", "retry"), calls=(asked,)),
            Step("paused"),
        )
        page = await context.new_page()
        await page.goto(f"{server.address}/chats/{chat}")
        yield server, page
