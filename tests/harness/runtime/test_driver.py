"""A run through `HarnessRuntime`, with the runtime as its driver: one path, committed once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.runtime.runtimes import ended, first_of, runtime_for, session
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.host import HarnessRuntime
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import Missing, Performed, Turn, executions_of
from web.harness.runtime.fitting import fitting_of
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.lending import KEPT
from web.harness.runtime.sql import SqlBackend, SQLiteBackend
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.journal import Execution, Submission
from web.harness.sessions.store import SessionLease
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel
from web.harness.values.errors import HarnessError, StoreError
from web.harness.values.events import ApprovalRequired, ToolResult

pytestmark = pytest.mark.anyio


async def submitted(runtime: AgentRuntime, text: str = "hi") -> Execution:
    executions = executions_of(await runtime.backend.open())
    submission = Submission(
        "r", LOCAL_IDENTITY, "s", "request", text, fitting=fitting_of(runtime.agent)
    )
    return await executions.submit(submission)


async def status_of(backend: SqlBackend, run_id: str = "r") -> str:
    execution = await executions_of(await backend.open()).find(run_id)
    assert execution is not None
    return execution.status


async def test_a_host_runs_a_durable_run_and_commits_it_once(backend: SQLiteBackend) -> None:
    stores = await backend.open()
    host = HarnessRuntime(stores.sessions)
    async with runtime_for(backend, says("hello")) as runtime:
        execution = await submitted(runtime)
        result = await host.run(LOCAL_IDENTITY, "s", runtime.driver(execution))
    assert result.text == "hello"
    kept = await session(backend)
    assert (kept.revision, [each.text for each in kept.history]) == (1, ["hi", "hello"])
    assert await status_of(backend) == "ended"


async def test_what_a_session_keeps_beside_messages_may_be_left_to_the_application(
    backend: SQLiteBackend,
) -> None:
    stores = await backend.open()
    provider = ScriptedProvider(says("hello"))
    runtime = runtime_for(backend, provider=provider)
    plain = AgentRuntime(runtime.agent, backend=backend, keeps_state=False)
    async with plain:
        execution = await submitted(plain)
        host = HarnessRuntime(stores.sessions)
        await host.run(LOCAL_IDENTITY, "s", plain.driver(execution))
    assert KEPT not in (await session(backend)).state


class LeftAlone(SQLiteBackend):
    """There is nobody at first who would perform a run, and then there is."""

    async def perform(self, turn: Turn) -> Performed:
        assert turn.alone is not None
        turn.alone("worker")
        turn.alone("")
        return await super().perform(turn)


async def test_who_waits_for_a_run_is_told_whether_anybody_performs_it(tmp_path: Path) -> None:
    backend, told = LeftAlone(str(tmp_path / "runs.db")), list[Missing]()
    stores = await backend.open()
    async with runtime_for(backend, says("hello")) as runtime:
        driver = runtime.driver(await submitted(runtime), alone=told.append)
        await HarnessRuntime(stores.sessions).run(LOCAL_IDENTITY, "s", driver)
    await backend.aclose()
    assert told == ["worker", ""]


async def test_sessions_may_be_kept_elsewhere(backend: SQLiteBackend) -> None:
    sessions = InMemorySessionStore()
    async with runtime_for(backend, says("hello")) as runtime:
        execution = await submitted(runtime)
        await HarnessRuntime(sessions).run(LOCAL_IDENTITY, "s", runtime.driver(execution))
    async with await sessions.acquire(LOCAL_IDENTITY, "s") as lease:
        assert [each.text for each in (await lease.read()).history] == ["hi", "hello"]
    assert (await session(backend)).revision == 0
    assert await status_of(backend) == "ended"


async def test_a_run_that_is_paused_leaves_the_session_as_it_was(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, says("one"), calls(("save", {"text": "x"})), says("two")) as r:
        await r.run("first")
        before = await session(backend)
        handle = await r.submit("second")
        question = await first_of(handle, ApprovalRequired)
        await r.pause()
        with pytest.raises(HarnessError):
            await ended(handle)
        assert await session(backend) == before
        # The agent, too, is as it was.
        assert [message.text for message in r.agent.memory.get_messages()] == ["first", "one"]
        await r.resume()
        handle = await r.approve(question)
        assert (await ended(handle)).text == "two"
        assert (await session(backend)).revision == before.revision + 1


class FullStore:
    """The sessions of a disk that is full, until there is room again."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.guarantees = inner.guarantees
        self.full = True

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> SessionLease:
        lease = await self.inner.acquire(identity, session_id, wait=wait)
        return FullLease(lease) if self.full else lease  # type: ignore[return-value]


class FullLease:
    def __init__(self, inner: SessionLease) -> None:
        self.read = inner.read
        self.release = inner.release

    async def commit(self, *_: Any, **__: Any) -> Any:
        raise StoreError("The disk is full.", code="store_full")


async def test_a_run_whose_history_could_not_be_committed_is_only_committed_when_it_is_resumed(
    backend: SQLiteBackend,
) -> None:
    stores = await backend.open()
    sessions = FullStore(stores.sessions)
    host = HarnessRuntime(sessions)  # type: ignore[arg-type]
    provider = ScriptedProvider(calls(("double", {"number": 4})), says("it is 8"))
    async with AgentRuntime(
        runtime_for(backend, provider=provider).agent, backend=backend, host=host
    ) as runtime:
        handle = await runtime.submit("double four")
        with pytest.raises(StoreError):
            await ended(handle)
        assert await status_of(backend, handle.run_id) != "ended"
        assert (await session(backend)).revision == 0
        sessions.full = False
    fresh = ScriptedProvider(says("never asked"))
    async with runtime_for(backend, provider=fresh) as runtime:
        again = await runtime.resume()
        assert (await ended(again)).text == "it is 8"
        assert fresh.requests == []
        messages = [message.role for message in runtime.agent.memory.get_messages()]
        assert messages == ["user", "assistant", "tool", "assistant"]
    kept = await session(backend)
    assert (kept.revision, len(kept.history)) == (1, 4)
    assert await status_of(backend, handle.run_id) == "ended"


async def test_tools_that_come_with_a_model_call_are_there_when_a_cut_off_call_needs_them(
    backend: SQLiteBackend,
) -> None:
    def send(text: str) -> str:
        return f"sent {text}"

    def preparing(runtime: AgentRuntime) -> Any:
        async def prepare() -> str:
            if "send" not in runtime.agent.tools:
                runtime.agent.tools.add(function_tool(send, permission=PermissionLevel.ASK))
            return ""

        return prepare

    stores = await backend.open()
    host = HarnessRuntime(stores.sessions)
    async with runtime_for(backend, calls(("send", {"text": "x"})), says("never")) as first:
        execution = await submitted(first)
        running = asyncio.ensure_future(
            host.run(LOCAL_IDENTITY, "s", first.driver(execution, prepare=preparing(first)))
        )
        question = await first_of(RunHandle(stores, execution), ApprovalRequired)
        running.cancel()
        await asyncio.wait({running})
    async with runtime_for(backend, says("done")) as second:
        with pytest.raises(HarnessError) as refused:
            await host.run(LOCAL_IDENTITY, "s", second.driver(execution))
        assert "the tool send is missing, which an open call needs" in refused.value.message
        await second.approve(question, resume=False)
        driver = second.driver(execution, prepare=preparing(second))
        assert (await host.run(LOCAL_IDENTITY, "s", driver)).text == "done"
        handle = RunHandle(stores, execution)
        assert (await first_of(handle, ToolResult)).text == "sent x"
