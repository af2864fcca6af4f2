"""Connections as resources of a session: opened once, and no process of them is left."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.mcp_wire import pids_in, raw, until_gone
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.mcp.connections import Connections
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.tools.resource import Resource

pytestmark = pytest.mark.anyio


async def test_the_connections_of_a_chat_live_from_run_to_run_and_end_with_its_session(
    connections: Connections, tmp_path: Path
) -> None:
    runtime, file = HarnessRuntime(InMemorySessionStore()), tmp_path / "pids"
    used: list[object] = []
    async with asyncio.TaskGroup() as group:

        async def connect() -> Resource[Connections]:
            own = Connections(group.create_task, os.environ)
            await own.connect(raw("grandchild", str(file))).ready()
            return Resource(own, dispose=own.aclose)

        async def of_the_host() -> Resource[Connections]:
            return Resource(connections, "host")

        async def driver(services: ExecutionServices) -> None:
            used.append((await services.resource("mcp", "session", connect)).value)
            shared = await services.resource("mcp of the host", "host", of_the_host)
            assert shared.value is connections

        await connections.connect(raw(name="shared")).ready()
        for _ in range(2):
            await runtime.run(LOCAL_IDENTITY, "s", driver)
        assert used[0] is used[1]
        pids = await pids_in(file)
        assert await runtime.resources.close_session(LOCAL_IDENTITY, "s") == []
        await until_gone(pids)
        assert connections.get("shared").status.state == "ready"
