"""A conversation that gets too long is made shorter and goes on; nothing is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.agent.agents import QUICK, all_events, of_type
from tests.support.limited_provider import LimitedProvider, is_summary_request
from tests.support.loop_holds import loop_holds
from tests.support.scripted_provider import Step, breaks, calls, says
from web.harness.agent.agent import Agent
from web.harness.memory.summaries import is_summary
from web.harness.tools.hooks import Happening, HookEvent
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.codec import check_conversation
from web.harness.values.config import SMALL_DEMO_MODEL, AgentConfig, Limits, ModelName
from web.harness.values.errors import ContextTooLong
from web.harness.values.events import (
    AttemptReset,
    ContextCondensed,
    ErrorReport,
    Note,
    RunResult,
    UsageReport,
    Waiting,
)
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import Message, TextBlock
from web.harness.values.model import ModelRequest, TextChunk
from web.harness.values.usage import Prices

pytestmark = pytest.mark.anyio

MODEL = ModelName("openai", "small")
CONFIG = replace(QUICK, model=MODEL, max_tokens=200)
LIMITED = replace(CONFIG, limits=Limits(max_context_tokens=2_000))


def turns(count: int, size: int = 100) -> list[Message]:
    """So many turns of a message and an answer, each of about `size` tokens."""
    said: list[Message] = []
    for number in range(count):
        words = f"{number} " + "word " * (size * 4 // 5)
        said.append(Message(f"u{number}", "user", (TextBlock(f"q{words}"),)))
        said.append(Message(f"a{number}", "assistant", (TextBlock(f"a{words}"),)))
    return said


def agent_for(
    provider: LimitedProvider,
    *,
    config: AgentConfig = LIMITED,
    messages: Iterable[Message] = (),
    **more: Any,
) -> Agent:
    return Agent(config, provider=provider, messages=messages, **more)


def reading(size: int) -> ToolRegistry:
    """A tool whose result has about so many tokens."""
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def read(page: int) -> str:
        return f"page {page}: " + "text " * (size * 4 // 5)

    return registry


def reads(times: int) -> Callable[[ModelRequest], list[Step]]:
    """Calls the tool so many times, one after the other, then answers."""
    pages = iter(range(1, times + 1))

    def answer(request: ModelRequest) -> list[Step]:
        page = next(pages, None)
        return says("done") if page is None else calls(("read", {"page": page}))

    return answer


async def test_the_oldest_turns_are_summarised_by_the_agents_own_model() -> None:
    provider = LimitedProvider(2_000)
    before = turns(7)
    agent = agent_for(provider, messages=before)
    events = await all_events(agent, "and now?")
    (condensed,) = of_type(events, ContextCondensed)
    assert condensed.before > 1_550 > 1_200 > condensed.after
    assert condensed.summary == "Notes: they talked."
    assert condensed.summarised == 8
    (asked,) = provider.summaries
    assert (asked.model, asked.max_tokens) == ("small", CONFIG.max_tokens)
    assert "q0 word" in asked.messages[0].attachments[0].text
    kept = agent.memory.get_messages()
    assert is_summary(kept[0])
    assert kept[1].role == "user"
    assert [message.content for message in kept[1:-2]] == [m.content for m in before[8:]]
    assert kept[-2].text == "and now?"
    check_conversation(kept)
    assert [message.parent_id for message in kept[1:]] == [message.id for message in kept[:-1]]
    sent = provider.requests[-1].messages[0]
    assert sent.attachments[0].text == "Notes: they talked."
    assert provider.refusals == 0
    (result,) = of_type(events, RunResult)
    assert (result.status, result.iterations) == ("completed", 1)


async def test_the_page_hears_of_it_while_it_waits_and_the_hook_fires_once() -> None:
    seen: list[Happening] = []
    agent = agent_for(LimitedProvider(2_000), messages=turns(7))
    agent.hooks.on(HookEvent.CONTEXT_CONDENSED, seen.append)
    events = await all_events(agent)
    (waiting,) = of_type(events, Waiting)
    assert (waiting.on, waiting.reason) == ("summary", "Earlier messages are summarised")
    await agent.aclose()
    (happening,) = seen
    assert isinstance(happening.body, ContextCondensed)
    assert happening.body.before > happening.body.after


async def test_a_summary_counts_for_usage_and_cost() -> None:
    prices = Prices(1.0, 1.0)
    config = replace(LIMITED, limits=replace(LIMITED.limits, prices=prices))
    agent = agent_for(LimitedProvider(2_000), config=config, messages=turns(7))
    events = await all_events(agent)
    first, second = of_type(events, UsageReport)
    assert first.message_id.startswith("notes-")
    (result,) = of_type(events, RunResult)
    assert result.usage == first.usage + second.usage == agent.usage
    assert result.cost == pytest.approx((first.cost or 0) + (second.cost or 0))
    assert agent.cost == pytest.approx(result.cost)


async def test_old_results_are_cleared_before_anything_is_summarised() -> None:
    provider = LimitedProvider(2_000, answer=reads(8))
    agent = agent_for(provider, tools=reading(250))
    events = await all_events(agent, "read it all")
    condensed = of_type(events, ContextCondensed)
    assert condensed
    assert all(each.cleared and not each.summarised for each in condensed)
    assert provider.summaries == []
    assert provider.refusals == 0
    check_conversation(agent.memory.get_messages())
    assert of_type(events, RunResult)[0].status == "completed"


async def test_rounds_of_a_turn_are_summarised_and_its_message_stays() -> None:
    provider = LimitedProvider(2_000, answer=reads(30))
    agent = agent_for(provider, tools=reading(30), messages=turns(2))
    events = await all_events(agent, "read it all")
    assert any(each.summarised for each in of_type(events, ContextCondensed))
    kept = agent.memory.get_messages()
    assert "read it all" in [message.text for message in kept if message.role == "user"]
    check_conversation(kept)
    assert of_type(events, RunResult)[0].status == "completed"
    assert provider.refusals == 0


async def test_pinned_messages_stay_word_for_word() -> None:
    agent = agent_for(LimitedProvider(2_000), messages=turns(7))
    agent.memory.pin("u0")
    await agent.run("and now?")
    kept = agent.memory.get_messages()
    assert [message.id for message in kept][1] == "u0"
    assert kept[1].text == turns(1)[0].text
    assert agent.memory.pinned == {"u0"}


async def test_a_second_summary_holds_the_notes_of_the_first() -> None:
    provider = LimitedProvider(2_000)
    agent = agent_for(provider, messages=turns(7))
    await agent.run("one")
    agent.memory.set_messages([*agent.memory.get_messages(), *turns(14)[14:]])
    await agent.run("two")
    notes = [block.text for block in provider.summaries[1].messages[0].attachments]
    assert notes[0] == "Notes: they talked."
    kept = agent.memory.get_messages()
    assert [is_summary(message) for message in kept].count(True) == 1


@pytest.mark.parametrize("chars_per_token", [4.0, 3.0, 2.0])
@pytest.mark.parametrize("tells", [True, False])
async def test_a_refusal_teaches_the_limit_and_the_call_is_made_again(
    chars_per_token: float, tells: bool
) -> None:
    provider = LimitedProvider(2_000, chars_per_token=chars_per_token, tells=tells)
    learned = LearnedLimits()
    agent = agent_for(provider, config=CONFIG, messages=turns(20), learned_limits=learned)
    events = await all_events(agent, "and now?")
    assert of_type(events, RunResult)[0].status == "completed", of_type(events, ErrorReport)
    assert provider.refusals >= 1
    if tells:
        assert (learned.get(MODEL), provider.refusals) == (2_000, 1)
    before = provider.refusals
    other = agent_for(provider, config=CONFIG, messages=turns(20), learned_limits=learned)
    assert (await other.run("and you?")).status == "completed"
    assert provider.refusals <= before + (0 if tells else 2)
    assert agent.learned_limits is learned


async def test_a_limit_that_leaves_no_room_for_the_answer_only_shortens_the_answer() -> None:
    provider = LimitedProvider(8_192)
    agent = agent_for(provider, config=replace(CONFIG, max_tokens=8_192))
    events = await all_events(agent)
    assert of_type(events, RunResult)[0].status == "completed"
    assert of_type(events, ContextCondensed) == []
    assert (provider.refusals, agent.learned_limits.get(MODEL)) == (1, 8_192)
    assert provider.requests[0].max_tokens < 8_192


async def test_what_was_shown_before_a_late_refusal_is_taken_back() -> None:
    refused = ContextTooLong("Full.", limit=1_500)
    answers: Iterator[list[Step]] = iter([[TextChunk("half"), refused], says("whole")])
    provider = LimitedProvider(2_000, answer=lambda request: next(answers))
    events = await all_events(agent_for(provider))
    (reset,) = of_type(events, AttemptReset)
    assert "too long" in reset.reason
    assert of_type(events, RunResult)[0].text == "whole"


FAILING: list[list[Step]] = [
    breaks(transient=False),
    breaks("some notes", transient=True),
    says(""),
    says("no", stop_reason="refusal"),
]


@pytest.mark.parametrize("notes", FAILING)
async def test_a_summary_that_fails_costs_nothing_while_all_fits(notes: list[Step]) -> None:
    provider = LimitedProvider(2_000, notes=lambda request: notes)
    before = turns(7)
    agent = agent_for(provider, messages=before)
    events = await all_events(agent, "and now?")
    assert agent.memory.get_messages()[: len(before)] == before
    (note,) = of_type(events, Note)
    assert "kept as they are" in note.text
    assert note.detail
    assert of_type(events, ContextCondensed) == []
    assert of_type(events, RunResult)[0].status == "completed"
    assert len(provider.summaries) <= 2


@pytest.mark.parametrize("notes", FAILING)
async def test_a_summary_that_fails_where_it_is_needed_lets_the_oldest_go(
    notes: list[Step],
) -> None:
    provider = LimitedProvider(2_000, notes=lambda request: notes)
    agent = agent_for(provider, messages=turns(14))
    events = await all_events(agent, "and now?")
    (condensed,) = of_type(events, ContextCondensed)
    assert condensed.dropped > 0
    assert condensed.summarised == 0
    (note,) = of_type(events, Note)
    assert "left out" in note.text
    kept = agent.memory.get_messages()
    assert "had to be left out" in kept[0].attachments[0].text
    assert [message.id for message in kept if message.id == "a13"] == ["a13"]
    assert of_type(events, RunResult)[0].status == "completed"
    assert provider.refusals == 0


async def test_a_summary_that_breaks_in_an_unexpected_way_is_one_that_failed() -> None:
    def notes(request: ModelRequest) -> list[Step]:
        raise ValueError("nobody expects this")

    agent = agent_for(LimitedProvider(2_000, notes=notes), messages=turns(7))
    events = await all_events(agent)
    assert agent.memory.get_messages()[:14] == turns(7)
    (note,) = of_type(events, Note)
    assert "nobody" not in note.detail
    assert of_type(events, RunResult)[0].status == "completed"


async def test_a_run_that_is_stopped_during_its_summary_leaves_all_as_it_was() -> None:
    never = asyncio.Event()
    provider = LimitedProvider(2_000, notes=lambda request: [TextChunk("No"), never])
    before = turns(7)
    agent = agent_for(provider, messages=before)
    run = asyncio.ensure_future(agent.run("and now?"))
    async with asyncio.timeout(10):
        await provider.summarising.wait()
        agent.cancel()
        result = await run
    assert (result.status, result.reason) == ("cancelled", "stopped")
    assert agent.memory.get_messages()[:-1] == before


async def test_results_that_cannot_fit_are_cut_and_the_run_goes_on() -> None:
    provider = LimitedProvider(2_000, answer=reads(2))
    agent = agent_for(provider, tools=reading(9_000))
    events = await all_events(agent, "read it")
    assert any(each.shortened for each in of_type(events, ContextCondensed))
    assert of_type(events, RunResult)[0].status == "completed"
    assert provider.refusals == 0
    check_conversation(agent.memory.get_messages())


async def test_a_message_that_cannot_fit_is_a_clear_error_and_the_next_turn_works() -> None:
    provider = LimitedProvider(2_000)
    agent = agent_for(provider, messages=turns(7))
    events = await all_events(agent, "long " * 3_000)
    # Nothing was taken out or paid for in vain.
    assert agent.memory.get_messages()[:-1] == turns(7)
    assert (provider.requests, of_type(events, ContextCondensed)) == ([], [])
    (error,) = of_type(events, ErrorReport)
    assert error.code == "context_too_long"
    assert "the limit set for this agent is 2,000, the answer included" in error.message
    assert "raise that limit" in error.hint
    assert "Nothing was lost" in error.hint
    (result,) = of_type(events, RunResult)
    assert (result.status, result.reason) == ("failed", "context_too_long")
    assert agent.memory.get_messages()[-1].text == "long " * 3_000
    after = await all_events(agent, "short")
    assert of_type(after, RunResult)[0].status == "completed"
    assert of_type(after, ContextCondensed)


async def test_a_first_message_that_is_too_long_for_an_unknown_context_says_so() -> None:
    # Of `demo:small` nothing is stated, so its refusal is the first that is heard of its context.
    provider = LimitedProvider(2_000)
    agent = agent_for(provider, config=replace(CONFIG, model=SMALL_DEMO_MODEL))
    (error,) = of_type(await all_events(agent, "long " * 3_000), ErrorReport)
    assert error.message.startswith("The message is too long")
    assert "demo:small takes 2,000" in error.message
    assert "choose a model with a larger context" in error.hint


async def test_tools_that_leave_no_room_are_named_in_the_error() -> None:
    registry = ToolRegistry()
    for number in range(30):
        registry.register(name=f"tool_{number}", description="words " * 100)(lambda page: "x")
    agent = agent_for(LimitedProvider(2_000), tools=registry)
    (error,) = of_type(await all_events(agent), ErrorReport)
    assert "system prompt and the tools alone" in error.message
    assert "the limit set for this agent is 2,000 in all" in error.message
    assert error.hint.startswith("Nothing was lost. Shorten the system prompt, switch tools off")


async def test_a_model_that_refuses_whatever_it_is_sent_ends_the_run() -> None:
    provider = LimitedProvider(0, tells=False)
    events = await all_events(agent_for(provider, config=CONFIG, messages=turns(7)))
    assert of_type(events, RunResult)[0].status == "failed"
    assert of_type(events, ErrorReport)[0].code == "context_too_long"
    assert provider.refusals < 12


async def test_a_summary_that_is_refused_for_its_length_is_asked_for_in_smaller_pieces() -> None:
    # The model takes much less than it was configured to take.
    provider = LimitedProvider(4_000, chars_per_token=2.0)
    config = replace(CONFIG, limits=Limits(max_context_tokens=30_000))
    agent = agent_for(provider, config=config, messages=turns(140, 180))
    events = await all_events(agent, "and now?")
    assert of_type(events, RunResult)[0].status == "completed", of_type(events, ErrorReport)
    assert agent.learned_limits.get(MODEL) == 4_000
    assert len(provider.summaries) > 1


async def test_a_summary_that_is_longer_than_allowed_is_cut() -> None:
    provider = LimitedProvider(2_000, notes=lambda request: says("blah " * 4_000))
    agent = agent_for(provider, messages=turns(14))
    (condensed,) = of_type(await all_events(agent, "and now?"), ContextCondensed)
    assert "left out here" in condensed.summary
    assert condensed.summarised > 0
    assert provider.refusals == 0


async def test_a_longer_model_before_is_summed_up_in_several_calls() -> None:
    provider = LimitedProvider(2_000)
    agent = agent_for(provider, messages=turns(60))
    events = await all_events(agent, "and now?")
    assert of_type(events, RunResult)[0].status == "completed"
    assert 2 <= len(provider.summaries) <= 8
    assert sum(map(is_summary_request, provider.requests)) == len(provider.summaries)
    (condensed,) = of_type(events, ContextCondensed)
    assert condensed.dropped == 0


async def test_a_very_large_conversation_is_condensed_without_holding_up_others() -> None:
    provider = LimitedProvider(400_000)
    config = replace(CONFIG, limits=Limits(max_context_tokens=400_000))
    agent = agent_for(provider, config=config, messages=turns(900, 250))
    async with loop_holds() as holds:
        result = await agent.run("and now?")
    assert result.status == "completed"
    assert is_summary(agent.memory.get_messages()[0])
    assert holds.longest < 0.5


async def test_the_providers_count_puts_the_estimate_right() -> None:
    provider = LimitedProvider(50_000, chars_per_token=2.0)
    agent = agent_for(provider, config=CONFIG, messages=turns(7))
    await agent.run("hello")
    assert 1.8 < agent.learned_limits.density(MODEL) < 2.2


async def test_without_any_limit_a_request_is_sent_as_it_is() -> None:
    provider = LimitedProvider(10**9)
    config = replace(CONFIG, model=ModelName("other", "model"))
    agent = agent_for(provider, config=config, messages=turns(300))
    events = await all_events(agent)
    assert of_type(events, ContextCondensed) == []
    assert len(provider.requests[0].messages) == 601
