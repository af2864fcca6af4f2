"""MCP servers as tests start them, and what tests wait for."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import psutil  # type: ignore[import-untyped]

from tests.support.environment import CHECKOUT
from tests.support.processes import is_alive
from web.harness.mcp.connection import Connection
from web.harness.mcp.spec import Protocol, ServerSpec
from web.harness.mcp.status import Status

RAW = CHECKOUT / "tests/harness/mcp/servers/raw.py"
OFFERING = CHECKOUT / "tests/harness/mcp/servers/offering.py"
NOTES = CHECKOUT / "tests/support/notes_server.py"
SDK = CHECKOUT / "tests/support/mcp_sdk.py"
SECONDS = 30.0
"""The longest any wait of these tests may take, on a busy machine."""


def raw(*fault: str, name: str = "raw", **fields: Any) -> ServerSpec:
    """A server of plain lines with one fault; see the program."""
    args = ("-S", "-E", str(RAW), *fault)
    return ServerSpec(name, "stdio", command=sys.executable, args=args, **fields)


def offering(era: str, *fault: str, **fields: Any) -> ServerSpec:
    """A server of plain lines that has resources and prompts; see the program."""
    args = ("-S", "-E", str(OFFERING), era, *fault)
    # With the era forced, nothing is tried first.
    protocol: Protocol = "2026-07-28" if era == "modern" else "legacy"
    return ServerSpec("offering", "stdio", sys.executable, args, protocol=protocol, **fields)


def sdk(**fields: Any) -> ServerSpec:
    """The SDK's own server as a program."""
    return ServerSpec("sdk", "stdio", command=sys.executable, args=(str(SDK),), **fields)


async def until(connection: Connection, wanted: Callable[[Status], object]) -> Status:
    """The first status that is as wanted. Fails after `SECONDS`, and says how things stood."""
    changed = asyncio.Event()
    stop = connection.watch(lambda _: changed.set())
    try:
        with anyio.move_on_after(SECONDS):
            while not wanted(connection.status):
                changed.clear()
                await changed.wait()
    finally:
        stop()
    assert wanted(connection.status), connection.status
    return connection.status


async def eventually(condition: Callable[[], object]) -> None:
    """Returns when it holds; fails after `SECONDS`. For processes and files, which tell nobody."""
    with anyio.fail_after(SECONDS):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def until_gone(pids: Sequence[int]) -> None:
    """Returns when none of the processes is alive."""
    await eventually(lambda: not any(is_alive(pid) for pid in pids))


async def pids_in(file: Path) -> list[int]:
    """The process ids that a server writes into a file, once it has."""
    await eventually(lambda: words_in(file).strip())
    return [int(pid) for pid in words_in(file).split()]


def words_in(file: Path) -> str:
    """What a server has written into a file until now."""
    return file.read_text() if file.exists() else ""


def children() -> list[int]:
    """The living servers of plain lines that this process has started."""
    found = []
    for each in psutil.Process(os.getpid()).children():
        with suppress(psutil.Error):
            if str(RAW) in each.cmdline() and is_alive(each.pid):
                found.append(each.pid)
    return found


@asynccontextmanager
async def answering(
    status: str, body: str = "", headers: Sequence[str] = ()
) -> AsyncIterator[ServerSpec]:
    """An address that gives one answer to everything it is asked."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", "Connection: close"]
    answer = "\r\n".join([*head, *headers, "", body]).encode()

    async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer_one, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield ServerSpec("web", "http", url=f"http://127.0.0.1:{port}/mcp")


def notes(many: int = 0, name: str = "notes") -> ServerSpec:
    """A server with resources, templates and prompts whose names are anything; see the program."""
    args = ("-S", "-E", str(NOTES), str(many))
    return ServerSpec(name, "stdio", command=sys.executable, args=args, protocol="legacy")
