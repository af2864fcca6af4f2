"""A question of the newer protocol outlives the process that asked it, with the server's state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent.lives import Lives, Person
from tests.harness.mcp.test_asking import demo_server
from tests.support.scripted_provider import calls, says
from tests.support.written_run import WrittenRun
from web.harness.mcp.asking import Elicitation, ElicitationAnswer
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections
from web.harness.mcp.offered import offered_tools
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Continued, InputAnswer
from web.harness.values.errors import ToolError
from web.harness.values.events import InputRequired, RecoveryRequired, RunResult, ToolResult
from web.harness.values.messages import JsonObject
from web.harness.values.model import ModelRequest

pytestmark = pytest.mark.anyio

FORGETTING = str(Path(__file__).with_name("servers") / "forgetting.py")

ORDER: JsonObject = {"name": "Ada", "pizzas": 2, "size": "large", "toppings": ["basil"]}


async def state_of_question(connection: Connection) -> JsonObject:
    """What a call can go on from that has asked for an order, and was left then."""
    states: list[JsonObject | None] = []

    async def ask(question: Elicitation) -> ElicitationAnswer:
        states.append(question.state)
        return ElicitationAnswer("cancel")

    await connection.call("order_pizza", {}, ask=ask)
    (state,) = states
    assert state is not None
    return dict(json.loads(json.dumps(state)))


@pytest.mark.full
async def test_a_call_goes_on_from_its_question(connections: Connections) -> None:
    connection = await demo_server(connections, "2026-07-28")
    state = await state_of_question(connection)
    answer = Continued(state, InputAnswer("accept", ORDER))
    result = await connection.call("order_pizza", {}, continued=answer)
    assert "for Ada: 2 pizzas, large, with basil" in str(result.content)
    for broken in ({}, {**state, "requests": [1]}):
        with pytest.raises(ToolError, match="cannot be read"):
            await connection.call(
                "order_pizza", {}, continued=Continued(broken, InputAnswer("accept", ORDER))
            )


def orders(request: ModelRequest) -> list[Any]:
    said = request.messages[-1]
    if any(block.type == "tool_result" for block in said.content):
        return says("Ordered.")
    return calls(("demo__order_pizza", {}))


async def lived_twice(
    connections: Connections, *server: str, restarts: bool
) -> tuple[RunResult | None, Lives]:
    """A run that ends with its process while a form is open, and goes on in the next."""
    connection = await demo_server(connections, "2026-07-28", *server)

    def tools(written: WrittenRun) -> ToolRegistry:
        offered = offered_tools("demo", connection.status.tools, connection.call)
        return ToolRegistry(each.tool for each in offered)

    lives = Lives(script=orders, tools=tools, grants=("demo__order_pizza",))
    lives.person = None
    lives.ends_after("input_asked")
    assert await lives.live() is None
    if restarts:
        await connections.disconnect("demo")
        connection = await demo_server(connections, "2026-07-28", *server)
    lives.person = Person(content=ORDER)
    return await lives.live(), lives


@pytest.mark.parametrize("restarts", [False, pytest.param(True, marks=pytest.mark.full)])
async def test_a_form_that_was_open_when_the_process_ended_is_answered_in_the_next(
    connections: Connections, restarts: bool
) -> None:
    result, lives = await lived_twice(connections, restarts=restarts)
    assert result is not None
    assert result.text == "Ordered."
    assert [each.key for each in lives.written.of(InputRequired)] == ["r-1-0-in1"]
    assert not lives.written.of(RecoveryRequired)
    assert "for Ada: 2 pizzas" in lives.written.of(ToolResult)[0].text


@pytest.mark.full
async def test_a_server_that_does_not_know_its_own_question_any_more_ends_the_call_and_no_run(
    connections: Connections,
) -> None:
    result, lives = await lived_twice(connections, FORGETTING, restarts=True)
    assert result is not None
    assert result.status == "completed"
    (told,) = lives.written.of(ToolResult)
    assert told.is_error
    assert "restarted since, or too much time has passed" in told.text
