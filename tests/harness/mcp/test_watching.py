"""News of watched resources is told, also after the stream or the server was lost."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.support.mcp_features import build_server
from tests.support.mcp_sdk import listening
from tests.support.mcp_wire import SECONDS, eventually, offering, raw, until, words_in
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections
from web.harness.mcp.spec import Protocol, ServerSpec
from web.harness.mcp.watches import MAX_WATCHED
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio

ERAS = ("modern", "legacy")


async def step(connection: Connection, do: str, uri: str = "") -> None:
    with anyio.fail_after(SECONDS):
        await connection.call("step", {"do": do, "uri": uri})


@pytest.mark.parametrize("era", ERAS)
async def test_news_is_told_until_it_is_read(
    connections: Connections, tmp_path: Path, era: str
) -> None:
    asked = tmp_path / "asked"
    connection = connections.connect(offering(era, "none", str(asked)))
    with anyio.fail_after(SECONDS):
        await connection.watch_resource("note://1")
        await connection.watch_resource("note://2")
        await connection.watch_resource("note://2")
    assert connection.status.watched == {"note://1", "note://2"}
    assert connection.status.updated == {}
    await step(connection, "update", "note://3")
    # What lies below a watched one is part of it.
    await step(connection, "update", "note://2/line/4")
    await until(connection, lambda status: set(status.updated) == {"note://2"})
    await step(connection, "update", "note://1")
    await until(connection, lambda status: set(status.updated) == {"note://1", "note://2"})
    with anyio.fail_after(SECONDS):
        await connection.read_resource("note://1")
    assert set(connection.status.updated) == {"note://2"}
    with anyio.fail_after(SECONDS):
        await connection.unwatch_resource("note://2")
    assert connection.status.watched == {"note://1"}
    assert connection.status.updated == {}
    await step(connection, "update", "note://2")
    await step(connection, "update", "note://1")
    await until(connection, lambda status: set(status.updated) == {"note://1"})
    if era == "modern":
        # The end of a stream is told after the next one was there.
        last = ["listen note://1", "unlisten"]
        await eventually(lambda: words_in(asked).splitlines()[-2:] == last)
    lines = words_in(asked).splitlines()
    if era == "modern":
        # Another stream is there before the one before it ends.
        wanted = ["listen ", "listen note://1", "unlisten", "listen note://1 note://2", "unlisten"]
        assert [each for each in lines if each in wanted][: len(wanted)] == wanted
    else:
        assert lines == [
            "resources/subscribe note://1",
            "resources/subscribe note://2",
            "resources/unsubscribe note://2",
        ]


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_was_restarted_tells_on(
    connections: Connections, tmp_path: Path, era: str
) -> None:
    asked = tmp_path / "asked"
    connection = connections.connect(offering(era, "none", str(asked)))
    with anyio.fail_after(SECONDS):
        await connection.watch_resource("note://1")
        with pytest.raises(ToolError):
            await connection.call("step", {"do": "end"})
        await connection.ready()
    # Something may have been missed.
    status = await until(connection, lambda status: status.updated)
    assert status.watched == {"note://1"}
    asks = {"modern": "listen note://1", "legacy": "resources/subscribe note://1"}[era]
    await eventually(lambda: words_in(asked).count(asks) == 2)
    with anyio.fail_after(SECONDS):
        await connection.read_resource("note://1")
    assert connection.status.updated == {}
    await step(connection, "update", "note://1")
    await until(connection, lambda status: status.updated)


@pytest.mark.full
async def test_a_stream_that_was_lost_is_asked_for_again(
    connections: Connections, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    connection = connections.connect(offering("modern", "none", str(asked)))
    with anyio.fail_after(SECONDS):
        await connection.watch_resource("note://1")
    await step(connection, "lose")
    await eventually(lambda: words_in(asked).count("listen note://1") == 2)
    status = await until(connection, lambda status: status.updated)
    with anyio.fail_after(SECONDS):
        await connection.read_resource("note://1")
    await step(connection, "update", "note://1")
    assert await until(connection, lambda status: status.updated) != status


@pytest.mark.parametrize("era", ERAS)
async def test_a_resource_that_may_not_be_watched_is_not(
    connections: Connections, era: str
) -> None:
    connection = connections.connect(offering(era))
    with anyio.fail_after(SECONDS):
        await connection.watch_resource("note://1")
        with pytest.raises(ToolError, match="watched"):
            await connection.watch_resource("secret://1")
    assert connection.status.watched == {"note://1"}
    await step(connection, "update", "note://1")
    await until(connection, lambda status: status.updated)


async def test_a_server_that_tells_nothing_cannot_be_watched(connections: Connections) -> None:
    connection = connections.connect(raw())
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match="does not tell of changes"):
        await connection.watch_resource("note://1")


@pytest.mark.full
async def test_only_so_many_are_watched(connections: Connections) -> None:
    connection = connections.connect(offering("legacy"))
    with anyio.fail_after(SECONDS):
        for number in range(MAX_WATCHED):
            await connection.watch_resource(f"note://{number}")
        with pytest.raises(ToolError, match="the limit"):
            await connection.watch_resource("note://more")
    assert len(connection.status.watched) == MAX_WATCHED


async def test_a_wait_for_a_silent_server_ends(connections: Connections) -> None:
    fault = "silent resources/subscribe"
    connection = connections.connect(offering("legacy", fault, call_seconds=0.2))
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match="no answer in time"):
        await connection.watch_resource("note://1")
    assert connection.status.watched == frozenset()


@pytest.mark.parametrize("protocol", ["2026-07-28", pytest.param("legacy", marks=pytest.mark.full)])
async def test_a_server_of_the_sdk_tells_over_http(
    connections: Connections, protocol: Protocol
) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        connection = connections.connect(ServerSpec("web", "http", url=url, protocol=protocol))
        with anyio.fail_after(SECONDS):
            await connection.watch_resource("note://all")
            await connection.call("touch", {"uri": "note://all"})
            await until(connection, lambda status: "note://all" in status.updated)
            await connection.unwatch_resource("note://all")
            await connection.call("grow", {})
            await until(connection, lambda status: len(status.prompts) == 2)
            await until(connection, lambda status: len(status.resources) == 4)
