"""What no run can take is refused before it is written down; what is damaged harms nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.harness.runtime.runtimes import ended, first_of, runtime_for
from tests.support.scripted_provider import calls, says
from web.harness.agent.pausing import RunPaused
from web.harness.runtime.backend import executions_of
from web.harness.runtime.sql import SQLiteBackend
from web.harness.sessions.answers import MAX_REASON_CHARS
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import GivenAnswer
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel
from web.harness.values.errors import DecisionRefused, HarnessError
from web.harness.values.events import ApprovalRequired, RecoveryRequired, ToolResult

pytestmark = pytest.mark.anyio

SAVE = calls(("save", {"text": "x"}))


async def damage(backend: SQLiteBackend, statement: str) -> None:
    database = (await backend.open()).database
    assert database is not None
    await database.write(lambda each: each.do(statement))


async def stuck(backend: SQLiteBackend) -> RecoveryRequired:
    """A call that was cut off in its middle."""
    begun = asyncio.Event()
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def save(text: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return text

    async with runtime_for(backend, SAVE, says("done"), tools=registry) as runtime:
        runtime.pause_seconds = 0
        await runtime.submit("hi")
        await asyncio.wait_for(begun.wait(), 10)
    async with runtime_for(backend, says("done")) as other:
        return await first_of(await other.resume(), RecoveryRequired)


@pytest.mark.parametrize(
    "answer",
    [
        GivenAnswer("decision", "k", {"decision": "maybe"}),
        GivenAnswer("decision", "k", {"decision": ["allow"]}),
        GivenAnswer("decision", "k", {"decision": "allow", "arguments": [1]}),
        GivenAnswer("decision", "k", {"decision": "deny", "reason": None}),
        GivenAnswer("decision", "k", {"decision": "deny", "reason": "x" * (MAX_REASON_CHARS + 1)}),
        GivenAnswer("input", "k", {"action": "perhaps"}),
        GivenAnswer("input", "k", {"action": "accept", "content": "three"}),
        GivenAnswer("resolution", "k", {"how": "result", "text": None}),
        GivenAnswer("resolution", "k", {}),
        GivenAnswer("resolution", "k", "result"),  # type: ignore[arg-type]
    ],
)
async def test_an_answer_of_the_wrong_kind_is_not_written_down(
    backend: SQLiteBackend, answer: GivenAnswer
) -> None:
    executions = executions_of(await backend.open())
    with pytest.raises(DecisionRefused):
        await executions.answer("r", answer)


async def test_a_question_stays_open_after_an_answer_that_was_refused(
    backend: SQLiteBackend,
) -> None:
    question = await stuck(backend)
    anything: Any = None
    async with runtime_for(backend, says("done")) as runtime:
        with pytest.raises(DecisionRefused, match="no text"):
            await runtime.resolve_tool(question, "result", anything)
        for refused in (runtime.approve(anything), runtime.decline(anything)):
            with pytest.raises(DecisionRefused, match="no question"):
                await refused
        handle = await runtime.resolve_tool(question, "result", "it ran")
        assert (await ended(handle)).text == "done"


async def test_arguments_that_are_no_object_are_refused(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        handle = await runtime.submit("hi")
        question = await first_of(handle, ApprovalRequired)
        odd: Any
        for odd in ([1], "text", 3):
            with pytest.raises(DecisionRefused, match="no object"):
                await runtime.approve(question, arguments=odd)
        with pytest.raises(DecisionRefused, match="no text"):
            await runtime.decline(question, 3)  # type: ignore[arg-type]
        await runtime.decline(question, "no")
        assert (await ended(handle)).text == "done"


async def test_after_a_damaged_answer_its_question_is_open_again(backend: SQLiteBackend) -> None:
    two = calls(("save", {"text": "x"}), ("save", {"text": "y"}))
    async with runtime_for(backend, two, says("done")) as runtime:
        handle = await runtime.submit("hi")
        async for event in handle.stream():
            if isinstance(event.body, ApprovalRequired):
                if event.body.arguments == {"text": "x"}:
                    first = event.body
                else:
                    second = event.body
                    break
    executions = executions_of(await backend.open())
    await executions.answer(handle.run_id, GivenAnswer("decision", first.key, {"decision": "deny"}))
    await damage(backend, "UPDATE harness_answers SET body = '[tru'")
    async with runtime_for(backend, says("done")) as other:
        info = await other.status()
        assert info is not None
        assert info.pending == (first, second)
        handle = await other.approve(second)
        await other.decline(first, "not this one")
        assert (await ended(handle)).text == "done"
        results = [
            event.body.text
            for event in (await handle.events()).events
            if isinstance(event.body, ToolResult)
        ]
        assert len(results) == 2
        assert "saved y" in results
        assert any("not this one" in result for result in results)


async def test_after_a_damaged_resolution_its_question_is_open_again(
    backend: SQLiteBackend,
) -> None:
    question = await stuck(backend)
    executions = executions_of(await backend.open())
    info = (await executions.unfinished())[0]
    answer = GivenAnswer("resolution", question.key, {"how": "result", "text": "x"})
    await executions.answer(info.submission.run_id, answer)
    await damage(backend, "UPDATE harness_answers SET body = '{\"how\": 3}'")
    async with runtime_for(backend, says("done")) as runtime:
        status = await runtime.status()
        assert status is not None
        assert status.pending == (question,)
        handle = await runtime.resolve_tool(question, "result", "it ran")
        assert (await ended(handle)).text == "done"
        assert "it ran" in (await first_of(handle, ToolResult)).text


async def test_a_run_can_be_stopped_whatever_was_said_before(backend: SQLiteBackend) -> None:
    question = await stuck(backend)
    executions = executions_of(await backend.open())
    info = (await executions.unfinished())[0]
    answer = GivenAnswer("resolution", question.key, {"how": "result", "text": "x"})
    await executions.answer(info.submission.run_id, answer)
    await damage(backend, "UPDATE harness_answers SET body = '{\"how\": 3}', kind = 'gossip'")
    async with runtime_for(backend, says("done")) as runtime:
        assert (await ended(await runtime.cancel())).status == "cancelled"


async def test_an_agent_that_does_not_fit_leaves_the_question_open(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        question = await first_of(await runtime.submit("hi"), ApprovalRequired)
    async with runtime_for(backend, says("never"), tools=ToolRegistry()) as other:
        for refused in (other.approve(question), other.decline(question, "no")):
            with pytest.raises(HarnessError) as differs:
                await refused
            assert differs.value.code == "runtime_differs"
        info = await other.status()
        assert info is not None
        assert info.pending == (question,)
        # Who does not want it to go on here needs no agent that fits.
        await other.approve(question, resume=False)
    async with runtime_for(backend, says("done")) as fitting:
        assert (await ended(await fitting.resume())).text == "done"


async def test_an_agent_that_does_not_fit_answers_a_run_that_another_performs(
    backend: SQLiteBackend,
) -> None:
    async with (
        runtime_for(backend, SAVE, says("done")) as runtime,
        runtime_for(backend, says("never"), tools=ToolRegistry()) as other,
    ):
        handle = await runtime.submit("hi")
        await other.approve(await first_of(handle, ApprovalRequired))
        assert (await ended(handle)).text == "done"


@pytest.mark.parametrize("column", ["state", "body"])
@pytest.mark.parametrize("text", ["{", '{"v": 99}'])
async def test_a_run_that_cannot_be_read_can_be_ended(
    backend: SQLiteBackend, column: str, text: str
) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        await first_of(await runtime.submit("hi"), ApprovalRequired)
    await damage(backend, f"UPDATE harness_executions SET {column} = '{text}'")
    async with runtime_for(backend, says("hello")) as other:
        info = await other.status()
        assert info is not None
        assert "cannot be read" in info.unreadable
        with pytest.raises(HarnessError) as unread:
            await other.resume()
        assert unread.value.code in ("store_corrupt", "from_the_future")
        result = await ended(await other.cancel())
        assert (result.status, result.reason) == ("failed", unread.value.code)
        assert await other.status() is None
        assert (await other.run("again")).text == "hello"


async def test_a_run_whose_row_of_events_was_lost_can_be_ended_and_gone_on_with(
    backend: SQLiteBackend,
) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        await first_of(await runtime.submit("hi"), ApprovalRequired)
    await damage(backend, "DELETE FROM harness_runs")
    async with runtime_for(backend, says("done")) as other:
        handle = await other.resume()
        question = await first_of(handle, ApprovalRequired)
        await damage(backend, "DELETE FROM harness_runs")
        await other.pause()
        with pytest.raises(RunPaused):
            await ended(handle)
        info = await other.status()
        assert info is not None
        assert info.pending == (question,)
        handle = await other.cancel()
        assert (await ended(handle)).status == "cancelled"
        numbers = [event.number for event in (await handle.events()).events]
        assert numbers == list(range(1, len(numbers) + 1))
    async with runtime_for(backend, says("hello")) as other:
        assert (await other.run("again")).text == "hello"


async def test_a_run_whose_events_cannot_be_read_is_told_of_and_can_be_ended(
    backend: SQLiteBackend,
) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        await first_of(await runtime.submit("hi"), ApprovalRequired)
    await damage(backend, "UPDATE harness_events SET body = '{'")
    async with runtime_for(backend, says("done")) as other:
        info = await other.status()
        assert info is not None
        assert "cannot be read" in info.unreadable
        assert (await ended(await other.cancel())).status == "cancelled"
        assert await other.status() is None


async def test_a_run_that_was_stopped_is_ended_once_whoever_has_its_session_is_gone(
    backend: SQLiteBackend,
) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        handle = await runtime.submit("hi")
        await first_of(handle, ApprovalRequired)
    # Held as by a process that stands still: it hears of nothing.
    sessions = (await backend.open()).sessions
    lease = await sessions.acquire(LOCAL_IDENTITY, "s")
    async with runtime_for(backend, says("never")) as other:
        stopped = await other.cancel()
        assert (stopped.run_id, stopped.is_here) == (handle.run_id, False)
        both = [asyncio.ensure_future(ended(stopped)) for _ in range(2)]
        done, _ = await asyncio.wait(both, timeout=0.1)
        assert not done
        await lease.release()
        assert [(await each).status for each in both] == ["cancelled", "cancelled"]
        assert await other.status() is None


async def test_a_run_whose_first_step_cannot_be_read_can_be_ended(backend: SQLiteBackend) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        await first_of(await runtime.submit("hi"), ApprovalRequired)
    await damage(backend, "UPDATE harness_steps SET body = '{' WHERE number = 1")
    async with runtime_for(backend, says("hello")) as other:
        with pytest.raises(HarnessError, match="cannot be read"):
            await other.resume()
        result = await ended(await other.cancel())
        assert (result.status, result.reason) == ("failed", "store_corrupt")
        assert await other.status() is None
