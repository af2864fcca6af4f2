"""A conversation with a model of 8,192 tokens goes on for ever; late turns cost as early ones."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median

import pytest

from tests.harness.agent.agents import of_type
from tests.support.loop_holds import loop_holds
from web.harness.agent.agent import Agent
from web.harness.providers.demo.provider import DemoProvider
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.codec import check_conversation
from web.harness.values.config import SMALL_DEMO_MODEL, AgentConfig
from web.harness.values.events import ContextCondensed, ErrorReport, Event, Note, RunResult
from web.harness.values.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock

pytestmark = pytest.mark.anyio

SHORT, LONG = 150, 2_000
FACT = "My cat is called Mozart"


@dataclass
class Told:
    """What a long conversation brought."""

    condensed: list[ContextCondensed] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


def tools() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def read_page(number: int) -> str:
        """Reads a page of the book."""
        return f"Page {number}: " + "so it went on, " * (10 + number * 37 % 600)

    return registry


def message(turn: int) -> str:
    """Turns as people have them: words, short answers, long ones, calls, several in one turn."""
    kinds = (
        f"Turn {turn}, nothing to do",
        f"long {100 + turn * 13 % 500}",
        f"/read_page {turn}",
        f"/read_page {turn} then /read_page {turn + 1} then /read_page {turn + 2}",
        f"parallel: /read_page {turn}; /read_page {turn + 5}",
        f"Some words of turn {turn}: " + "and so on " * (turn * 7 % 120),
    )
    return kinds[turn % len(kinds)]


async def talk(agent: Agent, turns: int) -> Told:
    told = Told()
    for turn in range(turns):
        began = time.process_time()
        events: list[Event] = []
        async with agent.run_stream(FACT if turn == 0 else message(turn)) as stream:
            events += [event async for event in stream]
        told.seconds.append(time.process_time() - began)
        result = events[-1].body
        assert isinstance(result, RunResult)
        assert result.status == "completed", (turn, of_type(events, ErrorReport))
        told.condensed += of_type(events, ContextCondensed)
        told.notes += of_type(events, Note)
        told.sizes.append(agent.memory.tokens)
    return told


@pytest.mark.parametrize("turns", [SHORT, pytest.param(LONG, marks=pytest.mark.full)])
async def test_a_long_conversation_with_a_small_model_never_fails_for_its_length(
    turns: int,
) -> None:
    config = AgentConfig(model=SMALL_DEMO_MODEL, system_prompt="You are a patient reader.")
    async with Agent(config, provider=DemoProvider(pace=0), tools=tools()) as agent:
        told = await talk(agent, turns)
        kept = agent.memory.get_messages()
        check_conversation(kept)
        assert agent.learned_limits.get(SMALL_DEMO_MODEL) == 8_192
        assert any(message.text.startswith("Some words of turn") for message in kept)
    assert len(told.condensed) > turns / 50
    assert all(each.after < each.before for each in told.condensed)
    assert any(each.cleared for each in told.condensed)
    assert told.notes == []
    assert FACT in told.condensed[0].summary + "".join(each.summary for each in told.condensed[:3])
    # The conversation is as large late as it was early, and so is the cost of a turn.
    assert max(told.sizes) < 8_192
    tenth = turns // 10
    early, late = told.seconds[2 * tenth : 5 * tenth], told.seconds[-3 * tenth :]
    if turns == LONG:
        # A cost that grew with the turns would be 2.4 times as large.
        assert median(late) <= 1.5 * median(early)


@pytest.mark.full
async def test_the_first_turn_of_a_long_conversation_leaves_others_the_event_loop() -> None:
    messages: list[Message] = []
    for at in range(20_000):
        use = ToolUseBlock(f"c{at}", "look", {"number": at, "list": [at, {"a": at}]})
        result = ToolResultBlock(use.id, (TextBlock("it " * 70),))
        before = messages[-1].id if messages else None
        messages += (
            Message(f"a{at}", "assistant", (TextBlock("I look."), use), before),
            Message(f"t{at}", "tool", (result,), f"a{at}"),
        )
    async with (
        Agent(provider=DemoProvider(pace=0), messages=messages) as agent,
        loop_holds() as holds,
    ):
        await agent.run("hello")
    assert holds.longest < 0.05
