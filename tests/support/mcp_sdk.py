"""An MCP server written with the SDK, as a program over stdio and as an application over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel


class Point(BaseModel):
    """A structured result."""

    x: int
    y: int


class Flavour(BaseModel):
    """What a form asks for."""

    flavour: str


def build_server() -> MCPServer:
    """A few tools that behave, wait, report, ask and change the list."""
    server = MCPServer("sdk", title="SDK server", version="9", log_level="ERROR")
    cancelled: list[str] = []

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.tool()
    def point(x: int, y: int) -> Point:
        return Point(x=x, y=y)

    @server.tool()
    def fail() -> str:
        raise ValueError("no such flavour")

    @server.tool()
    async def wait(seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            cancelled.append("wait")
            raise
        return "waited"

    @server.tool()
    def cancellations() -> int:
        return len(cancelled)

    @server.tool()
    async def steps(count: int, seconds: float, ctx: Context) -> str:
        for step in range(count):
            await asyncio.sleep(seconds)
            await ctx.report_progress(step + 1, count, f"step {step + 1}")
        return "done"

    @server.tool()
    async def grow(ctx: Context) -> str:
        server.add_tool(echo, name="late")
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "grown"

    @server.tool()
    async def order(ctx: Context) -> str:
        answer = await ctx.elicit("Which flavour?", Flavour)
        return f"{answer.action}: {answer.data.flavour if answer.action == 'accept' else '-'}"

    return server


@asynccontextmanager
async def listening(app: Any, port: int = 0) -> AsyncIterator[int]:
    """Serves an ASGI application on a port of this machine until the block ends."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level=logging.CRITICAL, timeout_graceful_shutdown=0
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.serve())
        try:
            with anyio.fail_after(20):
                while not server.started:  # noqa: ASYNC110
                    await anyio.sleep(0.005)
            yield server.servers[0].sockets[0].getsockname()[1]
        finally:
            server.should_exit = True
            await task


if __name__ == "__main__":
    build_server().run()


def text_of(result: CallToolResult) -> str:
    """The text of the first block of what a tool gave."""
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text
