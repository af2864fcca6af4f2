"""MCP servers as a page shows them, and what of them waits for the person."""

from __future__ import annotations

from collections.abc import Iterable

from web.chats.parts.kinds import Attention, Server
from web.chats.servers.instructions import MAX_INSTRUCTIONS_CHARS
from web.chats.servers.sign_ins import shown_sign_in
from web.harness.mcp.connection import Connection
from web.harness.mcp.programs import ran
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.wording import tidy

SHOWN_LOG = 50
MAX_WAITING = 3
"""Things that wait are named up to so many; the rest is counted."""


def shown_server(key: str, connection: Connection, *, of_host: bool, waits: bool) -> Server:
    """`waits` says that its tools are not there yet: ready is what has tools that can be called."""
    spec, status = connection.spec, connection.status
    return Server(
        key=key,
        name=spec.name,
        of_host=of_host,
        where=where(spec),
        state="connecting" if waits and status.state == "ready" else status.state,
        cause=status.cause,
        retries=status.retry_at is not None,
        connect_seconds=spec.connect_seconds,
        title=tidy(status.title, 80, one_line=True),
        version=tidy(status.version, 40, one_line=True),
        protocol=tidy(status.protocol, 40, one_line=True),
        instructions=tidy(status.instructions, MAX_INSTRUCTIONS_CHARS),
        sign_in=shown_sign_in(connection),
        stderr=status.stderr,
        log=status.log[-SHOWN_LOG:],
    )


def where(spec: ServerSpec) -> str:
    """What it is reached by: an address, or a program and the one that this only runs."""
    if spec.kind != "stdio":
        return spec.address
    return spec.conceal(f"{spec.command} {ran(spec.command, spec.args)}".strip())


def attention(
    proposed: Iterable[ServerSpec], connections: Iterable[Connection], needed: Iterable[str] = ()
) -> Attention:
    """What waits for the person in Setup. What is tried again by itself does not."""
    waiting = [f"{spec.name} waits to be started" for spec in proposed]
    waiting += [f"{name} needs its secrets again" for name in needed]
    for connection in connections:
        name, status = connection.spec.name, connection.status
        if status.state == "sign_in":
            waiting.append(f"{name} needs sign-in")
        elif status.state == "failed" and status.retry_at is None:
            waiting.append(f"{name} is not connected")
        elif status.updated:
            waiting.append(f"{name} has changed a resource that is watched")
    return Attention(tuple(waiting[:MAX_WAITING]), max(0, len(waiting) - MAX_WAITING))
