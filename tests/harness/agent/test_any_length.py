"""Whatever a model takes and however it counts, a conversation whose messages fit goes on."""

from __future__ import annotations

import random

import pytest

from tests.support.limited_provider import LimitedProvider
from tests.support.scripted_provider import Step, breaks, calls, says
from web.harness.agent.agent import Agent
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.codec import check_conversation
from web.harness.values.config import AgentConfig, Limits, ModelName, Retry
from web.harness.values.events import ContextCondensed, EventBody, Note
from web.harness.values.model import ModelRequest

pytestmark = pytest.mark.anyio

TURNS = 12


class Draw:
    """A model, its tools and a conversation, all of them drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.tells = chance.random() < 0.6
        # Where refusals do not say what is taken, it is guessed, and too low for a tiny model.
        self.limit = chance.randint(1_500 if self.tells else 4_000, 20_000)
        self.chars_per_token = chance.uniform(1.5, 6.0)
        self.told = chance.random() < 0.4
        self.fails = chance.choice([0.0, 0.5, 1.0])
        # Characters of a message that always fit, with the newest answer and its results cut.
        self.most = int(self.limit * min(self.chars_per_token, 3.0) / 10)
        self.provider = LimitedProvider(
            self.limit,
            chars_per_token=self.chars_per_token,
            tells=self.tells,
            answer=self.answer,
            notes=self.notes,
        )
        self.config = AgentConfig(
            model=ModelName("openai", "any"),
            max_tokens=chance.randint(50, 9_000),
            limits=Limits(
                max_context_tokens=self.limit if self.told else None,
                max_repeats=None,
                max_iterations=400,
            ),
            retry=Retry(attempts=2, backoff_seconds=0.0),
        )
        self.tools = ToolRegistry()

        @self.tools.register(permission=PermissionLevel.ALLOW)
        def read() -> str:
            return "r " * chance.randint(0, 4 * self.most)

    def words(self) -> str:
        return "w" * self.chance.randint(1, self.most)

    def answer(self, request: ModelRequest) -> list[Step]:
        if self.chance.random() < 0.4:
            return says("a" * self.chance.randint(1, self.most))
        # Before a call it may say a great deal, all that its limits let it.
        before = "b" * self.chance.choice([0, 10, int(request.max_tokens * self.chars_per_token)])
        return calls(*[("read", {})] * self.chance.randint(1, 3), text=before)

    def notes(self, request: ModelRequest) -> list[Step]:
        if self.chance.random() < self.fails:
            return breaks(transient=self.chance.random() < 0.5)
        return says("n" * self.chance.randint(1, 2 * self.most))


async def goes_on(seed: int) -> None:
    drawn = Draw(seed)
    told: list[EventBody] = []
    agent = Agent(drawn.config, provider=drawn.provider, tools=drawn.tools)
    for turn in range(TURNS):
        result = await agent.perform(drawn.words(), run_id=f"run{turn}", emit=told.extend)
        assert (result.status, result.reason) == ("completed", ""), (seed, turn)
        kept = agent.memory.get_messages()
        check_conversation(kept)
        assert f"run{turn}-0" in {message.id for message in kept}
    condensed = [body for body in told if isinstance(body, ContextCondensed)]
    assert all(each.before >= each.after for each in condensed), seed
    assert any(isinstance(body, Note) for body in told) or not any(c.dropped for c in condensed)
    if drawn.tells:
        assert drawn.provider.refusals <= 4, seed


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 400), marks=pytest.mark.full)], ids=str
)
async def test_a_conversation_whose_messages_fit_never_fails_for_its_length(seeds: range) -> None:
    for seed in seeds:
        await goes_on(seed)
