"""A tool that has another agent do a task: with a prompt, tools and limits of its own.

What it does comes nested in the events of the call, and what it uses counts for the agent that
called it. A plan is a tool too; a page shows it as a card.
"""

from __future__ import annotations

import asyncio

from web.harness import (
    Agent,
    AgentConfig,
    Limits,
    NestedEvent,
    PermissionLevel,
    Prices,
    ToolCallStart,
    ToolRegistry,
    ToolResult,
    sub_agent_tool,
)
from web.harness.builtin import plan_tool

prices = Prices(input_cost_per_m=2.0, output_cost_per_m=8.0)

bookkeeping = ToolRegistry()


@bookkeeping.register(permission=PermissionLevel.ALLOW)
def total(month: str) -> str:
    """Adds up the invoices of a month."""
    return {"march": "1,240.50", "april": "980.00"}.get(month.lower(), "no invoices")


bookkeeper = sub_agent_tool(
    "bookkeeper",
    "Answers questions about invoices. Say which month.",
    config=AgentConfig(
        system_prompt="You keep the books. Answer with the number alone.",
        limits=Limits(max_iterations=5, prices=prices),
    ),
    tools=bookkeeping,
)


async def main() -> None:
    config = AgentConfig(limits=Limits(max_cost_dollars=0.50, prices=prices))
    async with Agent(config, tools=ToolRegistry([bookkeeper, plan_tool()])) as agent:
        async with agent.run_stream('/bookkeeper task="/total march"') as events:
            async for event in events:
                inside = isinstance(event.body, NestedEvent)
                body = event.body.body if isinstance(event.body, NestedEvent) else event.body
                indent = "    " if inside else ""
                if isinstance(body, ToolCallStart):
                    print(f"{indent}{body.name} {body.arguments}")
                elif isinstance(body, ToolResult):
                    print(f"{indent}-> {body.text.splitlines()[-1]}")
        print(f"with the sub-agent: {agent.usage.input_tokens > 0}, ${agent.cost:.6f}")

        async with agent.run_stream(
            "plan: read the invoices; add them up; write it down"
        ) as events:
            async for event in events:
                if isinstance(event.body, ToolResult) and event.body.plan:
                    marks = {"pending": " ", "in_progress": ">", "completed": "x"}
                    print(*(f"[{marks[step.status]}] {step.text}" for step in event.body.plan))


if __name__ == "__main__":
    asyncio.run(main())
