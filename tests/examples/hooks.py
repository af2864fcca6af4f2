"""Watching what an agent does, and an extension that brings a tool, a hook and saved state.

A hook only watches: what it raises is logged, and one that hangs is stopped; the run goes on.
"""

from __future__ import annotations

import asyncio
from typing import Any

from web.harness import (
    Agent,
    BaseExtension,
    Happening,
    HookEvent,
    PermissionLevel,
    RunResult,
    ToolResult,
)


class Stopwatch(BaseExtension):
    """Counts the tool calls of its agent, tells the model how many, and is saved with it."""

    name = "stopwatch"

    def __init__(self) -> None:
        self.calls = 0

    def install(self, agent: Agent) -> None:
        agent.hooks.on(HookEvent.TOOL_ENDED, self.count)

        @agent.tools.register(permission=PermissionLevel.ALLOW)
        def calls_so_far() -> str:
            """Tells how many tools have been called."""
            return f"{self.calls} calls so far"

    def count(self, happening: Happening) -> None:
        self.calls += 1

    def state(self) -> dict[str, Any]:
        return {"calls": self.calls}

    def restore(self, state: dict[str, Any]) -> None:
        self.calls = state["calls"]

    async def aclose(self) -> None:
        print(f"stopwatch: closed after {self.calls} calls")


async def main() -> None:
    async with Agent(extensions=[Stopwatch()]) as agent:

        @agent.tools.register(permission=PermissionLevel.ALLOW)
        def add(a: int, b: int) -> int:
            """Adds two numbers."""
            return a + b

        @agent.hooks.on(HookEvent.TOOL_ENDED)
        def show(happening: Happening) -> None:
            if isinstance(happening.body, ToolResult):
                print(f"hook: {happening.body.name} returned {happening.body.text}")

        @agent.hooks.on(HookEvent.RUN_ENDED)
        async def report(happening: Happening) -> None:
            if isinstance(happening.body, RunResult):
                print(f"hook: the run is {happening.body.status}")

        @agent.hooks.on(HookEvent.RUN_STARTED)
        def broken(happening: Happening) -> None:
            raise RuntimeError("this is logged, and that is all")

        # The demo model calls a tool that it is asked for with a slash.
        await agent.run("/add a=2 b=40 then /calls_so_far")
        print("to be saved:", agent.extensions.states())


if __name__ == "__main__":
    asyncio.run(main())
