"""A tool asks the person while it runs: answered once, checked, withdrawn with its call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.agent.agents import agent_for, of_type
from tests.support.scripted_provider import calls, says
from web.harness.agent.agent import Agent
from web.harness.tools.forms import FormRefused
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import InputAnswer, PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import (
    Event,
    InputAnswered,
    InputRequired,
    RunResult,
    ToolProgress,
    ToolResult,
)
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

FORM: JsonObject = {
    "mode": "form",
    "server": "shop",
    "message": "How many?",
    "schema": {
        "type": "object",
        "properties": {"count": {"type": "integer", "maximum": 9}},
        "required": ["count"],
    },
}


def asking(*, times: int = 1, timeout: float | None = None) -> ToolRegistry:
    """A tool that asks so many things at once and returns what was answered."""

    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        answers = await asyncio.gather(*(context.ask(FORM) for _ in range(times)))
        return ToolOutput.of("; ".join(f"{each.action} {each.content}" for each in answers))

    return ToolRegistry([_tool(handle, timeout)])


def _tool(handle: Any, timeout: float | None = None) -> Tool:
    return Tool(
        "order",
        "Orders.",
        {"type": "object"},
        handle,
        permission=PermissionLevel.ALLOW,
        timeout_seconds=timeout,
    )


async def run(agent: Agent, answer: Callable[[InputRequired], None]) -> list[Event]:
    """Runs one turn; each request is given to `answer` as it comes."""
    events = []
    async with asyncio.timeout(20), agent.run_stream("hello") as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event.body, InputRequired):
                answer(event.body)
    return events


def results(events: list[Event]) -> list[str]:
    return [result.text for result in of_type(events, ToolResult)]


async def test_the_tool_gets_what_the_person_filled_in() -> None:
    agent = agent_for(calls(("order", {})), says("ok"), tools=asking())
    events = await run(agent, lambda asked: agent.answer_input(asked.key, "accept", {"count": 2}))
    assert results(events) == ["accept {'count': 2}"]
    (asked,) = of_type(events, InputRequired)
    assert asked.request == FORM
    (answered,) = of_type(events, InputAnswered)
    assert (answered.key, answered.call_id, answered.action) == (
        asked.key,
        asked.call_id,
        "accept",
    )


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no(action: Any) -> None:
    agent = agent_for(calls(("order", {})), says("ok"), tools=asking())
    events = await run(agent, lambda asked: agent.answer_input(asked.key, action, {"count": 2}))
    assert results(events) == [f"{action} None"]


async def test_content_that_does_not_fit_leaves_the_form_open() -> None:
    agent = agent_for(calls(("order", {})), says("ok"), tools=asking())

    def answer(asked: InputRequired) -> None:
        for content in (None, {"count": 10}, {"count": "x"}, {"count": 1, "more": 1}):
            with pytest.raises(FormRefused) as refused:
                agent.answer_input(asked.key, "accept", content)
            assert refused.value.code == "invalid_arguments"
        agent.answer_input(asked.key, "accept", {"count": 9})

    assert results(await run(agent, answer)) == ["accept {'count': 9}"]


async def test_several_are_open_at_once_and_answered_in_any_order() -> None:
    agent = agent_for(calls(("order", {}), ("order", {})), says("ok"), tools=asking(times=2))
    asked: list[str] = []

    def answer(required: InputRequired) -> None:
        asked.append(required.key)
        if len(asked) == 4:
            for number, key in enumerate(reversed(asked)):
                agent.answer_input(key, "accept", {"count": number})

    said = results(await run(agent, answer))
    assert len(set(asked)) == 4
    numbers = [int(char) for char in " ".join(said) if char.isdigit()]
    # Each call has the answers to its own questions, in the order it asked them.
    assert sorted(numbers) == [0, 1, 2, 3]
    assert all(earlier > later for earlier, later in (numbers[:2], numbers[2:]))


async def test_an_answer_counts_once_and_not_when_it_is_too_late() -> None:
    agent = agent_for(calls(("order", {})), says("ok"), tools=asking())
    keys: list[str] = []

    def answer(asked: InputRequired) -> None:
        keys.append(asked.key)
        with pytest.raises(DecisionRefused, match="not open"):
            agent.answer_input(asked.key + "0", "decline")
        agent.answer_input(asked.key, "decline")
        with pytest.raises(DecisionRefused, match="answered already"):
            agent.answer_input(asked.key, "accept", {"count": 1})

    events = await run(agent, answer)
    assert len(of_type(events, InputAnswered)) == 1
    with pytest.raises(DecisionRefused, match="No run"):
        agent.answer_input(keys[0], "decline")


async def test_stopping_withdraws_what_is_open() -> None:
    agent = agent_for(calls(("order", {})), says("ok"), tools=asking(times=2))
    keys: list[str] = []

    def answer(asked: InputRequired) -> None:
        keys.append(asked.key)
        if len(keys) == 2:
            agent.cancel()

    events = await run(agent, answer)
    answered = of_type(events, InputAnswered)
    assert sorted((each.key, each.action) for each in answered) == [
        (key, "withdrawn") for key in sorted(keys)
    ]
    last = events[-1].body
    assert isinstance(last, RunResult)
    assert last.status == "cancelled"
    # They are closed before the call is said to have ended.
    kinds = [type(event.body) for event in events]
    assert kinds.index(ToolResult) > len(kinds) - 1 - kinds[::-1].index(InputAnswered)


async def test_a_task_that_outlives_its_call_asks_nobody() -> None:
    late: list[asyncio.Future[InputAnswer]] = []
    going = asyncio.Event()

    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        async def ask() -> InputAnswer:
            await going.wait()
            return await context.ask(FORM)

        late.append(asyncio.ensure_future(context.ask(FORM)))
        late.append(asyncio.ensure_future(ask()))
        await asyncio.sleep(0)
        return ToolOutput.of("done")

    agent = agent_for(calls(("order", {})), says("ok"), tools=ToolRegistry([_tool(handle)]))
    events = await run(agent, lambda asked: None)
    going.set()
    async with asyncio.timeout(10):
        assert [answer.action for answer in await asyncio.gather(*late)] == ["cancel", "cancel"]
    assert [each.action for each in of_type(events, InputAnswered)] == ["withdrawn"]
    kinds = [type(event.body) for event in events]
    assert kinds.index(InputAnswered) < kinds.index(ToolResult)


async def test_the_time_limit_stands_still_while_a_person_answers() -> None:
    agent = agent_for(calls(("order", {})), says("ok"), tools=asking(timeout=0.2))

    def later(asked: InputRequired) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.5, agent.answer_input, asked.key, "accept", {"count": 1})

    events = await run(agent, later)
    assert results(events) == ["accept {'count': 1}"]


async def test_the_time_limit_goes_on_after_the_answer() -> None:
    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        await context.ask(FORM)
        await asyncio.Event().wait()
        return ToolOutput.of("done")

    agent = agent_for(calls(("order", {})), says("ok"), tools=ToolRegistry([_tool(handle, 0.2)]))
    events = await run(agent, lambda asked: agent.answer_input(asked.key, "decline"))
    assert "longer than its limit" in results(events)[0]


async def test_without_anybody_to_ask_a_tool_is_declined() -> None:
    seen = []

    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        seen.append((await context.ask(FORM)).action)
        return ToolOutput.of("")

    agent = agent_for(calls(("order", {})), says("ok"), tools=ToolRegistry([_tool(handle)]))
    assert (await agent.run("hello")).status == "completed"
    assert seen == ["decline"]


async def test_an_answerer_is_asked() -> None:
    async def answerer(required: InputRequired) -> InputAnswer:
        return InputAnswer("accept", {"count": 3})

    agent = agent_for(calls(("order", {})), says("ok"), tools=asking(), answerer=answerer)
    assert results(await run(agent, lambda asked: None)) == ["accept {'count': 3}"]


async def test_progress_comes_at_a_readable_pace_and_always_with_the_last() -> None:
    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        step = 0
        # In each part something is told, however long the machine rests between them.
        for _ in range(3):
            ends = time.monotonic() + 0.12
            while time.monotonic() < ends:
                step += 1
                context.progress(step, None, f"step {step}")
                await asyncio.sleep(0)
        context.progress(float("nan"), None, "")
        context.progress(step + 1, 0, "last")
        return ToolOutput.of("done")

    agent = agent_for(calls(("order", {})), says("ok"), tools=ToolRegistry([_tool(handle)]))
    events = await run(agent, lambda asked: None)
    told = of_type(events, ToolProgress)
    assert 3 <= len(told) <= 8
    assert told[0].message == "step 1"
    assert (told[-1].message, told[-1].total) == ("last", None)
    kinds = [type(event.body) for event in events]
    assert kinds.index(ToolResult) > kinds.index(ToolProgress)


async def test_progress_may_be_told_from_a_thread() -> None:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def order(context: ToolContext) -> str:
        context.progress(1, 2, "half\nway")
        return "done"

    agent = agent_for(calls(("order", {})), says("ok"), tools=registry)
    (told,) = of_type(await run(agent, lambda asked: None), ToolProgress)
    assert (told.done, told.total, told.message) == (1, 2, "half way")
