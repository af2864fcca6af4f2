"""Counting aloud: progress, log messages, cancellation, and a resource that changes by itself."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    EmptyResult,
    LoggingLevel,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from pydantic import Field

LEVELS: tuple[str, ...] = get_args(LoggingLevel)
COUNT_URI = "demo://count"


class Counter:
    """Counts aloud, as loud as a client of a handshake version asked for.

    Since 2026-07-28 each request says what it wants to hear, and a stream what it wants to be told
    of; the SDK sees to both.
    """

    def __init__(self) -> None:
        self._level: LoggingLevel = "debug"
        self._subscribed = False
        self._counted = 0

    def answer_older_clients(self, server: MCPServer[Any]) -> None:
        """Takes what clients of the handshake versions ask; `MCPServer` has no other way to."""
        add = server._lowlevel_server.add_request_handler
        add("logging/setLevel", SetLevelRequestParams, self._set_level)
        add("resources/subscribe", SubscribeRequestParams, self._subscribe)
        add("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    def count(self) -> str:
        """How far the last count has come. It changes while count_to runs."""
        return f"{self._counted}\n"

    async def count_to(
        self,
        context: Context[Any, Any],
        number: Annotated[int, Field(ge=1, le=1000, description="Where the count ends")] = 10,
        pause_seconds: Annotated[float, Field(ge=0, le=10, description="Between numbers")] = 0.3,
    ) -> str:
        """Counts slowly and reports its progress, so that it can be watched and stopped."""
        await self._log(context, "info", f"Counting to {number}.")
        for step in range(1, number + 1):
            await anyio.sleep(pause_seconds)
            self._counted = step
            await context.report_progress(step, number, f"{step} of {number}")
            await context.notify_resource_updated(COUNT_URI)
            if self._subscribed:
                await context.session.send_resource_updated(COUNT_URI)
            await self._log(context, "debug", f"At {step}.")
        await self._log(context, "info", "Done.")
        return f"Counted to {number}."

    async def _set_level(
        self, context: ServerRequestContext[Any, Any], params: SetLevelRequestParams
    ) -> EmptyResult:
        self._level = params.level
        return EmptyResult()

    async def _subscribe(
        self, context: ServerRequestContext[Any, Any], params: SubscribeRequestParams
    ) -> EmptyResult:
        self._subscribed = self._subscribed or params.uri == COUNT_URI
        return EmptyResult()

    async def _unsubscribe(
        self, context: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams
    ) -> EmptyResult:
        self._subscribed = self._subscribed and params.uri != COUNT_URI
        return EmptyResult()

    async def _log(self, context: Context[Any, Any], level: LoggingLevel, text: str) -> None:
        if LEVELS.index(level) >= LEVELS.index(self._level):
            await context.log(level, text, logger_name="count_to")
