"""Sessions that go on, and a live thing that stays open between their runs and has one owner."""

from __future__ import annotations

import asyncio
import sqlite3

from web.harness import (
    LOCAL_IDENTITY,
    Agent,
    Driver,
    ExecutionServices,
    HarnessRuntime,
    InMemorySessionStore,
    PermissionLevel,
    Resource,
    ResourcePool,
    RunResult,
    ToolContext,
    ToolRegistry,
)

tools = ToolRegistry()


async def open_scratchpad() -> Resource[sqlite3.Connection]:
    """Called once a session, however many tools ask at the same time."""
    pad = sqlite3.connect(":memory:")
    pad.execute("CREATE TABLE lines (line TEXT)")

    async def close() -> None:
        pad.close()
        print("the scratchpad is closed")

    return Resource(pad, dispose=close)


@tools.register(permission=PermissionLevel.ALLOW)
async def jot(line: str, context: ToolContext) -> str:
    """Writes a line on the scratchpad of the session."""
    pad = (await context.resource("scratchpad", "session", open_scratchpad)).value
    pad.execute("INSERT INTO lines VALUES (?)", (line,))
    context.state["jotted"] = context.state.get("jotted", 0) + 1
    return " / ".join(row[0] for row in pad.execute("SELECT line FROM lines"))


def a_turn(message: str) -> Driver[RunResult]:
    async def driver(services: ExecutionServices) -> RunResult:
        """Works on a clone of the session; what it leaves is committed."""
        async with Agent(
            tools=tools,
            messages=services.history,
            state=services.state,
            resource=services.resource,
        ) as agent:
            result = await agent.run(message)
            services.history = agent.memory.get_messages()
            services.replayable = result.status == "completed"
            return result

    return driver


async def main() -> None:
    runtime = HarnessRuntime(sessions=InMemorySessionStore(), resources=ResourcePool())
    for line in ("milk", "bread"):
        result = await runtime.run(LOCAL_IDENTITY, "shopping", a_turn(f"/jot line={line}"))
        print(result.text)
    async with await runtime.sessions.acquire(LOCAL_IDENTITY, "shopping") as lease:
        snapshot = await lease.read()
    print(f"revision {snapshot.revision}, {snapshot.state}, {len(snapshot.history)} messages")
    failed = await runtime.resources.close_session(LOCAL_IDENTITY, "shopping")
    print("could not be closed:", failed)


if __name__ == "__main__":
    asyncio.run(main())
