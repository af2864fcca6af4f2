"""A conversation that outgrows its model: it is made shorter, and nothing has to be done for it.

`demo:small` takes 8,192 tokens and refuses more, as real models do. The first refusal teaches the
agent its limit. From then on old results of tools are cleared and the oldest turns summed up before
a request gets too long; the newest turns and what is pinned stay word for word.
"""

from __future__ import annotations

import asyncio

from web.harness import (
    SMALL_DEMO_MODEL,
    Agent,
    AgentConfig,
    ContextCondensed,
    Happening,
    HookEvent,
    LearnedLimits,
    PermissionLevel,
)
from web.harness.providers.demo.provider import DemoProvider

learned = LearnedLimits()
"""Agents may share it, so that each model has to refuse only once."""


def tell(happening: Happening) -> None:
    body = happening.body
    if isinstance(body, ContextCondensed):
        print(f"condensed from about {body.before:,} to {body.after:,} tokens:", end=" ")
        print(f"{body.cleared} results cleared, {body.summarised} messages summed up")
        if body.summary:
            print(f"    {body.summary.splitlines()[-1]}")


async def main() -> None:
    config = AgentConfig(model=SMALL_DEMO_MODEL, system_prompt="You read invoices.")
    # The demo model as the agent would make it, but without its pauses for a reader.
    demo = DemoProvider(pace=0)
    async with Agent(config, provider=demo, learned_limits=learned) as agent:
        agent.hooks.on(HookEvent.CONTEXT_CONDENSED, tell)

        @agent.tools.register(permission=PermissionLevel.ALLOW)
        def read_invoice(number: int) -> str:
            """Reads an invoice."""
            return f"Invoice {number}: " + f"{number} pears at 1.20, " * 60

        await agent.run("The tax rate is 19 percent.")
        first = agent.memory.get_messages()[0]
        agent.memory.pin(first.id)

        for number in range(1, 25):
            result = await agent.run(f"/read_invoice {number}")
            assert result.status == "completed"

        kept = agent.memory.get_messages()
        print(f"the model is sent {len(kept)} messages of {2 + 4 * 24}")
        print(f"pinned and kept: {any(message.text == first.text for message in kept)}")
        print(f"learned: {learned.as_json()['demo:small']['context_tokens']} tokens")

        # What is done first when there is no room any more can be asked for at any time.
        print(f"cleared by hand: {agent.memory.prune_tool_results(keep_rounds=0) > 0}")


if __name__ == "__main__":
    asyncio.run(main())
