"""Connections that sign in, with a person whom the test plays, or a program in the place of one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio

from tests.support.authorization_server import Realm, sent_back
from tests.support.mcp_wire import SECONDS, until
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections, live_connections
from web.harness.mcp.sign_in import SignInSetup, returned
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.tokens import TokenStore

BACK = "http://127.0.0.1:8420/oauth/callback"


def at(made: Realm, name: str = "web", **fields: Any) -> ServerSpec:
    """The MCP server of a realm."""
    return ServerSpec(name, **{"kind": "http", "url": made.url, **fields})


@asynccontextmanager
async def signing_in(store: TokenStore | None = None, **fields: Any) -> AsyncIterator[Connections]:
    """Connections with a store of tokens, their own by default."""
    setup = SignInSetup(store or TokenStore(), **fields)
    async with live_connections(os.environ, sign_in=setup) as connections:
        yield connections


def by_program(**fields: Any) -> dict[str, Any]:
    """What `signing_in` needs so that a program takes the place of the person."""
    return {"redirect_uri": BACK, "visit": sent_back, **fields}


async def asked(connection: Connection) -> str:
    """Begins a sign-in as the button does; the address that the person has to visit."""
    await begun(connection)
    status = await until(connection, lambda status: status.sign_in)
    return status.sign_in


async def begun(connection: Connection) -> None:
    """Begins a sign-in as the button does, once one is waited for."""
    await until(connection, lambda status: status.state == "sign_in")
    connection.begin_sign_in(BACK)


async def finished(connection: Connection, address: str) -> str:
    """Visits the address and hands over what comes back; '' or why it did not work."""
    back = returned(urlsplit(await sent_back(address)).query)
    assert back is not None
    outcome = connection.access.finish(back)
    assert outcome is not None
    with anyio.fail_after(SECONDS):
        return await outcome
