"""Runtimes over one SQLite file, as several processes have them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

from tests.support.scripted_provider import ScriptedProvider, Step
from tests.support.stores import session_of
from web.harness.agent.agent import Agent
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import Backend
from web.harness.runtime.handle import RunHandle
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.config import AgentConfig, Retry
from web.harness.values.events import RunResult

T = TypeVar("T")

QUICK = AgentConfig(retry=Retry(attempts=3, backoff_seconds=0.001))


def tools() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def double(number: int) -> str:
        return str(number * 2)

    @registry.register
    def save(text: str) -> str:
        return f"saved {text}"

    return registry


def agent_for(*answers: list[Step], **more: Any) -> Agent:
    given: dict[str, Any] = {"provider": ScriptedProvider(*answers), "tools": tools(), **more}
    return Agent(QUICK, **{"session_id": "s", **given})


def runtime_for(backend: Backend, *answers: list[Step], **more: Any) -> AgentRuntime:
    return AgentRuntime(agent_for(*answers, **more), backend=backend)


async def ended(handle: RunHandle) -> RunResult:
    return await asyncio.wait_for(handle.result(), 30)


async def first_of(handle: RunHandle, kind: type[T]) -> T:
    """The first event of a kind, once it is committed."""
    async with asyncio.timeout(30), aclosing(handle.stream()) as events:
        async for event in events:
            if isinstance(event.body, kind):
                return event.body
    raise AssertionError(f"there was no {kind.__name__}")


async def session(backend: Backend, session_id: str = "s") -> SessionSnapshot:
    return await session_of((await backend.open()).sessions, session_id, wait=20)


def database(folder: Path) -> Path:
    return folder / "runs.db"
