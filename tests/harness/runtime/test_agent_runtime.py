"""An `AgentRuntime` runs as an `Agent` does, and its sessions go on in other processes."""

from __future__ import annotations

import asyncio

import pytest

from tests.harness.runtime.runtimes import agent_for, ended, first_of, runtime_for, session
from tests.support.processes import run_code
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.agent.extensions import BaseExtension
from web.harness.agent.questions import Answer
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.sql import SQLiteBackend
from web.harness.sessions.identity import HarnessIdentity
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolContext
from web.harness.values.errors import AgentBusy, HarnessError, NotFound, SessionConflict
from web.harness.values.events import ApprovalRequired, RunResult, TextDelta, ToolResult
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio


async def test_a_stream_gives_the_events_of_a_turn_numbered_from_1(backend: SQLiteBackend) -> None:
    async with (
        runtime_for(backend, says("hel", "lo")) as runtime,
        runtime.run_stream("hi") as events,
    ):
        told = [event async for event in events]
    assert [event.number for event in told] == list(range(1, len(told) + 1))
    texts = [event.body.text for event in told if isinstance(event.body, TextDelta)]
    assert "".join(texts) == "hello"
    assert isinstance(told[-1].body, RunResult)


async def test_whoever_reads_the_result_may_send_the_next_message_at_once(
    backend: SQLiteBackend,
) -> None:
    async with runtime_for(backend, says("hello")) as runtime:
        handle = await runtime.submit("one")
        async for event in handle.stream():
            if isinstance(event.body, RunResult):
                handle = await runtime.submit("two")
        await ended(handle)
        assert [message.text for message in (await session(backend)).history] == [
            *("one", "hello", "two", "hello")
        ]


async def test_leaving_a_stream_early_cancels_the_run(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, [*says("one")[:1], asyncio.Event()]) as runtime:
        async with runtime.run_stream("hi") as events:
            async for event in events:
                if isinstance(event.body, TextDelta):
                    break
        kept = await session(backend)
        assert (kept.revision, kept.replayable) == (1, False)
        assert [message.text for message in kept.history] == ["hi", "one"]
        with pytest.raises(NotFound):
            await runtime.resume()


async def test_a_caller_that_is_cancelled_cancels_its_run(backend: SQLiteBackend) -> None:
    provider = ScriptedProvider([*says("one")[:1], asyncio.Event()])
    async with runtime_for(backend, provider=provider) as runtime:
        running = asyncio.ensure_future(runtime.run("hi"))
        await asyncio.wait_for(provider.asked.wait(), 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await session(backend)).replayable is False
        assert await runtime.status() is None


async def test_a_second_run_is_refused_at_once_and_leaves_nothing(backend: SQLiteBackend) -> None:
    provider = ScriptedProvider(calls(("save", {"text": "x"})), says("done"))
    async with (
        runtime_for(backend, provider=provider) as runtime,
        runtime_for(backend, says("never")) as other,
    ):
        handle = await runtime.submit("hi")
        question = await first_of(handle, ApprovalRequired)
        for session_id in ("s", "another"):
            with pytest.raises(AgentBusy):
                await runtime.submit("and?", session_id=session_id)
        with pytest.raises(SessionConflict) as busy:
            await other.submit("and?")
        assert busy.value.code == "session_conflict"
        await runtime.approve(question)
        assert (await ended(handle)).text == "done"
        assert (await runtime.run("and now?")).text == "done"
        stores = await backend.open()
        assert stores.executions is not None
        assert await stores.executions.unfinished() == []


async def test_a_session_goes_on_in_a_fresh_process_with_all_that_it_had(
    backend: SQLiteBackend,
) -> None:
    class Counter(BaseExtension):
        name = "counter"
        count = 0

        def state(self) -> JsonObject:
            return {"count": self.count}

        def restore(self, state: JsonObject) -> None:
            self.count = state["count"]

    first = Counter()
    async with runtime_for(
        backend, calls(("save", {"text": "x"})), says("saved"), extensions=[first]
    ) as runtime:
        handle = await runtime.submit("save it")
        await runtime.approve(await first_of(handle, ApprovalRequired), for_session=True)
        await ended(handle)
        runtime.agent.memory.pin(f"{handle.run_id}-0")
        first.count = 7
        await runtime.run("and again")
        usage = runtime.agent.usage
    fresh, provider = Counter(), ScriptedProvider(calls(("save", {"text": "y"})), says("done"))
    async with runtime_for(backend, provider=provider, extensions=[fresh]) as runtime:
        # It may run without a question: that was allowed for the session.
        assert (await runtime.run("once more")).text == "done"
        asked = [message.text for message in provider.requests[0].messages]
        assert asked[0] == "save it"
        assert asked[-1] == "once more"
        assert runtime.agent.memory.pinned == {f"{handle.run_id}-0"}
        assert fresh.count == 7
        assert runtime.agent.usage.input_tokens > usage.input_tokens > 0


