"""The demo server asks for a pizza order and tells its progress, in both eras, through an agent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest

from tests.harness.agent.agents import agent_for, of_type
from tests.support.environment import CHECKOUT
from tests.support.scripted_provider import calls, says
from web.harness.agent.agent import Agent
from web.harness.mcp.asking import Elicitation, ElicitationAnswer
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections
from web.harness.mcp.offered import offered_tools
from web.harness.mcp.questions import asker
from web.harness.mcp.spec import Protocol, ServerSpec
from web.harness.tools.forms import read_form
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import InputAnswer
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import Event, InputAnswered, InputRequired, ToolProgress, ToolResult
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

ERAS: tuple[Protocol, ...] = ("2026-07-28", "legacy")
SECONDS = 60


async def demo_agent(
    connections: Connections,
    protocol: Protocol,
    *uses: tuple[str, JsonObject],
    call_seconds: float = SECONDS,
) -> Agent:
    """An agent with the demo server's tools, whose model calls these."""
    connection = await demo_server(connections, protocol, call_seconds=call_seconds)
    offered = offered_tools("demo", connection.status.tools, connection.call)
    registry = ToolRegistry(each.tool for each in offered)
    names = {each.wire_name: each.tool.name for each in offered}
    return agent_for(
        calls(*((names[name], arguments) for name, arguments in uses)),
        says("ok"),
        tools=registry,
        permissions=Permissions(grants=names.values()),
    )


async def demo_server(
    connections: Connections, protocol: Protocol, *args: str, call_seconds: float = SECONDS
) -> Connection:
    """A connection to the demo server, or to what else Python is started with, as a process."""
    spec = ServerSpec(
        "demo",
        "stdio",
        command=sys.executable,
        args=args or ("-m", "web", "demo-server"),
        cwd=str(CHECKOUT),
        protocol=protocol,
        call_seconds=call_seconds,
    )
    connection = connections.connect(spec)
    await connection.ready()
    return connection


async def run(agent: Agent, answer: Callable[[InputRequired], None]) -> list[Event]:
    events = []
    async with asyncio.timeout(SECONDS), agent.run_stream("hello") as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event.body, InputRequired):
                answer(event.body)
    return events


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["2026-07-28", "legacy"])
async def test_a_pizza_is_ordered_by_a_form_while_another_call_tells_how_far_it_is(
    connections: Connections, protocol: Protocol
) -> None:
    counting = ("count_to", {"number": 3, "pause_seconds": 0.2})
    agent = await demo_agent(connections, protocol, ("order_pizza", {}), counting, call_seconds=1)
    order = {"name": "Ada", "pizzas": 2, "size": "large", "toppings": ["basil"]}
    timers: list[asyncio.TimerHandle] = []

    def answer(asked: InputRequired) -> None:
        assert asked.request["server"] == "demo"
        assert asked.request["message"] == "What pizza would you like?"
        fields = read_form(asked.request["schema"])
        assert [field.kind for field in fields] == [
            "text",
            "integer",
            "choice",
            "choices",
            "boolean",
        ]
        with pytest.raises(DecisionRefused, match="name"):
            agent.answer_input(asked.key, "accept", {"pizzas": 99})
        # Longer than a call may be silent: the clock stands still. In the older protocol nobody
        # knows whose question it is, and the other call may end before it is answered.
        loop = asyncio.get_running_loop()
        timers.append(loop.call_later(1.5, agent.answer_input, asked.key, "accept", order))
        for earlier in timers[:-1]:
            earlier.cancel()

    events = await run(agent, answer)
    results = {result.name.partition("__")[2]: result for result in of_type(events, ToolResult)}
    assert "for Ada: 2 pizzas, large, with basil" in results["order_pizza"].text
    assert "Counted to 3" in results["count_to"].text
    told = of_type(events, ToolProgress)
    assert (told[-1].done, told[-1].total, told[-1].message) == (3, 3, "3 of 3")


@pytest.mark.full
@pytest.mark.parametrize("protocol", ERAS)
async def test_nothing_is_ordered_where_the_person_declines(
    connections: Connections, protocol: Protocol
) -> None:
    agent = await demo_agent(connections, protocol, ("order_pizza", {}))
    events = await run(agent, lambda asked: agent.answer_input(asked.key, "decline"))
    assert "declined" in of_type(events, ToolResult)[0].text


@pytest.mark.parametrize("protocol", [pytest.param("2026-07-28", marks=pytest.mark.full), "legacy"])
async def test_stopping_while_the_form_is_open_leaves_a_server_that_works(
    connections: Connections, protocol: Protocol
) -> None:
    agent = await demo_agent(connections, protocol, ("order_pizza", {}))
    events = await run(agent, lambda asked: agent.cancel())
    assert [each.action for each in of_type(events, InputAnswered)] == ["withdrawn"]
    (connection,) = connections
    async with asyncio.timeout(SECONDS):
        result = await connection.call("greet", {"name": "Ada"})
    assert not result.is_error


@pytest.mark.full
async def test_two_forms_are_open_at_once(connections: Connections) -> None:
    agent = await demo_agent(connections, "2026-07-28", ("order_pizza", {}), ("order_pizza", {}))
    asked: list[str] = []

    def answer(required: InputRequired) -> None:
        asked.append(required.key)
        if len(asked) == 2:
            for name, key in zip(("Ada", "Bob"), asked, strict=True):
                agent.answer_input(key, "accept", {"name": name})

    said = " ".join(result.text for result in of_type(await run(agent, answer), ToolResult))
    assert "for Ada" in said
    assert "for Bob" in said


async def test_an_address_to_visit_is_asked_as_such_and_its_words_are_tidy() -> None:
    asked: list[JsonObject] = []

    async def ask(request: JsonObject, /, *, state: JsonObject | None = None) -> InputAnswer:
        asked.append(request)
        return InputAnswer("accept")

    url = "https://shop.example/pay?order=1"
    answer = await asker(ask)(Elicitation("shop", "Pay\u202e here", "url", url=url))
    assert answer == ElicitationAnswer("accept")
    assert asked == [{"mode": "url", "server": "shop", "message": "Pay here", "url": url}]


async def test_a_question_that_nobody_could_read_is_declined() -> None:
    async def ask(request: JsonObject, /, *, state: JsonObject | None = None) -> InputAnswer:
        raise AssertionError("it was put")

    many = {"properties": {str(number): {"type": "string"} for number in range(10_000)}}
    for question in (
        Elicitation("shop", "Fill in", schema=many),
        Elicitation("shop", "Go", "url", url="https://shop.example/" + "a" * 100_000),
    ):
        assert (await asker(ask)(question)).action == "decline"
