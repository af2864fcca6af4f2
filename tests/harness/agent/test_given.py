"""What an agent is made with and asked is checked, in words, before anything of it is kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.agent.agent import Agent
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel
from web.harness.values.config import DEMO_MODEL, AgentConfig
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import ToolResultBlock
from web.harness.values.model import ModelChunk, ModelRequest

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("message", [None, 5, b"x", ["a"], {"a": 1}])
async def test_what_is_no_text_is_refused_and_the_next_turn_works(message: Any) -> None:
    agent = Agent(provider=ScriptedProvider(says("ok")))
    with pytest.raises(TypeError, match="A message is text"):
        await agent.run(message)
    with pytest.raises(TypeError, match="A message is text"):
        async with agent.run_stream(message):
            raise AssertionError("it was let in")
    with pytest.raises(TypeError, match="attachment"):
        await agent.run("hello", attachments=["x"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="Attachments are a list"):
        await agent.run("hello", attachments="x")  # type: ignore[arg-type]
    assert (len(agent.memory), agent.is_running) == (0, False)
    assert (await agent.run("hello")).text == "ok"


@pytest.mark.parametrize("config", ["You are a helper.", {"model": "demo:demo"}, 5])
def test_what_is_no_configuration_is_refused_with_the_way_to_make_one(config: Any) -> None:
    with pytest.raises(ConfigurationError, match="takes an AgentConfig") as refused:
        Agent(config)
    assert "AgentConfig(system_prompt=...)" in refused.value.hint


@pytest.mark.parametrize("provider", ["openai", 5, object()])
def test_what_is_no_provider_is_refused_with_the_way_to_make_one(provider: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no provider") as refused:
        Agent(provider=provider)
    assert "make_provider('openai', api_key=...)" in refused.value.hint


async def test_functions_are_taken_as_tools() -> None:
    def double(number: int) -> str:
        """Doubles."""
        return str(number * 2)

    def triple(number: int) -> str:
        return str(number * 3)

    agent = Agent(
        provider=ScriptedProvider(calls(("triple", {"number": 2})), says("ok")),
        tools=[double, function_tool(triple, permission=PermissionLevel.ALLOW)],
    )
    assert [tool.name for tool in agent.tools] == ["double", "triple"]
    assert (await agent.run("hello")).status == "completed"


@pytest.mark.parametrize("tools", ["abc", 5, [5], [None], [int]])
def test_what_is_no_tool_is_refused(tools: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no"):
        Agent(tools=tools)


def test_the_text_of_a_model_is_taken_for_it() -> None:
    assert AgentConfig(model="demo:demo").model == DEMO_MODEL  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        AgentConfig(model="demo")  # type: ignore[arg-type]


async def test_a_tool_cannot_replace_the_messages_of_its_own_run() -> None:
    agent = Agent(provider=ScriptedProvider(calls(("clear", {})), says("ok")))

    @agent.tools.register(permission=PermissionLevel.ALLOW)
    def clear() -> None:
        agent.memory.set_messages([])

    assert (await agent.run("hello")).status == "completed"
    said = agent.memory.get_messages()
    assert [message.role for message in said] == ["user", "assistant", "tool", "assistant"]
    result = said[2].content[0]
    assert isinstance(result, ToolResultBlock)
    assert "has a run under way" in result.text
    agent.memory.set_messages([])
    assert len(agent.memory) == 0


class Odd(BaseException):
    """No Exception, as some libraries raise."""


class Breaks:
    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        raise Odd
        yield []

    async def aclose(self) -> None:
        pass


async def test_what_a_provider_raises_comes_out_by_itself_and_the_agent_is_free() -> None:
    agent = Agent(provider=Breaks())
    with pytest.raises(Odd):
        await agent.run("hello")
    assert not agent.is_running
