"""Pages that a person has to visit before a call is served, or until the server says it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.support.mcp_features import build_server
from tests.support.mcp_sdk import listening, text_of
from tests.support.mcp_wire import SECONDS
from web.harness.mcp.asking import Elicitation, ElicitationAnswer
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections
from web.harness.mcp.spec import ServerSpec
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def paying(connections: Connections) -> AsyncIterator[Connection]:
    """A server of the older protocol, which alone has both."""
    async with listening(build_server().streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        spec = ServerSpec("shop", "http", url=url, protocol="legacy")
        with anyio.fail_after(SECONDS):
            yield connections.connect(spec)
        await connections.disconnect("shop")


async def test_a_call_is_served_once_the_page_was_visited(connections: Connections) -> None:
    asked: list[Elicitation] = []

    async def ask(question: Elicitation) -> ElicitationAnswer:
        asked.append(question)
        return ElicitationAnswer("accept")

    async with paying(connections) as connection:
        assert text_of(await connection.call("buy", {}, ask=ask)) == "bought"
        assert asked == [Elicitation("shop", "Pay here", "url", url="https://pay.example/now")]
        # Asked for once more, it is a failure and no circle.
        with pytest.raises(ToolError, match="has to visit a page for 'buy' first"):
            await connection.call("buy", {"ever": False}, ask=ask)
    assert len(asked) == 2


async def test_a_call_fails_in_words_where_nobody_visits(connections: Connections) -> None:
    async def ask(question: Elicitation) -> ElicitationAnswer:
        return ElicitationAnswer("decline")

    async with paying(connections) as connection:
        with pytest.raises(ToolError, match="the person did not"):
            await connection.call("buy", {"ever": False}, ask=ask)
        with pytest.raises(ToolError, match="has to visit a page for 'buy' first"):
            await connection.call("buy", {"ever": False})


async def test_a_visit_that_is_done_ends_its_question(connections: Connections) -> None:
    asked = anyio.Event()

    async def ask(question: Elicitation) -> ElicitationAnswer:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    said = ""
    async with paying(connections) as connection, anyio.create_task_group() as group:

        async def pay() -> None:
            nonlocal said
            said = text_of(await connection.call("pay", {}, ask=ask))

        group.start_soon(pay)
        await asked.wait()
        # That of another question changes nothing.
        await connection.call("paid_elsewhere", {"id": "visit-9"})
        assert said == ""
        await connection.call("paid_elsewhere", {"id": "visit-2"})
    assert said == "paid: accept"
    assert [line.level for line in connection.status.log] == ["info"]
