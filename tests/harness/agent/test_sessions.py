"""Agents are saved as snapshots and go on from them, with everything but what is live."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent.agents import QUICK, agent_for, tools
from tests.harness.snapshots.kept import SAMPLES
from tests.support.scripted_provider import ScriptedProvider, Step, breaks, calls, says
from web.harness.agent.agent import Agent
from web.harness.agent.extensions import BaseExtension
from web.harness.memory.summaries import is_summary, summary_message
from web.harness.providers.demo.provider import DemoProvider
from web.harness.snapshots.folder import SnapshotFolder
from web.harness.tools.hooks import Happening, HookEvent
from web.harness.values.config import AgentConfig, Limits, ModelName, Retry
from web.harness.values.errors import (
    AgentBusy,
    AgentClosed,
    ConfigurationError,
    HarnessError,
    NotFound,
    SnapshotRefused,
)
from web.harness.values.json_form import NotSerialisable
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import JsonObject, Message, TextBlock
from web.harness.values.model import ModelDone, TextChunk
from web.harness.values.usage import Prices, Usage

pytestmark = pytest.mark.anyio

PRICED = replace(QUICK, limits=Limits(prices=Prices(1.0, 2.0)), system_prompt="Be brief.")


class Counter(BaseExtension):
    """An extension that counts and is closed."""

    def __init__(self, name: str = "counter", count: object = 0) -> None:
        self.name = name
        self.count = count
        self.closed = 0

    def state(self) -> JsonObject:
        return {"count": self.count}

    def restore(self, state: JsonObject) -> None:
        self.count = state["count"]

    async def aclose(self) -> None:
        self.closed += 1


async def test_the_demo_model_remembers_in_a_session_that_is_loaded(tmp_path: Path) -> None:
    demo = DemoProvider(pace=0)
    async with Agent(provider=demo) as agent:
        await agent.run("Remember that this project analyzes invoices.")
        session_id = await agent.save_session(storage_dir=tmp_path)
    async with await Agent.load_session(
        session_id, storage_dir=tmp_path, provider=demo
    ) as restored:
        assert restored.session_id == session_id
        result = await restored.run("What does this project analyze?")
        said = [message.text for message in restored.memory.get_messages()]
    assert result.status == "completed"
    assert said[0] == "Remember that this project analyzes invoices."
    assert said[-2] == "What does this project analyze?"


async def test_everything_that_a_session_holds_comes_back(tmp_path: Path) -> None:
    agent = agent_for(calls(("double", {"number": 21})), says("42."), config=PRICED)
    async with agent:
        agent.extensions.install(Counter(count=3))
        agent.metadata["topic"] = {"tags": ["invoices"]}
        agent.learned_limits.learn(agent.config.model, 8192)
        await agent.run("double 21")
        agent.memory.pin(agent.memory.get_messages()[0].id)
        session_id = await agent.save_session(storage_dir=tmp_path)
        counter = Counter()
        provider = ScriptedProvider(says("Still 42."))
        restored = await Agent.load_session(
            session_id,
            storage_dir=tmp_path,
            provider=provider,
            tools=tools(),
            extensions=[counter],
        )
        async with restored:
            assert restored.memory.get_messages() == agent.memory.get_messages()
            assert restored.memory.pinned == agent.memory.pinned
            assert restored.config == agent.config
            assert (restored.usage, restored.cost) == (agent.usage, agent.cost)
            assert restored.usage == Usage(20, 6)
            assert restored.cost == pytest.approx(0.000032)
            assert restored.metadata == {"topic": {"tags": ["invoices"]}}
            assert restored.learned_limits == agent.learned_limits
            assert restored.created_at == pytest.approx(agent.created_at, abs=1e-5)
            assert counter.count == 3
            await restored.run("and now?")
            assert restored.usage == Usage(30, 7)
            sent = provider.requests[0]
            assert [message.role for message in sent.messages] == [
                "user",
                "assistant",
                "tool",
                "assistant",
                "user",
            ]
            assert sent.system_prompt == "Be brief."
            assert [spec.name for spec in sent.tools] == ["double", "save"]


async def test_a_session_is_saved_again_under_its_id_or_as_another(tmp_path: Path) -> None:
    async with agent_for(says("hi")) as agent:
        first = await agent.save_session(storage_dir=tmp_path)
        await agent.run("hello")
        assert await agent.save_session(storage_dir=tmp_path) == first
        assert await agent.save_session(storage_dir=tmp_path, session_id="copy") == "copy"
        assert await agent.save_session(storage_dir=tmp_path) == first
    for session_id in (first, "copy"):
        async with await Agent.load_session(session_id, storage_dir=tmp_path) as restored:
            assert len(restored.memory.get_messages()) == 2


async def test_hooks_are_told_of_saving_and_loading(tmp_path: Path) -> None:
    told: list[tuple[HookEvent, str]] = []

    class Watcher(BaseExtension):
        name = "watcher"

        def install(self, agent: Agent) -> None:
            for event in (HookEvent.SESSION_SAVED, HookEvent.SESSION_LOADED):
                agent.hooks.on(event, self._tell)

        def _tell(self, happening: Happening) -> None:
            told.append((happening.event, happening.data["session_id"]))

    async with Agent(extensions=[Watcher()]) as agent:
        await agent.save_session(storage_dir=tmp_path, session_id="watched")
    restored = await Agent.load_session("watched", storage_dir=tmp_path, extensions=[Watcher()])
    await restored.aclose()
    assert told == [(HookEvent.SESSION_SAVED, "watched"), (HookEvent.SESSION_LOADED, "watched")]


async def test_an_agent_that_runs_or_is_closed_is_not_saved(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with agent_for([go, *says("done")]) as agent:
        run = asyncio.create_task(agent.run("hello"))
        await agent._providers._given.asked.wait()  # type: ignore[union-attr]
        with pytest.raises(AgentBusy, match="no run under way"):
            await agent.save_session(storage_dir=tmp_path)
        go.set()
        await run
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    with pytest.raises(AgentClosed):
        await agent.save_session(storage_dir=tmp_path)


async def test_a_stopped_run_leaves_a_session_that_can_be_saved_and_goes_on(
    tmp_path: Path,
) -> None:
    async with agent_for(breaks("half of", transient=False), says("whole")) as agent:
        assert (await agent.run("hello")).status == "failed"
        session_id = await agent.save_session(storage_dir=tmp_path)
    provider = ScriptedProvider(says("on we go"))
    async with await Agent.load_session(
        session_id, storage_dir=tmp_path, provider=provider
    ) as restored:
        assert (await restored.run("go on")).text == "on we go"


async def test_a_summary_and_pins_are_saved_with_a_conversation_that_was_condensed(
    tmp_path: Path,
) -> None:
    messages = [
        summary_message("s", "They like red."),
        Message("a", "user", (TextBlock("And what else?"),), "gone"),
        Message("b", "assistant", (TextBlock("Green."),), "a"),
    ]
    async with Agent(QUICK, provider=ScriptedProvider(says("ok")), messages=messages) as agent:
        agent.memory.pin("a")
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    async with await Agent.load_session("s", storage_dir=tmp_path) as restored:
        assert restored.memory.get_messages() == messages
        assert restored.memory.pinned == {"a"}
        assert is_summary(restored.memory.get_messages()[0])


async def test_two_first_saves_at_once_are_one_session(tmp_path: Path) -> None:
    async with Agent() as agent:
        saves = [agent.save_session(storage_dir=tmp_path) for _ in range(2)]
        first, second = await asyncio.gather(*saves)
        assert first == second == agent.session_id
        assert SnapshotFolder(tmp_path).list() == [first]


@pytest.mark.parametrize("metadata", [None, [1], "x"])
async def test_metadata_that_is_no_object_is_refused_and_the_file_before_is_kept(
    tmp_path: Path, metadata: Any
) -> None:
    async with Agent(metadata={"n": 1}) as agent:
        await agent.save_session(storage_dir=tmp_path, session_id="s")
        agent.metadata = metadata
        with pytest.raises(SnapshotRefused, match=r"metadata is .* has to be an object"):
            await agent.save_session(storage_dir=tmp_path, session_id="s")
    async with await Agent.load_session("s", storage_dir=tmp_path) as restored:
        assert restored.metadata == {"n": 1}


async def test_what_a_careless_provider_counts_keeps_no_session_from_being_loaded(
    tmp_path: Path,
) -> None:
    odd: list[Step] = [TextChunk("x"), ModelDone("end_turn", Usage(-100, 10**300))]
    async with agent_for(odd) as agent:
        await agent.run("x")
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    async with await Agent.load_session("s", storage_dir=tmp_path) as restored:
        assert restored.usage.input_tokens == 0


async def test_what_cannot_be_serialised_is_refused_and_the_file_before_is_kept(
    tmp_path: Path,
) -> None:
    async with Agent(metadata={"n": 1}, extensions=[counter := Counter()]) as agent:
        await agent.save_session(storage_dir=tmp_path, session_id="s")
        agent.metadata["live"] = asyncio.Event()
        with pytest.raises(NotSerialisable, match=r"metadata\.live is an Event"):
            await agent.save_session(storage_dir=tmp_path, session_id="s")
        del agent.metadata["live"]
        counter.count = object()
        with pytest.raises(ConfigurationError, match="state of the extension 'counter'"):
            await agent.save_session(storage_dir=tmp_path, session_id="s")
    restored = await Agent.load_session("s", storage_dir=tmp_path, extensions=[Counter()])
    assert restored.metadata == {"n": 1}
    await restored.aclose()


async def test_a_configuration_that_differs_is_refused_by_its_fields(tmp_path: Path) -> None:
    async with Agent(PRICED) as agent:
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    other = replace(
        PRICED,
        model=ModelName("openai", "gpt"),
        limits=replace(PRICED.limits, max_iterations=7),
    )
    with pytest.raises(SnapshotRefused) as refused:
        await Agent.load_session("s", storage_dir=tmp_path, config=other)
    assert refused.value.code == "configuration_differs"
    assert "limits.max_iterations (the number 50 was saved, the number 7" in refused.value.message
    assert "model (the text 'demo:demo' was saved" in refused.value.message
    assert "system_prompt" not in refused.value.message
    equal = AgentConfig.from_dict(PRICED.to_dict())
    async with await Agent.load_session("s", storage_dir=tmp_path, config=equal) as restored:
        assert restored.config == PRICED


async def test_other_extensions_are_refused_and_closed(tmp_path: Path) -> None:
    async with Agent(extensions=[Counter("one"), Counter("two")]) as agent:
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    for given in ([], [Counter("one")], [Counter("one"), Counter("two"), Counter("three")]):
        with pytest.raises(ConfigurationError) as refused:
            await Agent.load_session("s", storage_dir=tmp_path, extensions=given)
        assert refused.value.code == "extensions_differ"
        assert [each.closed for each in given] == [1] * len(given)


async def test_what_comes_from_the_snapshot_is_not_given_beside_it(tmp_path: Path) -> None:
    async with Agent() as agent:
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    with pytest.raises(ConfigurationError, match="come from the snapshot"):
        await Agent.load_session("s", storage_dir=tmp_path, messages=())
    with pytest.raises(ConfigurationError, match="come from the snapshot"):
        await Agent.load_session("s", storage_dir=tmp_path, metadata={})


async def test_shared_limits_learn_what_a_session_knew_and_keep_what_they_know(
    tmp_path: Path,
) -> None:
    first, second = ModelName("openai", "a"), ModelName("openai", "b")
    saved = LearnedLimits()
    saved.learn(first, 8_000)
    saved.learn(second, 9_000)
    async with Agent(learned_limits=saved) as agent:
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    shared = LearnedLimits()
    shared.learn(second, 4_000)
    async with await Agent.load_session(
        "s", storage_dir=tmp_path, learned_limits=shared
    ) as restored:
        assert restored.learned_limits is shared
    assert (shared.get(first), shared.get(second)) == (8_000, 4_000)


async def test_no_key_and_nothing_live_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    state = {"connection": object(), "password": "hidden too"}
    provider = ScriptedProvider(says("hi"))
    async with Agent(QUICK, provider=provider, tools=tools(), state=state) as agent:
        await agent.run("hello")
        await agent.save_session(storage_dir=tmp_path, session_id="s")
    text = (tmp_path / "s.json").read_text()
    assert "hidden" not in text
    assert "double" not in text
    assert "Scripted" not in text


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0"])
async def test_a_session_of_harnessx_goes_on_here(tmp_path: Path, version: str) -> None:
    sample = SAMPLES / f"harnessx-{version}.json"
    session_id = json.loads(sample.read_text())["session_id"]
    shutil.copy(sample, tmp_path / f"{session_id}.json")
    provider = ScriptedProvider(says("Invoices."))
    async with await Agent.load_session(
        session_id, storage_dir=tmp_path, provider=provider
    ) as restored:
        result = await restored.run("What does this project analyze?")
        assert result.text == "Invoices."
        assert restored.usage.input_tokens == 280
        [request] = provider.requests
        assert (request.model, request.system_prompt) == (
            "claude-sonnet-4-6",
            "You are an invoice assistant.",
        )
        assert len(request.messages) == 7
        await restored.save_session(storage_dir=tmp_path)
    async with await Agent.load_session(
        session_id, storage_dir=tmp_path, provider=provider
    ) as again:
        assert len(again.memory.get_messages()) == 8


@pytest.mark.parametrize("session_id", ["nobody", "../outside", "/etc/passwd", ""])
async def test_a_session_that_is_not_there_is_a_clear_error(
    tmp_path: Path, session_id: str
) -> None:
    with pytest.raises((NotFound, SnapshotRefused)) as refused:
        await Agent.load_session(session_id, storage_dir=tmp_path)
    error: HarnessError = refused.value
    assert error.message
    assert error.hint


async def test_a_call_that_takes_too_long_is_ended_and_tried_again() -> None:
    never = asyncio.Event()
    retry = Retry(attempts=2, backoff_seconds=0.001, call_timeout_seconds=0.2)
    async with agent_for([never], says("quick"), config=replace(QUICK, retry=retry)) as agent:
        assert (await agent.run("hello")).text == "quick"
    async with agent_for([never], config=replace(QUICK, retry=retry)) as agent:
        result = await agent.run("hello")
    assert (result.status, result.reason) == ("failed", "provider_timeout")
