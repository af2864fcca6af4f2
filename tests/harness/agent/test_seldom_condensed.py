"""A long run is made shorter seldom, also where its messages cannot be summarised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.agent.agents import all_events, of_type
from tests.harness.agent.test_condensing import LIMITED, agent_for, reading, reads
from tests.support.limited_provider import LimitedProvider
from tests.support.scripted_provider import Step, breaks
from web.harness.values.config import Limits
from web.harness.values.events import ContextCondensed, RunResult
from web.harness.values.model import ModelRequest

pytestmark = pytest.mark.anyio

LONG = replace(LIMITED, limits=Limits(max_context_tokens=2_000, max_iterations=100))

ROUNDS = 60
"""Of about 75 tokens each, in a context of 2,000."""


async def test_messages_that_cannot_be_summarised_go_by_the_half_not_one_by_one() -> None:
    def fails(request: ModelRequest) -> list[Step]:
        return breaks(transient=False)

    provider = LimitedProvider(2_000, answer=reads(ROUNDS), notes=fails)
    agent = agent_for(provider, config=LONG, tools=reading(30))
    events = await all_events(agent, "read")
    condensed = of_type(events, ContextCondensed)
    assert of_type(events, RunResult)[0].status == "completed"
    assert sum(each.dropped for each in condensed) > ROUNDS
    assert len(condensed) <= ROUNDS // 6
