"""What the demo model does with what it is told to remember."""

from __future__ import annotations

import pytest

from web.harness.agent.agent import Agent
from web.harness.providers.demo.provider import DemoProvider
from web.harness.providers.demo.script import script_for
from web.harness.tools.hooks import Happening, HookEvent
from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.messages import Message, TextBlock
from web.harness.values.model import ModelRequest

pytestmark = pytest.mark.anyio


def answer(*said: str, system_prompt: str = "") -> str:
    messages = [Message(str(n), "user", (TextBlock(text),)) for n, text in enumerate(said)]
    return script_for(ModelRequest("demo", tuple(messages), system_prompt)).text


async def test_what_was_said_in_a_conversation_is_known_later_in_it() -> None:
    async with Agent() as agent:
        first = await agent.run("Remember that this project analyzes invoices.")
        assert "this project analyzes invoices" in first.text
        second = await agent.run("What does this project analyze?")
        assert "invoices" in second.text


def test_the_best_match_is_told_alone() -> None:
    told = answer(
        "Please remember: tea is at four.",
        "remember that lunch is at one",
        "long story",
        "When is tea?",
    )
    assert "tea is at four" in told
    assert "lunch" not in told


def test_facts_of_earlier_conversations_stand_in_the_prompt() -> None:
    prompt = (
        "You help.\n\nFacts, the newest first ([category] fact):\n> [project] It reads *invoices*."
    )
    assert "It reads \\*invoices\\*." in answer("what does it read?", system_prompt=prompt)


def test_a_question_about_nothing_that_was_told_gets_help() -> None:
    assert "no rule for that message" in answer("remember that tea is at four", "who is Ada?")
    assert "no rule" not in answer("remember that tea is at four")
    assert "I note" not in answer("Do you remember tea?")


async def test_what_was_said_long_ago_is_known_after_the_conversation_was_condensed() -> None:
    config = AgentConfig(model=ModelName("demo", "small"))
    async with Agent(config, provider=DemoProvider(0)) as agent:
        condensed: list[Happening] = []
        agent.hooks.on(HookEvent.CONTEXT_CONDENSED, condensed.append)
        await agent.run("Remember that this project analyzes invoices.")
        for number in range(60):
            await agent.run(f"{number} {'other words ' * 100}")
        assert condensed
        assert "invoices" in (await agent.run("What does this project analyze?")).text
