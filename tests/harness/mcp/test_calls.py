"""Calls show their progress, end when they should, and fail in words."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from mcp_types import CallToolResult, TextContent

from tests.support.mcp_sdk import text_of
from tests.support.mcp_wire import SECONDS, eventually, raw, until, words_in
from web.harness.mcp.calls import Call
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio


async def until_sent(file: Path, words: str) -> None:
    await eventually(lambda: words in words_in(file))


@pytest.fixture
async def connection(connections: Connections) -> Connection:
    connection = connections.connect(raw())
    await connection.ready()
    return connection


async def test_a_result_comes_as_the_server_gave_it(connection: Connection) -> None:
    assert text_of(await connection.call("echo", {"ä": [1, None]})) == '{"\\u00e4": [1, null]}'


async def test_many_calls_run_side_by_side(connection: Connection) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(connection.call("echo", {"n": n})) for n in range(50)]
    assert [json.loads(text_of(task.result()))["n"] for task in tasks] == list(range(50))


async def test_a_silent_call_is_cut_and_the_server_is_told(
    connections: Connections, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    spec = raw(call_seconds=0.3, env={"RAW_SEEN": str(seen)})
    connection = connections.connect(spec)
    await connection.ready()
    with pytest.raises(ToolError, match=r"showed no progress for 0\.3 seconds"):
        await connection.call("silent", {})
    await until_sent(seen, "notifications/cancelled")
    with anyio.fail_after(SECONDS):
        assert (await echoed(connection)).content


async def echoed(connection: Connection) -> CallToolResult:
    """What a call is answered in the end: on a busy machine the limit may be too short for some."""
    while True:
        with suppress(ToolError):
            return await connection.call("echo", {})


@pytest.mark.full
async def test_a_call_with_progress_outlives_the_limit(connections: Connections) -> None:
    connection = connections.connect(raw(call_seconds=1))
    await connection.ready()
    began = anyio.current_time()
    got: list[tuple[float, float | None, str]] = []
    result = await connection.call(
        "busy", {"steps": 5, "seconds": 0.3}, on_progress=lambda *report: got.append(report)
    )
    assert text_of(result)
    assert anyio.current_time() - began > connection.spec.call_seconds
    assert got[0] == (1.0, 20_000.0, "step 1")
    assert got[-1] == (5.0, 20_000.0, "step 5")


async def test_a_flood_of_progress_comes_at_a_readable_pace(connections: Connections) -> None:
    connection = connections.connect(raw())
    times: list[float] = []
    last: list[float] = []

    def on_progress(done: float, total: float | None, words: str) -> None:
        times.append(anyio.current_time())
        last[:] = [done]

    await connection.call("flood", {}, on_progress=on_progress)
    assert last == [20_000.0]
    # The very last one may follow at once, since the call has ended.
    gaps = [after - before for before, after in pairwise(times[:-1])]
    assert all(gap > 0.09 for gap in gaps)


async def test_a_report_that_came_too_soon_is_told_a_little_later() -> None:
    got: list[float] = []
    later = asyncio.Event()

    def on_progress(done: float, total: float | None, words: str) -> None:
        got.append(done)
        if done == 3:
            later.set()

    call = Call(60, on_progress, None)
    with call.running():
        for done in (1.0, 2.0, 3.0):
            await call.progressed(done, None, None)
        assert got == [1.0]
        with anyio.fail_after(SECONDS):
            await later.wait()
    assert got == [1.0, 3.0]


async def test_cancelling_the_caller_cancels_at_the_server(
    connections: Connections, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    connection = connections.connect(raw(env={"RAW_SEEN": str(seen)}))
    await connection.ready()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connection.call("silent", {}))
        await until_sent(seen, '"silent"')
        task.cancel()
    await until_sent(seen, "notifications/cancelled")
    assert connection.status.state == "ready"


async def test_a_call_to_a_server_that_does_not_connect_tells_the_cause(
    connections: Connections,
) -> None:
    connection = connections.connect(raw("hang", connect_seconds=0.2))
    with pytest.raises(ToolError, match=r"'raw' is not connected\. The command started, but gave"):
        await connection.call("echo", {})


async def test_an_answer_that_cannot_be_read_does_not_wait_for_the_limit(
    connections: Connections,
) -> None:
    connection = connections.connect(raw())
    await connection.ready()
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match="could not be read"):
        await connection.call("unreadable", {})


async def test_content_of_an_unknown_kind_costs_only_itself(connection: Connection) -> None:
    result = await connection.call("odd", {})
    first, second = result.content
    assert isinstance(first, TextContent)
    assert "hologram" in first.text
    assert isinstance(second, TextContent)
    assert second.text == "plain"


async def test_log_messages_and_stray_output_are_kept_beside_the_server(
    connection: Connection,
) -> None:
    await connection.call("log", {"data": {"disk": "full"}})
    status = await until(connection, lambda status: len(status.log) >= 2)
    lines = {(line.level, line.source, line.text) for line in status.log}
    assert lines == {("warning", "raw", '{"disk": "full"}'), ("stray", "", "not a message")}


async def test_only_the_last_lines_are_kept(connection: Connection) -> None:
    for number in range(101):
        await connection.call("log", {"data": f"line {number}"})
    status = await until(connection, lambda s: s.log and "line 100" in [x.text for x in s.log])
    assert len(status.log) == 200


async def test_a_tool_list_that_changes_is_picked_up(
    connections: Connections, tmp_path: Path
) -> None:
    connection = connections.connect(raw("growing", str(tmp_path / "grown")))
    await connection.ready()
    assert "late" not in [tool.name for tool in connection.status.tools]
    await connection.call("grow", {})
    await until(connection, lambda s: "late" in [tool.name for tool in s.tools])


async def test_the_clock_stands_still_while_a_person_is_asked() -> None:
    call = Call(0.1, None, None)
    with call.running():
        with call.waiting_for_the_person():
            await asyncio.sleep(0.3)
        answered = True
    assert answered
