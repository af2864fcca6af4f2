"""What a runtime lends to drivers and tools, and when it takes it back."""

from __future__ import annotations

import asyncio

import pytest

from tests.examples import resources as example
from tests.support.live_things import Opener
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.stores import session_of
from web.harness.agent.agent import Agent
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.resources import ResourcePool
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.subagents import sub_agent_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.resource import Resource
from web.harness.tools.tool import PermissionLevel, ToolContext
from web.harness.values.errors import SessionConflict
from web.harness.values.messages import Message, TextBlock, ToolResultBlock

pytestmark = pytest.mark.anyio

MESSAGE = Message("m", "user", (TextBlock("hello"),))


@pytest.mark.parametrize("how", ["well", "badly", "cancelled"])
async def test_what_was_lent_for_a_run_is_disposed_of_before_the_session_is_free(how: str) -> None:
    store = InMemorySessionStore()
    runtime, started, opener = HarnessRuntime(store), asyncio.Event(), Opener()
    conflicts: list[str] = []

    async def opens() -> Resource[str]:
        async def dispose() -> None:
            with pytest.raises(SessionConflict) as caught:
                await store.acquire(LOCAL_IDENTITY, "s")
            conflicts.append(caught.value.code)

        return Resource("held", dispose=dispose)

    async def driver(services: ExecutionServices) -> None:
        await services.resource("x", "run", opener)
        await services.resource("y", "run", opens)
        await services.resource("z", "session", opener)
        started.set()
        if how == "badly":
            raise ValueError("broken")
        if how == "cancelled":
            await asyncio.Event().wait()

    run = asyncio.ensure_future(runtime.run(LOCAL_IDENTITY, "s", driver))
    await asyncio.wait_for(started.wait(), 5)
    if how == "cancelled":
        run.cancel()
    await asyncio.wait({run})
    assert [thing.disposals for thing in opener.opened] == [1, 0]
    assert conflicts == ["session_conflict"]
    assert (run.cancelled(), not run.cancelled() and run.exception() is not None) == (
        how == "cancelled",
        how == "badly",
    )
    assert await runtime.resources.close_session(LOCAL_IDENTITY, "s") == []
    assert [thing.disposals for thing in opener.opened] == [1, 1]


async def test_resources_are_not_closed_during_a_run() -> None:
    runtime, opener = HarnessRuntime(InMemorySessionStore()), Opener()

    async def driver(services: ExecutionServices) -> None:
        await services.resource("x", "session", opener)
        with pytest.raises(SessionConflict):
            await runtime.resources.close_session(LOCAL_IDENTITY, "s")

    await runtime.run(LOCAL_IDENTITY, "s", driver)
    assert opener.opened[0].is_open


async def test_a_pool_that_was_handed_in_stays_open_and_its_own_is_closed() -> None:
    pool = ResourcePool()
    for resources, disposals in ((pool, 0), (None, 1)):
        opener = Opener()

        async def driver(services: ExecutionServices, opener: Opener = opener) -> None:
            await services.resource("x", "session", opener)

        async with HarnessRuntime(InMemorySessionStore(), resources) as runtime:
            await runtime.run(LOCAL_IDENTITY, "s", driver)
        assert [thing.disposals for thing in opener.opened] == [disposals]
    assert pool.ids(LOCAL_IDENTITY, "s") == ("x",)


async def test_closing_resources_deletes_no_transcript() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def says_hello(services: ExecutionServices) -> None:
        services.history.append(MESSAGE)

    await runtime.run(LOCAL_IDENTITY, "s", says_hello)
    await runtime.resources.close_session(LOCAL_IDENTITY, "s")
    assert (await session_of(runtime.sessions)).history == (MESSAGE,)


def counting_tools() -> ToolRegistry:
    """A tool that counts in the application's state and keeps something open in the session."""
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def count(context: ToolContext) -> str:
        lent = await context.resource("counter", "session", open_counter)
        lent.value.append(context.call_id)
        context.state["calls"] = context.state.get("calls", 0) + 1
        return f"{context.state['calls']} calls, {len(lent.value)} with what is open"

    return registry


async def open_counter() -> Resource[list[str]]:
    return Resource([])


async def test_a_tool_reaches_the_state_and_the_resources_of_its_session() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())
    results: list[str] = []

    async def driver(services: ExecutionServices) -> None:
        async with Agent(
            provider=ScriptedProvider(calls(("count", {})), says("done")),
            tools=counting_tools(),
            messages=services.history,
            state=services.state,
            resource=services.resource,
        ) as agent:
            await agent.run("count")
            services.history = agent.memory.get_messages()
        results.extend(
            block.text
            for message in services.history
            for block in message.content
            if isinstance(block, ToolResultBlock)
        )

    await runtime.run(LOCAL_IDENTITY, "s", driver)
    await runtime.run(LOCAL_IDENTITY, "s", driver)
    await runtime.resources.close_session(LOCAL_IDENTITY, "s")
    await runtime.run(LOCAL_IDENTITY, "s", driver)
    assert (results[0], results[2], results[-1]) == (
        "1 calls, 1 with what is open",
        "2 calls, 2 with what is open",
        "3 calls, 1 with what is open",
    )
    assert (await session_of(runtime.sessions)).state == {"calls": 3}


async def test_a_tool_of_a_sub_agent_reaches_the_same_resources() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())
    delegate = sub_agent_tool("helper", "Helps.", tools=counting_tools())
    provider = ScriptedProvider(
        calls(("helper", {"task": "count"})), calls(("count", {})), says("counted"), says("done")
    )

    async def driver(services: ExecutionServices) -> None:
        async with Agent(
            provider=provider, tools=ToolRegistry([delegate]), resource=services.resource
        ) as agent:
            await agent.run("count")

    await runtime.run(LOCAL_IDENTITY, "s", driver)
    assert runtime.resources.ids(LOCAL_IDENTITY, "s") == ("counter",)


async def test_a_tool_outside_of_a_runtime_is_told_that_there_are_no_resources() -> None:
    provider = ScriptedProvider(calls(("count", {})), says("done"))
    async with Agent(provider=provider, tools=counting_tools()) as agent:
        await agent.run("count")
        messages = agent.memory.get_messages()
    results = [
        block.text
        for message in messages
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
    assert "HarnessRuntime" in results[0]


async def test_the_example_goes_on_in_its_session_and_closes_what_it_opened(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await example.main()
    said = capsys.readouterr().out
    assert "`milk / bread`" in said
    assert "revision 2, {'jotted': 2}" in said
    assert said.endswith("the scratchpad is closed\ncould not be closed: []\n")
