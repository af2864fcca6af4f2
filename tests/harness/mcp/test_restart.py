"""A server that dies comes back by itself, and nothing is run twice."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.mcp_wire import SECONDS, children, eventually, raw, until
from web.harness.mcp.backoff import Backoff
from web.harness.mcp.connections import Connections, live_connections
from web.harness.mcp.status import State
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio


async def test_a_server_that_dies_while_idle_comes_back_with_its_tools(
    connections: Connections,
) -> None:
    connection = connections.connect(raw())
    await connection.ready()
    states: list[State] = []
    connection.watch(lambda each: states.append(each.status.state))
    (pid,) = children()
    os.kill(pid, 9)
    await eventually(lambda: "ready" in states)
    assert list(dict.fromkeys(states)) == ["failed", "connecting", "ready"]
    assert children() != [pid]
    assert "echo" in [tool.name for tool in connection.status.tools]
    assert (await connection.call("echo", {"a": 1})).content


async def test_the_cause_and_the_time_of_the_next_attempt_are_shown() -> None:
    async with live_connections(os.environ, backoff=Backoff(first=300, most=300)) as held:
        connection = held.connect(raw())
        await connection.ready()
        (pid,) = children()
        os.kill(pid, 9)
        soon = anyio.current_time() + 100
        status = await until(connection, lambda s: s.state == "failed" and (s.retry_at or 0) > soon)
        assert status.cause == "The command was ended by SIGKILL."
        assert status.retry_at is not None
        assert 200 < status.retry_at - anyio.current_time() <= 300
        # The tools that it had stay known.
        assert "echo" in [tool.name for tool in status.tools]
        connection.retry()
        await until(connection, lambda status: status.state == "ready")


async def test_a_call_does_not_wait_for_the_time_of_the_next_attempt() -> None:
    async with live_connections(os.environ, backoff=Backoff(first=300, most=300)) as held:
        connection = held.connect(raw())
        await connection.ready()
        (pid,) = children()
        os.kill(pid, 9)
        await until(connection, lambda status: status.state == "failed")
        with anyio.fail_after(SECONDS):
            assert (await connection.call("echo", {})).content


@pytest.mark.parametrize("tool", ["die", "half"])
async def test_a_call_that_is_under_way_ends_as_a_clear_error_and_is_not_repeated(
    connections: Connections, tmp_path: Path, tool: str
) -> None:
    seen = tmp_path / "seen"
    connection = connections.connect(raw(env={"RAW_SEEN": str(seen)}))
    await connection.ready()
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match=f"ended while '{tool}' ran"):
        await connection.call(tool, {})
    await until(connection, lambda status: status.state == "ready")
    assert (await connection.call("echo", {})).content
    assert seen.read_text().count(f'"name":"{tool}"') == 1


async def test_a_server_that_never_works_is_given_up(connections: Connections) -> None:
    connection = connections.connect(raw("exit"))
    status = await until(connection, lambda s: s.state == "failed" and s.retry_at is None)
    assert status.cause == "The command ended with exit code 3: bye"
    with pytest.raises(ToolError, match=r"'raw' is not connected\. The command ended with"):
        await connection.call("echo", {})


def test_the_wait_doubles_up_to_its_limit() -> None:
    backoff = Backoff(first=0.5, most=60)
    assert [backoff.wait(number) for number in (1, 2, 3, 8, 9, 10_000)] == [0.5, 1, 2, 60, 60, 60]


async def test_a_dead_server_is_no_zombie(connections: Connections) -> None:
    connection = connections.connect(raw())
    await connection.ready()
    (pid,) = children()
    os.kill(pid, 9)
    await until(connection, lambda status: status.state != "ready")
    await eventually(lambda: not psutil.pid_exists(pid))
