"""A message is performed once, in its turn, by whoever takes it; or it leaves nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.runtime.runtimes import agent_for, database, ended, first_of, runtime_for
from tests.support.processes import run_code
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.host import HarnessRuntime
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import Performed, Turn, executions_of
from web.harness.runtime.fitting import fitting_of
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.sql import SqlBackend, SQLiteBackend
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.journal import Execution, GivenAnswer, Submission
from web.harness.sessions.opening import Stores
from web.harness.sessions.store import SessionLease, SessionStore
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.errors import AgentClosed, HarnessError, NotFound, SessionConflict
from web.harness.values.events import ApprovalRequired, RunResult

pytestmark = pytest.mark.anyio

SAVE = calls(("save", {"text": "x"}))


class HeldBackend(SqlBackend):
    """Opens for the `at`-th time only once it is let go."""

    def __init__(self, stores: Stores, at: int) -> None:
        super().__init__(stores)
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self._left = at

    async def open(self) -> Stores:
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            await self.go.wait()
        return await super().open()


async def waiting(backend: SQLiteBackend, runtime: AgentRuntime, *texts: str) -> list[str]:
    """Messages that were taken, and whose process ended before it began them."""
    executions = executions_of(await backend.open())
    runs = [f"{9 - number}" for number in range(len(texts))]
    for run_id, text in zip(runs, texts, strict=True):
        fitting = fitting_of(runtime.agent)
        await executions.submit(
            Submission(run_id, LOCAL_IDENTITY, "s", run_id, text, fitting=fitting)
        )
    return runs


async def left(backend: SQLiteBackend) -> list[str]:
    executions = executions_of(await backend.open())
    return [each.status for each in await executions.unfinished()]


async def test_whoever_loses_the_race_for_a_request_follows_the_run_of_the_other(
    backend: SQLiteBackend,
) -> None:
    held = HeldBackend(await backend.open(), at=2)
    script = (SAVE, says("done"))
    async with (
        AgentRuntime(agent_for(*script), backend=held) as first,
        runtime_for(backend, *script) as second,
    ):
        slow = asyncio.ensure_future(first.submit("hi", request_id="q"))
        await asyncio.wait_for(held.reached.wait(), 10)
        handle = await second.submit("hi", request_id="q")
        question = await first_of(handle, ApprovalRequired)
        held.go.set()
        followed = await asyncio.wait_for(slow, 10)
        assert (followed.run_id, followed.is_here) == (handle.run_id, False)
        await second.approve(question)
        assert await ended(followed) == await ended(handle)


async def test_a_message_that_another_run_holds_back_is_refused_and_gone(
    backend: SQLiteBackend,
) -> None:
    async with (
        runtime_for(backend, SAVE, says("done")) as first,
        runtime_for(backend, says("never")) as second,
    ):
        await first_of(await first.submit("hi"), ApprovalRequired)
        with pytest.raises(SessionConflict):
            await second.submit("and?", request_id="q")
        assert await left(backend) == ["running"]


async def test_a_message_that_two_sent_and_another_run_holds_back_is_refused_to_both_and_gone(
    backend: SQLiteBackend,
) -> None:
    held = HeldBackend(await backend.open(), at=2)
    async with (
        runtime_for(backend, SAVE, says("done"), says("hello")) as first,
        AgentRuntime(agent_for(says("never")), backend=held) as second,
        runtime_for(backend, says("never")) as third,
    ):
        handle = await first.submit("hi")
        question = await first_of(handle, ApprovalRequired)
        slow = asyncio.ensure_future(second.submit("and?", request_id="q"))
        await asyncio.wait_for(held.reached.wait(), 10)
        with pytest.raises(SessionConflict):
            await third.submit("and?", request_id="q")
        held.go.set()
        with pytest.raises(SessionConflict):
            await asyncio.wait_for(slow, 10)
        assert await left(backend) == ["running"]
        await first.approve(question)
        await ended(handle)
        # Sent again it is a new run, and nothing else is left to be performed.
        assert (await ended(await first.submit("and?", request_id="q"))).text == "hello"
        with pytest.raises(NotFound):
            await first.resume()


async def test_a_message_that_another_took_back_is_performed_for_who_waits_for_the_session(
    backend: SQLiteBackend,
) -> None:
    stores = await backend.open()
    store = WatchedStore(stores.sessions)
    host = HarnessRuntime(store)  # type: ignore[arg-type]
    async with (
        runtime_for(backend, SAVE, says("done")) as first,
        AgentRuntime(agent_for(says("hello")), backend=backend, host=host) as second,
        runtime_for(backend, says("never")) as third,
    ):
        question = await first_of(await first.submit("hi"), ApprovalRequired)
        patient = asyncio.ensure_future(second.submit("and?", request_id="q", wait=30))
        await asyncio.wait_for(store.wanted.wait(), 10)
        with pytest.raises(SessionConflict):
            await third.submit("and?", request_id="q")
        await first.approve(question)
        assert (await ended(await asyncio.wait_for(patient, 30))).text == "hello"
        assert await left(backend) == []


async def test_a_stop_from_before_a_run_begins_is_heard_before_its_first_model_call(
    backend: SQLiteBackend,
) -> None:
    provider = ScriptedProvider(says("never"))
    async with runtime_for(backend, provider=provider) as runtime:
        (run_id,) = await waiting(backend, runtime, "delete everything")
        executions = executions_of(await backend.open())
        await executions.answer(run_id, GivenAnswer("cancel", "cancel"))
        assert (await ended(await runtime.resume())).status == "cancelled"
        assert provider.requests == []


async def test_a_stop_from_before_a_run_goes_on_is_heard_before_its_calls_start_again(
    backend: SQLiteBackend,
) -> None:
    runs: list[asyncio.Event] = []
    begun = asyncio.Event()
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW, replay="safe")
    async def look() -> str:
        runs.append(begun)
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async with runtime_for(backend, calls(("look", {})), tools=registry) as runtime:
        runtime.pause_seconds = 0
        handle = await runtime.submit("hi")
        await asyncio.wait_for(begun.wait(), 10)
    executions = executions_of(await backend.open())
    await executions.answer(handle.run_id, GivenAnswer("cancel", "cancel"))
    async with runtime_for(backend, says("never"), tools=registry) as other:
        assert (await ended(await other.resume())).status == "cancelled"
    assert len(runs) == 1


async def test_a_message_whose_sender_is_cancelled_early_is_not_performed_later(
    backend: SQLiteBackend,
) -> None:
    provider = ScriptedProvider(says("never"))
    await backend.open()
    async with runtime_for(backend, provider=provider) as runtime:
        for turns in range(12):
            sending = asyncio.ensure_future(runtime.submit("delete everything"))
            for _ in range(turns):
                await asyncio.sleep(0)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            assert await left(backend) == []
        with pytest.raises(NotFound):
            await runtime.resume()
        assert provider.requests == []


async def test_messages_that_wait_are_performed_in_their_order(backend: SQLiteBackend) -> None:
    provider = ScriptedProvider(says("ok"))
    async with runtime_for(backend, provider=provider) as runtime:
        await waiting(backend, runtime, "one", "two", "three")
        for _ in range(3):
            await ended(await runtime.resume())
        with pytest.raises(NotFound):
            await runtime.resume()
        asked = [request.messages[-1].text for request in provider.requests]
        assert asked == ["one", "two", "three"]


async def test_a_message_that_was_never_begun_hides_no_run(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        waits = await waiting(backend, runtime, "old")
        handle = await runtime.submit("new")
        await first_of(handle, ApprovalRequired)
        info = await runtime.status()
        assert info is not None
        assert (info.run_id, len(info.pending), info.is_here) == (handle.run_id, 1, True)
        assert (await runtime.pause()).run_id == handle.run_id
        with pytest.raises(HarnessError):
            await ended(handle)
        assert (await runtime.resume()).run_id == handle.run_id
        stopped = await runtime.cancel()
        assert stopped.run_id == handle.run_id
        assert (await ended(stopped)).status == "cancelled"
        info = await runtime.status()
        assert info is not None
        assert (info.run_id, info.status) == (waits[0], "submitted")


async def found(backend: SQLiteBackend, run_id: str) -> Execution:
    execution = await executions_of(await backend.open()).find(run_id)
    assert execution is not None
    return execution


class WatchedStore:
    """Says when somebody wants a session."""

    def __init__(self, inner: SessionStore) -> None:
        self.inner = inner
        self.guarantees = inner.guarantees
        self.wanted = asyncio.Event()

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> SessionLease:
        self.wanted.set()
        return await self.inner.acquire(identity, session_id, wait=wait)


async def test_a_runtime_that_closes_says_so_to_who_sends_a_message(
    backend: SQLiteBackend,
) -> None:
    store = WatchedStore((await backend.open()).sessions)
    host = HarnessRuntime(store)  # type: ignore[arg-type]
    runtime = AgentRuntime(agent_for(says("never")), backend=backend, host=host)
    async with await store.inner.acquire(LOCAL_IDENTITY, "s"):
        sending = asyncio.ensure_future(runtime.submit("hi", wait=30))
        await asyncio.wait_for(store.wanted.wait(), 10)
        await runtime.aclose()
        with pytest.raises(AgentClosed):
            await asyncio.wait_for(sending, 10)
    assert await left(backend) == []


@pytest.mark.parametrize("with_events", [True, False])
async def test_who_follows_a_run_that_is_forgotten_is_told(
    backend: SQLiteBackend, with_events: bool
) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        handle = await runtime.submit("hi")
        await first_of(handle, ApprovalRequired)
    stores, execution = await backend.open(), await found(backend, handle.run_id)
    followed = RunHandle(stores, execution)
    waits = asyncio.ensure_future(followed.result())
    for _ in range(20):
        # Reads are done in their order: by now it has found nothing, and waits.
        await found(backend, handle.run_id)
    assert not waits.done()
    forget = stores.events.forget if with_events else executions_of(stores).forget
    await forget(handle.run_id)
    with pytest.raises(NotFound):
        await asyncio.wait_for(waits, 10)


async def test_opening_a_database_leaves_others_the_event_loop(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, threading\n"
        "from web.harness import SQLiteBackend\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'sqlalchemy':\n"
        "            print(threading.current_thread() is threading.main_thread())\n"
        "sys.meta_path.insert(0, Watch())\n"
        "async def main():\n"
        f"    backend = SQLiteBackend({str(database(tmp_path))!r})\n"
        "    await backend.open()\n"
        "    await backend.aclose()\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.to_thread(run_code, code)
    assert done.stdout.strip() == "False", done.stderr


class HastyBackend(SqlBackend):
    """Its first caller is cancelled in the very moment in which the run begins."""

    caller: asyncio.Future[RunResult] | None = None

    async def perform(self, turn: Turn) -> Performed:
        if self.caller is not None:
            self.caller.cancel()
        return await super().perform(turn)


async def test_a_message_whose_sender_is_cancelled_as_its_run_begins_is_stopped(
    backend: SQLiteBackend,
) -> None:
    hasty = HastyBackend(await backend.open())
    async with AgentRuntime(agent_for([asyncio.Event()]), backend=hasty) as runtime:
        hasty.caller = caller = asyncio.ensure_future(runtime.run("delete everything"))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(caller, 10)
        assert await left(backend) == []
