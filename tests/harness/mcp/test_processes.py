"""Whatever ends a connection, no process and no task of it is left."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path

import anyio
import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.mcp_wire import SECONDS, children, eventually, pids_in, raw, until, until_gone
from web.harness.mcp.connections import Connections, live_connections
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.stdio import running

pytestmark = pytest.mark.anyio


@pytest.mark.full
async def test_a_disconnect_ends_what_the_server_has_started(
    connections: Connections, tmp_path: Path
) -> None:
    file = tmp_path / "pids"
    await connections.connect(raw("grandchild", str(file))).ready()
    pids = await pids_in(file)
    assert len(pids) == 2
    await connections.disconnect("raw")
    await until_gone(pids)


async def test_a_disconnect_ends_what_has_left_the_group_of_the_server(
    connections: Connections, tmp_path: Path
) -> None:
    file = tmp_path / "pids"
    await connections.connect(raw("daemon", str(file))).ready()
    pids = await pids_in(file)
    assert os.getpgid(pids[0]) != os.getpgid(pids[1])
    await connections.disconnect("raw")
    await until_gone(pids)


async def test_a_server_that_dies_takes_its_children_along(
    connections: Connections, tmp_path: Path
) -> None:
    file = tmp_path / "pids"
    await connections.connect(raw("grandchild", str(file))).ready()
    server, grandchild = await pids_in(file)
    os.kill(server, 9)
    await until_gone([server, grandchild])


async def test_a_disconnect_in_the_middle_of_connecting_leaves_nothing(
    connections: Connections,
) -> None:
    connection = connections.connect(raw("hang", connect_seconds=60))
    await eventually(children)
    await connections.disconnect("raw")
    assert (connection.status.state, children()) == ("closed", [])


async def test_a_disconnect_at_once_leaves_nothing(connections: Connections) -> None:
    connections.connect(raw("hang", connect_seconds=60))
    with anyio.fail_after(SECONDS):
        await connections.disconnect("raw")
    assert children() == []


@pytest.mark.full
async def test_a_start_that_is_cancelled_leaves_nothing_that_it_has_started(
    tmp_path: Path,
) -> None:
    """However early that comes: also while nobody holds the process yet."""
    sleeper = tmp_path / "sleeper"
    sleeper.symlink_to(shutil.which("sleep") or "")
    spec = ServerSpec("s", "stdio", command="sh", args=("-c", f"{sleeper} 600 & {sleeper} 600"))

    async def start() -> None:
        async with running(spec, os.environ, on_stderr=print):
            await anyio.sleep_forever()

    async def start_and_cancel(turns: int) -> None:
        task = asyncio.create_task(start())
        for _ in range(2 * turns):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    await asyncio.gather(*map(start_and_cancel, range(12)))
    left = psutil.process_iter(["pid", "cmdline"])
    await until_gone([p.pid for p in left if str(sleeper) in " ".join(p.info["cmdline"] or ())])


async def test_a_failed_connect_leaves_nothing(connections: Connections) -> None:
    connection = connections.connect(raw("version", "2099-01-01"))
    await until(connection, lambda status: status.state == "failed")
    assert children() == []


async def test_an_owner_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    tasks = asyncio.all_tasks()
    opened = asyncio.Event()

    async def own() -> None:
        async with live_connections(os.environ) as held:
            connection = held.connect(raw("grandchild", str(tmp_path / "pids")))
            held.connect(raw("hang", name="hang", connect_seconds=60))
            await connection.ready()
            opened.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        owner = group.create_task(own())
        await opened.wait()
        pids = await pids_in(tmp_path / "pids")
        owner.cancel()
    await until_gone(pids)
    assert children() == []
    assert asyncio.all_tasks() == tasks


@pytest.mark.full
async def test_servers_that_ignore_being_asked_are_killed_side_by_side(tmp_path: Path) -> None:
    pids = []
    async with live_connections(os.environ) as held:
        for number in range(5):
            held.connect(raw("stubborn", str(tmp_path / str(number)), name=str(number)))
        for connection in held:
            await connection.ready()
            pids += await pids_in(tmp_path / connection.spec.name)
        began = anyio.current_time()
        await held.aclose()
        took = anyio.current_time() - began
    assert len(pids) == 10
    await until_gone(pids)
    # One alone takes four seconds: it is asked twice, and then killed.
    assert took < 15
