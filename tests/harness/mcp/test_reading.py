"""Resources are read, prompts fetched and arguments completed, within limits."""

from __future__ import annotations

import anyio
import mcp_types as types
import pytest

from tests.support.mcp_features import build_server
from tests.support.mcp_sdk import listening
from tests.support.mcp_wire import SECONDS, offering, until
from web.harness.mcp.connections import Connections
from web.harness.mcp.reading import MAX_BLOB_CHARS
from web.harness.mcp.results import MAX_TEXT_CHARS
from web.harness.mcp.spec import Protocol, ServerSpec
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio

ERAS = ("modern", "legacy")
PLAN = types.PromptReference(name="plan")


@pytest.mark.parametrize("protocol", ["2026-07-28", "legacy"])
async def test_a_server_of_the_sdk_is_read(connections: Connections, protocol: Protocol) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        connection = connections.connect(ServerSpec("web", "http", url=url, protocol=protocol))
        with anyio.fail_after(SECONDS):
            status = await until(connection, lambda status: status.templates and status.prompts)
            assert status.resources[0].uri == "note://all"
            [notes] = (await connection.read_resource("note://all")).contents
            assert isinstance(notes, types.TextResourceContents)
            assert (notes.text, notes.mime_type) == ("Buy milk.", "text/plain")
            [dot] = (await connection.read_resource("picture://dot")).contents
            assert isinstance(dot, types.BlobResourceContents)
            [rain] = (await connection.read_resource("weather://fr/Nice")).contents
            assert isinstance(rain, types.TextResourceContents)
            assert rain.text == "Rain in Nice, fr."
            [big] = (await connection.read_resource("big://text")).contents
            assert isinstance(big, types.TextResourceContents)
            assert big.text.endswith("[Cut here: only 400,000 characters were read.]")
            assert len(big.text) < MAX_TEXT_CHARS + 100
            with pytest.raises(ToolError, match=r"The server has no resource note://none\."):
                await connection.read_resource("note://none")
            prompt = await connection.get_prompt("trip", {"country": "fr", "town": "Pau"})
            [message] = prompt.messages
            assert isinstance(message.content, types.TextContent)
            assert message.content.text == "Plan a trip to Pau in fr."
            with pytest.raises(ToolError, match="the prompt 'nowhere'"):
                await connection.get_prompt("nowhere", {})
            trip = types.PromptReference(name="trip")
            assert await connection.complete(trip, "town", "P", {"country": "fr"}) == (
                "Paris",
                "Pau",
            )
            weather = types.ResourceTemplateReference(uri="weather://{country}/{town}")
            assert await connection.complete(weather, "country", "d") == ("de",)


@pytest.mark.parametrize("era", ERAS)
async def test_one_bad_content_does_not_cost_the_others(connections: Connections, era: str) -> None:
    connection = connections.connect(offering(era))
    with anyio.fail_after(SECONDS):
        [content] = (await connection.read_resource("note://1")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text == "good"
        messages = (await connection.get_prompt("plan", {})).messages
    said = [
        (each.role, each.content.text if isinstance(each.content, types.TextContent) else None)
        for each in messages
    ]
    assert said == [
        ("user", "plain words"),
        ("user", '{"type": "hologram", "of": "a cat"}'),
        ("assistant", "fine"),
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_not_there_is_said_in_words(connections: Connections, era: str) -> None:
    connection = connections.connect(offering(era))
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match="has no resource note://gone"):
        await connection.read_resource("note://gone")


async def test_a_server_that_stays_silent_is_not_waited_for(connections: Connections) -> None:
    connection = connections.connect(offering("modern", "silent resources/read", call_seconds=0.1))
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match=r"no progress for 0\.1"):
        await connection.read_resource("note://1")
    await connections.disconnect("offering")
    connection = connections.connect(offering("legacy", "silent prompts/get", call_seconds=0.1))
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match=r"no progress for 0\.1"):
        await connection.get_prompt("plan", {})


async def test_completions_are_few_and_of_one_line(connections: Connections) -> None:
    connection = connections.connect(offering("modern"))
    with anyio.fail_after(SECONDS):
        await connection.ready()
        assert await connection.complete(PLAN, "where", "") == tuple(map(str, range(100)))


async def test_completion_never_fails(connections: Connections) -> None:
    connection = connections.connect(offering("legacy", "refuses completion/complete"))
    # Not connected yet.
    assert await connection.complete(PLAN, "where", "") == ()
    with anyio.fail_after(SECONDS):
        await connection.ready()
        assert await connection.complete(PLAN, "where", "") == ()


@pytest.mark.full
async def test_data_that_is_too_much_is_left_out_and_said_to_be(connections: Connections) -> None:
    server = build_server()

    @server.resource("big://data")
    def big() -> bytes:
        return bytes(MAX_BLOB_CHARS)

    async with listening(server.streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        connection = connections.connect(ServerSpec("web", "http", url=url))
        with anyio.fail_after(SECONDS):
            [content] = (await connection.read_resource("big://data")).contents
    assert isinstance(content, types.TextResourceContents)
    assert content.text == "[12,000,000 bytes of data were left out: too much.]"
