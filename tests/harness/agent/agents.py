"""Agents with scripted models, and what their runs bring."""

from __future__ import annotations

from typing import TypeVar

from tests.support.scripted_provider import (
    ScriptedProvider,
    Step,
)
from web.harness.agent.agent import Agent
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.config import AgentConfig, Retry
from web.harness.values.events import (
    ApprovalRequired,
    Event,
)

T = TypeVar("T")

QUICK = AgentConfig(retry=Retry(attempts=3, backoff_seconds=0.001))


def tools() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def double(number: int) -> str:
        return str(number * 2)

    @registry.register(permission=PermissionLevel.ASK)
    def save(text: str) -> str:
        return f"saved {text}"

    @registry.register(permission=PermissionLevel.DENY)
    def forbidden() -> str:
        return "ran"

    return registry


def agent_for(*answers: list[Step], config: AgentConfig = QUICK, **more: object) -> Agent:
    given = {"provider": ScriptedProvider(*answers), "tools": tools(), **more}
    return Agent(config, **given)  # type: ignore[arg-type]


async def all_events(agent: Agent, message: str = "hello") -> list[Event]:
    async with agent.run_stream(message) as events:
        return [event async for event in events]


def of_type(events: list[Event], kind: type[T]) -> list[T]:
    return [event.body for event in events if isinstance(event.body, kind)]


async def decided(agent: Agent, decision: str, **more: object) -> tuple[list[Event], str]:
    """Runs one turn and gives the same answer to each question; returns the last key too."""
    events, key = [], ""
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event.body, ApprovalRequired):
                key = event.body.key
                agent.decide(key, decision, **more)  # type: ignore[arg-type]
    return events, key