async def test_an_extension_whose_state_cannot_be_kept_costs_no_conversation(
    backend: SQLiteBackend,
) -> None:
    class Broken(BaseExtension):
        name = "broken"

        def state(self) -> JsonObject:
            return {"now": object()}

    async with runtime_for(backend, says("hello"), extensions=[Broken()]) as runtime:
        assert (await runtime.run("hi")).text == "hello"
    assert [message.text for message in (await session(backend)).history] == ["hi", "hello"]


async def test_sessions_of_one_agent_and_those_of_others_never_meet(
    backend: SQLiteBackend,
) -> None:
    provider = ScriptedProvider(says("hello"))
    async with runtime_for(backend, provider=provider) as runtime:
        await runtime.run("one")
        await runtime.run("two", session_id="another")
        await runtime.run("three")
    texts = [[message.text for message in request.messages] for request in provider.requests]
    assert texts == [["one"], ["two"], ["one", "hello", "three"]]
    somebody = HarnessIdentity("elsewhere", "somebody")
    alien = ScriptedProvider(calls(("save", {"text": "x"})), says("hello"))
    async with (
        AgentRuntime(agent_for(provider=alien), backend=backend, identity=somebody) as other,
        runtime_for(backend, says("x")) as ours,
    ):
        handle = await other.submit("mine")
        question = await first_of(handle, ApprovalRequired)
        assert [message.text for message in alien.requests[0].messages] == ["mine"]
        assert await ours.status() is None
        assert await ours.status(run_id=handle.run_id) is None
        for refused in (
            ours.approve(question),
            ours.resume(run_id=handle.run_id),
            ours.cancel(run_id=handle.run_id),
        ):
            with pytest.raises(HarnessError):
                await refused
        await other.cancel()
        assert (await ended(handle)).status == "cancelled"


async def test_what_tools_keep_is_committed_with_the_session(backend: SQLiteBackend) -> None:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def count(context: ToolContext) -> str:
        context.state["count"] = context.state.get("count", 0) + 1
        return f"{context.session_id} {context.state['count']}"

    for number in (1, 2):
        agent = agent_for(calls(("count", {})), says("done"), tools=registry, session_id="")
        async with AgentRuntime(agent, backend=backend) as runtime:
            runtime.session_id = "t"
            handle = await runtime.submit("hi")
            await ended(handle)
            assert (await first_of(handle, ToolResult)).text == f"t {number}"
    assert (await session(backend, "t")).state["count"] == 2


async def test_an_approver_of_the_agent_answers_in_the_name_of_a_person(
    backend: SQLiteBackend,
) -> None:
    async def approver(question: ApprovalRequired) -> Answer:
        return Answer("allow", {"text": "edited"})

    agent = agent_for(calls(("save", {"text": "x"})), says("done"), approver=approver)
    async with AgentRuntime(agent, backend=backend) as runtime:
        handle = await runtime.submit("hi")
        assert (await first_of(handle, ToolResult)).text.startswith("saved edited")


async def test_a_paused_run_is_shown_to_its_readers_as_such(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, calls(("save", {"text": "x"})), says("done")) as runtime:
        handle = await runtime.submit("hi")
        question = await first_of(handle, ApprovalRequired)
        await runtime.pause()
        with pytest.raises(HarnessError) as paused:
            await first_of(handle, RunResult)
        assert paused.value.code == "run_paused"
        # Twice, and after a resumption, it may be paused again.
        again = await runtime.resume()
        await runtime.pause()
        with pytest.raises(HarnessError):
            await ended(again)
        last = await runtime.resume()
        await runtime.approve(question)
        assert (await ended(last)).text == "done"


async def test_a_run_that_nobody_performs_is_marked_as_paused(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, calls(("save", {"text": "x"})), says("done")) as runtime:
        handle = await runtime.submit("hi")
        question = await first_of(handle, ApprovalRequired)
    async with runtime_for(backend, says("done")) as other:
        await other.pause()
        info = await other.status()
        assert info is not None
        assert info.status == "paused"
        followed = await other.approve(question, resume=False)
        assert not followed.is_here
        assert (await ended(await other.resume())).text == "done"
        assert (await ended(followed)).text == "done"


async def test_it_costs_no_import_of_a_database_until_it_runs() -> None:
    code = (
        "import sys\n"
        "from web.harness import Agent, AgentRuntime, SQLiteBackend\n"
        "AgentRuntime(Agent(), backend=SQLiteBackend('x.db'))\n"
        "print([name for name in ('sqlalchemy', 'asyncpg', 'mcp', 'temporalio') "
        "if name in sys.modules])"
    )
    done = await asyncio.to_thread(run_code, code)
    assert done.stdout.strip() == "[]", done.stderr


async def test_of_a_run_that_has_ended_it_is_known_what_it_took(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, calls(("double", {"number": 4})), says("it is 8")) as runtime:
        handle = await runtime.submit("double four")
        result = await ended(handle)
        info = await runtime.status(run_id=handle.run_id)
        assert info is not None
        assert (info.status, info.pending) == ("ended", ())
        assert (info.iterations, info.usage) == (result.iterations, result.usage) == (2, info.usage)
        assert info.usage.input_tokens > 0
