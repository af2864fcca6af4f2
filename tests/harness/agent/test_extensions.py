"""Extensions bring tools, hooks and state to an agent, and are closed with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.harness.agent.agents import agent_for
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.agent.agent import Agent
from web.harness.agent.extensions import BaseExtension
from web.harness.tools.hooks import Happening, HookEvent
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio


class Counter(BaseExtension):
    """Counts in a tool and by a hook; `log` notes when it is closed."""

    def __init__(self, name: str = "counter", log: list[str] | None = None) -> None:
        self.name = name
        self.count = 0
        self.runs = 0
        self.log = log if log is not None else []
        self.fails_to_close = False

    def install(self, agent: Agent) -> None:
        @agent.tools.register(name=f"count_{self.name}", permission=PermissionLevel.ALLOW)
        def count() -> str:
            self.count += 1
            return str(self.count)

        agent.hooks.on(HookEvent.RUN_ENDED, self.note)

    def note(self, happening: Happening) -> None:
        self.runs += 1

    def state(self) -> JsonObject:
        return {"count": self.count}

    def restore(self, state: JsonObject) -> None:
        self.count = state["count"]

    async def aclose(self) -> None:
        self.log.append(self.name)
        if self.fails_to_close:
            raise RuntimeError("cannot close")


class Broken(BaseExtension):
    name = "broken"

    def install(self, agent: Agent) -> None:
        agent.tools.register(name="half_way")(lambda: "x")
        agent.hooks.on(HookEvent.ERROR, print)
        raise RuntimeError("cannot be installed")


class Odd(BaseExtension):
    name = "odd"

    def __init__(self, state: Any) -> None:
        self._state = state

    def state(self) -> JsonObject:
        state: JsonObject = self._state
        return state


async def test_its_tool_and_hook_work_and_go_with_it() -> None:
    counter = Counter()
    registry = ToolRegistry()
    agent = agent_for(
        calls(("count_counter", {})), says("ok"), tools=registry, extensions=[counter]
    )
    async with agent:
        assert agent.extensions.names == ["counter"]
        assert agent.extensions.get("counter") is counter
        await agent.run("hello")
        assert (counter.count, counter.runs) == (1, 1)
    assert "count_counter" not in registry
    assert agent.hooks.handlers() == []
    assert agent.extensions.names == []


async def test_they_are_closed_in_reverse_order_and_one_that_fails_keeps_none_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []
    three = [Counter(name, log) for name in ("a", "b", "c")]
    three[1].fails_to_close = True
    agent = agent_for(says("ok"), extensions=three)
    await agent.aclose()
    await agent.aclose()
    assert log == ["c", "b", "a"]
    assert "The extension b could not be closed" in caplog.text


async def test_states_are_copies_and_come_back_to_the_extension_of_the_same_name() -> None:
    first = agent_for(says("ok"), extensions=[Counter("a"), Counter("b")])
    counter = first.extensions.get("b")
    assert isinstance(counter, Counter)
    counter.count = 7
    states = first.extensions.states()
    counter.count = 8
    assert states == {"a": {"count": 0}, "b": {"count": 7}}
    other = Counter("b")
    second = agent_for(says("ok"), extensions=[other, Counter("a")])
    second.extensions.restore(states)
    assert other.count == 7


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        ({"a": {"count": 1}, "x": {}}, "missing: x"),
        ({}, "not saved with it: a"),
    ],
)
async def test_other_names_than_were_saved_are_refused_and_nothing_is_restored(
    saved: dict[str, JsonObject], words: str
) -> None:
    counter = Counter("a")
    agent = agent_for(says("ok"), extensions=[counter])
    with pytest.raises(ConfigurationError, match=words) as refused:
        agent.extensions.restore(saved)
    assert refused.value.code == "extensions_differ"
    assert counter.count == 0


@pytest.mark.parametrize("state", [{"at": object()}, {1: "x"}, {"n": float("nan")}, ["list"]])
async def test_a_state_that_would_not_come_back_the_same_is_refused_by_name(state: Any) -> None:
    agent = agent_for(says("ok"), extensions=[Odd(state)])
    with pytest.raises(ConfigurationError, match="'odd'"):
        agent.extensions.states()


async def test_one_that_cannot_be_installed_leaves_nothing_of_itself_or_of_those_before() -> None:
    registry = ToolRegistry()
    with pytest.raises(RuntimeError, match="cannot be installed"):
        agent_for(says("ok"), tools=registry, extensions=[Counter(), Broken()])
    assert len(registry) == 0
    agent = agent_for(says("ok"), tools=registry)
    with pytest.raises(RuntimeError):
        agent.extensions.install(Broken())
    assert len(registry) == 0
    assert agent.hooks.handlers() == []


async def test_a_name_is_needed_and_used_once() -> None:
    with pytest.raises(ConfigurationError, match="'a' already"):
        agent_for(says("ok"), extensions=[Counter("a"), Counter("a")])
    with pytest.raises(ConfigurationError, match="is no name"):
        agent_for(says("ok"), extensions=[Counter("no name")])


class Telling(BaseExtension):
    """Tells a model something, or fails to."""

    def __init__(self, name: str, words: str) -> None:
        self.name = name
        self._words = words

    async def instructions(self) -> str:
        if not self._words:
            raise RuntimeError("nothing to say")
        return self._words


async def test_a_model_is_told_what_extensions_want_and_a_failing_one_ends_no_run() -> None:
    provider = ScriptedProvider(says("ok"))
    extensions = [Telling("one", "first"), Telling("two", ""), Telling("three", "last")]
    async with Agent(provider=provider, extensions=extensions) as agent:
        assert (await agent.run("hello")).status == "completed"
    assert provider.requests[0].system_prompt.endswith("first\n\nlast")


class Closes(BaseExtension):
    """Closes as it is told, and notes that it was asked to."""

    def __init__(self, name: str, log: list[str], how: Callable[[], Awaitable[None]]) -> None:
        self.name, self._log, self._how = name, log, how

    async def aclose(self) -> None:
        self._log.append(self.name)
        await self._how()


async def _well() -> None:
    pass


async def _cancelled() -> None:
    raise asyncio.CancelledError


async def _exits() -> None:
    raise SystemExit(3)


async def _cancels_its_own() -> None:
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await task


@pytest.mark.parametrize("how", [_cancelled, _exits, _cancels_its_own])
async def test_a_close_that_raises_no_exception_keeps_none_open(
    how: Callable[[], Awaitable[None]],
) -> None:
    log: list[str] = []
    agent = Agent(extensions=[Closes("a", log, _well), Closes("b", log, how)])
    assert await agent.extensions.aclose() == ["b"]
    assert log == ["b", "a"]


async def test_a_close_that_hangs_is_stopped_and_the_others_are_closed() -> None:
    log: list[str] = []

    async def hangs() -> None:
        await asyncio.Event().wait()

    agent = Agent(extensions=[Closes("a", log, _well), Closes("b", log, hangs)])
    agent.extensions.close_seconds = 0.01
    assert await agent.extensions.aclose() == ["b"]
    assert log == ["b", "a"]


class Tells(BaseExtension):
    name = "tells"

    def __init__(self, told: Callable[[], Any]) -> None:
        self._told = told

    async def instructions(self) -> str:
        given = self._told()
        text: str = await given if isinstance(given, Awaitable) else given
        return text


@pytest.mark.parametrize("told", [lambda: None, lambda: 5, lambda: asyncio.Event().wait()])
async def test_what_tells_no_text_or_hangs_is_left_out_of_the_call(
    told: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    agent = agent_for(says("ok"), extensions=[Tells(told), Tells2(lambda: "Be kind.")])
    agent.extensions.instructions_seconds = 0.01
    assert (await agent.run("hello")).status == "completed"
    provider = agent._providers.get(agent.config.model)
    assert isinstance(provider, ScriptedProvider)
    assert provider.requests[0].system_prompt == "Be kind."
    assert "The extension tells told no" in caplog.text


class Tells2(Tells):
    name = "tells-2"


class Replaces(BaseExtension):
    name = "replaces"

    def install(self, agent: Agent) -> None:
        agent.tools.remove("double")
        agent.tools.register(name="double", permission=PermissionLevel.ALLOW)(lambda number: "x")


async def test_a_tool_that_it_put_in_place_of_another_goes_and_the_other_is_back() -> None:
    agent = agent_for(says("ok"), extensions=[Replaces()])
    registry = agent.tools
    replaced = registry.get("double")
    await agent.aclose()
    assert len([tool for tool in registry if tool.name == "double"]) == 1
    assert registry.get("double") is not replaced


async def test_what_is_no_extension_is_refused_in_words() -> None:
    nameless = BaseExtension()
    nameless.name = None  # type: ignore[assignment]
    with pytest.raises(ConfigurationError, match="None is no name"):
        Agent(extensions=[nameless])
    with pytest.raises(ConfigurationError, match="Broken is a class") as refused:
        Agent(extensions=[Broken])  # type: ignore[list-item]
    assert "Broken()" in refused.value.hint
    with pytest.raises(ConfigurationError):
        Agent(extensions=[object()])  # type: ignore[list-item]
