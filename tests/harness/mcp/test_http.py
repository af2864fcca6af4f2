"""Servers over HTTP: found, refused in words, followed, and made anew after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace

import anyio
import pytest

from tests.support.mcp_sdk import build_server, listening, text_of
from tests.support.mcp_wire import SECONDS, answering, until
from web.harness.mcp.asking import Elicitation, ElicitationAnswer
from web.harness.mcp.connections import Connections, Ways, live_connections
from web.harness.mcp.failures import NEEDS_LEGACY
from web.harness.mcp.spec import Kind, Protocol, ServerSpec
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio


def web(port: int, path: str = "mcp", **fields: object) -> ServerSpec:
    spec = ServerSpec("web", "http", url=f"http://127.0.0.1:{port}/{path}")
    return replace(spec, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "headers", "body", "state", "cause"),
    [
        ("401 No", ["WWW-Authenticate: Bearer"], "", "sign_in", "asks you to sign in."),
        ("403 No", [], "", "failed", "refuses access (403)."),
        ("404 No", [], "", "failed", "/mcp (404)."),
        ("405 No", [], "", "failed", "/mcp (405)."),
        ("429 No", [], "", "failed", "gets too many requests (429)."),
        ("500 No", [], "", "failed", "has an error of its own (500)."),
        ("503 No", [], "", "failed", "has an error of its own (503)."),
        (
            "200 OK",
            ["Content-Type: text/html"],
            "<p>",
            "failed",
            "answers with text/html, not with",
        ),
        ("200 OK", ["Content-Type: application/json"], "{}", "failed", "answers that are not MCP."),
        ("302 Go", ["Location: http://elsewhere.example/"], "", "failed", "elsewhere.example"),
        ("202 OK", [], "", "failed", "202 Accepted"),
    ],
)
async def test_a_refusal_is_one_line(
    connections: Connections, status: str, headers: list[str], body: str, state: str, cause: str
) -> None:
    async with answering(status, body, headers) as spec:
        connection = connections.connect(spec)
        now = await until(connection, lambda status: status.state != "connecting")
        assert now.state == state
        assert cause in now.cause
        assert "\n" not in now.cause
        assert len(now.cause) < 300
        with pytest.raises(ToolError):
            await connection.ready()


async def test_an_address_where_nothing_listens_is_tried_again(connections: Connections) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        pass
    connection = connections.connect(web(port))
    status = await until(connection, lambda status: status.state == "failed")
    assert status.cause == f"Nothing listens at 127.0.0.1:{port}."
    async with listening(build_server().streamable_http_app(), port):
        connection.retry()
        await until(connection, lambda status: status.state == "ready")
        await connections.disconnect("web")


async def test_a_server_that_takes_the_connection_and_is_silent_has_a_limit(
    connections: Connections,
) -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    async with server:
        spec = web(server.sockets[0].getsockname()[1], connect_seconds=0.3)
        connection = connections.connect(spec)
        status = await until(connection, lambda status: status.state == "failed")
        assert status.cause.endswith("gave no answer within 0.3 seconds.")
        await connections.disconnect("web")


@pytest.mark.parametrize(
    ("protocol", "version"),
    [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")],
)
async def test_each_era_is_spoken_and_its_changes_are_followed(
    connections: Connections, protocol: Protocol, version: str
) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        connection = connections.connect(web(port, protocol=protocol))
        await connection.ready()
        assert connection.status.protocol == version
        reports: list[float] = []
        args = {"count": 2, "seconds": 0.01}
        result = await connection.call(
            "steps", args, on_progress=lambda done, total, words: reports.append(done)
        )
        assert (text_of(result), reports[-1]) == ("done", 2.0)
        point = await connection.call("point", {"x": 1, "y": 2})
        assert point.structured_content == {"x": 1, "y": 2}
        failed = await connection.call("fail", {})
        assert failed.is_error
        # The subscription of the newer protocol may open a moment after the connection is ready.
        with anyio.fail_after(SECONDS):
            while "late" not in [tool.name for tool in connection.status.tools]:
                await connection.call("grow", {})
        await connections.disconnect("web")


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_the_older_http_is_found_where_only_it_is_spoken(kind: Kind) -> None:
    ways: Ways = {}
    async with (
        listening(build_server().sse_app()) as port,
        live_connections(os.environ, ways=ways) as connections,
    ):
        connection = connections.connect(web(port, "sse", kind=kind))
        await connection.ready()
        assert text_of(await connection.call("echo", {"text": "hi"})) == "hi"
        # What was searched for is remembered for the next time.
        assert [way.sse for way in ways.values()] == [kind == "http"]
        await connections.aclose()


async def test_an_older_server_that_dies_while_idle_is_noticed(connections: Connections) -> None:
    async with listening(build_server().sse_app()) as port:
        connection = connections.connect(web(port, "sse", kind="sse"))
        await connection.ready()
    await until(connection, lambda status: status.state == "failed")


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["auto", pytest.param("legacy", marks=pytest.mark.full)])
async def test_a_server_that_was_restarted_is_connected_anew(
    connections: Connections, protocol: Protocol
) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        connection = connections.connect(web(port, protocol=protocol))
        await connection.ready()
    # The next call, or the lost stream, shows that it is gone.
    await until(connection, lambda status: status.state != "ready")
    async with listening(build_server().streamable_http_app(), port):
        await until(connection, lambda status: status.state == "ready")
        assert text_of(await connection.call("echo", {"text": "again"})) == "again"
        await connections.disconnect("web")


async def test_a_session_that_the_server_has_forgotten_is_not_used_for_ever(
    connections: Connections,
) -> None:
    server = build_server()
    app = server.streamable_http_app()
    async with listening(app) as port:
        connection = connections.connect(web(port, protocol="legacy"))
        await connection.ready()
        # As after a restart that was too quick to be seen: the sessions are gone.
        server.session_manager._server_instances.clear()
        with pytest.raises(ToolError, match="forgotten this session, so 'echo' was not run"):
            await connection.call("echo", {"text": "lost"})
        assert text_of(await connection.call("echo", {"text": "found"})) == "found"
        await connections.disconnect("web")


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_cancelling_the_caller_stops_the_tool(
    connections: Connections, protocol: Protocol
) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        connection = connections.connect(web(port, protocol=protocol))
        await connection.ready()
        with anyio.fail_after(SECONDS):
            while text_of(await connection.call("cancellations", {})) == "0":
                # It may end before it has begun.
                with anyio.move_on_after(0.2):
                    await connection.call("wait", {"seconds": 600})
        await connections.disconnect("web")


async def test_a_question_reaches_whoever_made_the_call(connections: Connections) -> None:
    asked: list[Elicitation] = []

    async def ask(question: Elicitation) -> ElicitationAnswer:
        asked.append(question)
        return ElicitationAnswer("accept", {"flavour": "mint"})

    async with listening(build_server().streamable_http_app()) as port:
        spec = web(port, protocol="legacy")
        connection = connections.connect(spec)
        await connection.ready()
        assert text_of(await connection.call("order", {}, ask=ask)) == "accept: mint"
        assert (asked[0].server, asked[0].message) == ("web", "Which flavour?")
        assert asked[0].schema is not None
        assert "flavour" in asked[0].schema["properties"]
        assert text_of(await connection.call("order", {})) == "decline: -"
        await connections.disconnect("web")


async def test_a_question_of_the_older_kind_says_how_it_can_be_asked(
    connections: Connections,
) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        connection = connections.connect(web(port))
        await connection.ready()
        with pytest.raises(ToolError) as caught:
            await connection.call("order", {})
        assert caught.value.code == NEEDS_LEGACY
        await connections.disconnect("web")


async def test_headers_are_sent_and_never_shown(connections: Connections) -> None:
    async with answering("401 No", "", ['WWW-Authenticate: Bearer error="abc-secret"']) as spec:
        connection = connections.connect(replace(spec, headers={"Authorization": "abc-secret"}))
        status = await until(connection, lambda status: status.state == "failed")
        assert "does not take the Authorization header" in status.cause
        assert "abc-secret" not in repr(status) + repr(connection.spec)


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_comments_without_an_end_are_no_answer(kind: Kind, anyio_backend: str) -> None:
    async def comment(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        with contextlib.suppress(OSError):
            while not writer.is_closing():
                writer.write(b": \n\n\n" * 100)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(comment, "127.0.0.1", 0)
    async with server, live_connections(os.environ) as connections:
        spec = web(server.sockets[0].getsockname()[1], kind=kind, connect_seconds=0.3)
        status = await until(connections.connect(spec), lambda now: now.state == "failed")
        assert status.cause.endswith("gave no answer within 0.3 seconds.")
