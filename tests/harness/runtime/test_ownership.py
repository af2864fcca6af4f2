"""Who closes what: counted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.runtime.runtimes import agent_for, ended, first_of, runtime_for
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.agent.extensions import BaseExtension
from web.harness.host import HarnessRuntime
from web.harness.resources import ResourcePool
from web.harness.runtime.agent_runtime import OWN_BACKEND, AgentRuntime
from web.harness.runtime.sql import SqlBackend, SQLiteBackend
from web.harness.sessions.event_log import EventLog
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.resource import Resource
from web.harness.tools.tool import PermissionLevel, ToolContext
from web.harness.values.errors import AgentClosed, StoreError
from web.harness.values.events import ApprovalRequired

pytestmark = pytest.mark.anyio


class Counted(BaseExtension):
    name = "counted"

    def __init__(self) -> None:
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1


class CountedBackend(SQLiteBackend):
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        await super().aclose()


async def test_a_runtime_closes_its_agent_once_and_nothing_that_was_handed_in(
    tmp_path: Path,
) -> None:
    provider, extension = ScriptedProvider(says("hello")), Counted()
    backend = CountedBackend(tmp_path / "runs.db")
    agent = agent_for(provider=provider, extensions=[extension])
    async with AgentRuntime(agent, backend=backend) as runtime:
        assert (await runtime.run("hi")).text == "hello"
        assert extension.closed == 0
    await runtime.aclose()
    assert (extension.closed, agent.is_closed) == (1, True)
    assert (provider.closed, backend.closed) == (0, 0)
    # It still serves others.
    async with runtime_for(backend, says("again")) as other:
        assert (await other.run("hi")).text == "again"
    await backend.aclose()
    with pytest.raises(StoreError) as closed:
        await backend.open()
    assert closed.value.code == "store_closed"


async def test_without_a_backend_it_makes_one_and_closes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with AgentRuntime(agent_for(says("hello"))) as runtime:
        assert (await runtime.run("hi")).text == "hello"
        assert (tmp_path / OWN_BACKEND).is_file()
    with pytest.raises(StoreError):
        await runtime.backend.open()


class HeldLog:
    """An event log that never comes to an end of joining."""

    def __init__(self, inner: EventLog) -> None:
        self._inner = inner
        self.joins = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def close(self, run_id: str) -> None:
        self.joins.set()
        await asyncio.Event().wait()


async def test_a_close_that_is_cut_off_closes_all_the_same(backend: SQLiteBackend) -> None:
    stores = await backend.open()
    log: Any = HeldLog(stores.events)
    agent = agent_for(says("hello"))
    runtime = AgentRuntime(agent, backend=SqlBackend(replace(stores, events=log)))
    await runtime.run("hi")
    await asyncio.wait_for(log.joins.wait(), 10)
    closing = asyncio.ensure_future(runtime.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(closing, 10)
    assert agent.is_closed


async def test_the_pool_of_a_host_that_was_handed_in_stays_open(backend: SQLiteBackend) -> None:
    opened, disposed = 0, 0
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def shell(context: ToolContext) -> str:
        async def opens() -> Resource[str]:
            nonlocal opened
            opened += 1

            async def dispose() -> None:
                nonlocal disposed
                disposed += 1

            return Resource("a shell", dispose=dispose)

        return (await context.resource("shell", "session", opens)).value

    pool = ResourcePool()
    stores = await backend.open()
    async with HarnessRuntime(stores.sessions, pool) as host:
        for _ in range(2):
            agent = agent_for(calls(("shell", {})), says("done"), tools=registry)
            async with AgentRuntime(agent, backend=backend, host=host) as runtime:
                await runtime.run("hi")
        assert (opened, disposed) == (1, 0)
    await pool.aclose()
    assert disposed == 1
    async with AgentRuntime(
        agent_for(calls(("shell", {})), says("done"), tools=registry), backend=backend
    ) as runtime:
        await runtime.run("hi")
        assert (opened, disposed) == (2, 1)
    assert disposed == 2


async def test_closing_it_leaves_a_run_that_waits_to_be_resumed(backend: SQLiteBackend) -> None:
    runtime = runtime_for(backend, calls(("save", {"text": "x"})), says("never"))
    handle = await runtime.submit("hi")
    question = await first_of(handle, ApprovalRequired)
    waiting = asyncio.ensure_future(handle.result())
    await runtime.aclose()
    with pytest.raises(Exception, match="paused") as raised:
        await waiting
    assert getattr(raised.value, "code", "") == "run_paused"
    async with runtime_for(backend, says("done")) as other:
        info = await other.status()
        assert info is not None
        # Nobody paused it: it was cut off, and waits for an answer.
        assert (info.status, info.pending) == ("waiting", (question,))
        assert (await ended(await other.approve(question))).text == "done"


async def test_a_runtime_that_was_closed_says_so(backend: SQLiteBackend) -> None:
    runtime = runtime_for(backend, says("hello"))
    await runtime.aclose()
    with pytest.raises(AgentClosed):
        await runtime.run("hi")
    assert await (await backend.open()).executions.unfinished() == []  # type: ignore[union-attr]
