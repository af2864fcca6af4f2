"""Answers reach a run whoever gives them, and none of them leaves it waiting for ever."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from tests.harness.runtime.runtimes import agent_for, ended, first_of, runtime_for
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import executions_of
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.sql import SQLiteBackend
from web.harness.sessions.journal import GivenAnswer
from web.harness.subagents import delegate_tool
from web.harness.tools.forms import FormRefused
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import (
    ApprovalRequired,
    InputRequired,
    RecoveryRequired,
    ToolResult,
    innermost,
)

pytestmark = pytest.mark.anyio

FORM = {
    "mode": "form",
    "server": "s",
    "message": "How many?",
    "schema": {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    },
}


def asking() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    async def order(context: ToolContext) -> str:
        answer = await context.ask(FORM)
        return f"{answer.action} {answer.content}"

    return registry


async def test_what_a_tool_asks_for_is_answered_from_another_process(
    backend: SQLiteBackend,
) -> None:
    script = (calls(("order", {})), says("done"), calls(("order", {})), says("done"))
    async with (
        runtime_for(backend, *script, tools=asking()) as one,
        runtime_for(backend, *script, tools=asking()) as other,
    ):
        handle = await one.submit("hi")
        question = await first_of(handle, InputRequired)
        info = await other.status()
        assert info is not None
        assert (info.pending, info.status) == ((question,), "waiting")
        with pytest.raises(FormRefused):
            await other.answer_input(question, {"number": "many"})
        with pytest.raises(DecisionRefused):
            await other.approve(question)
        await other.answer_input(question, {"number": 3})
        await ended(handle)
        assert (await first_of(handle, ToolResult)).text == "accept {'number': 3}"
        again = await one.submit("hi")
        await other.decline(await first_of(again, InputRequired))
        await ended(again)
        assert (await first_of(again, ToolResult)).text == "decline None"


def asking_with_state(begun: list[str]) -> ToolRegistry:
    """As a tool of an MCP server that keeps nothing: what it needs to go on is in the question."""
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW, replay="manual")
    async def order(context: ToolContext) -> str:
        if context.continued is not None:
            state, answer = context.continued.state, context.continued.answer
            return f"{state['item']}: {answer.content}"
        begun.append(context.call_id)
        answer = await context.ask(FORM, state={"item": "tea"})
        return f"answered at once: {answer.content}"

    return registry


async def test_what_was_asked_with_a_state_is_answered_after_the_process_has_ended(
    backend: SQLiteBackend,
) -> None:
    begun: list[str] = []
    script = (calls(("order", {})), says("done"))
    async with runtime_for(backend, *script, tools=asking_with_state(begun)) as one:
        question = await first_of(await one.submit("hi"), InputRequired)
        one.pause_seconds = 0
    async with runtime_for(backend, says("done"), tools=asking_with_state(begun)) as other:
        info = await other.status()
        assert info is not None
        assert (info.status, info.pending) == ("waiting", (question,))
        await other.answer_input(question, {"number": 3}, resume=False)
        with pytest.raises(DecisionRefused):
            await other.answer_input(question, {"number": 4})
        handle = await other.resume()
        assert (await ended(handle)).text == "done"
        assert (await first_of(handle, ToolResult)).text == "tea: {'number': 3}"
    assert len(begun) == 1


async def test_what_was_asked_without_a_state_ends_with_its_process(
    backend: SQLiteBackend,
) -> None:
    async with runtime_for(backend, calls(("order", {})), says("done"), tools=asking()) as one:
        await first_of(await one.submit("hi"), InputRequired)
        one.pause_seconds = 0
    async with runtime_for(backend, says("done"), tools=asking()) as other:
        handle = await other.resume()
        question = await first_of(handle, RecoveryRequired)
        info = await other.status()
        assert info is not None
        # `order` is not to be repeated by itself, and its form is not open any more.
        assert info.pending == (question,)
        await other.resolve_tool(question, "result", "three were ordered")
        assert (await ended(handle)).text == "done"


@pytest.mark.parametrize(
    ("tools", "answer", "result"),
    [
        ("saving", {"decision": "allow", "arguments": {"wrong": 1}}, "could not be used"),
        ("asking", {"action": "accept", "content": {"number": "many"}}, "cancel None"),
    ],
)
async def test_an_answer_that_cannot_be_used_means_no(
    backend: SQLiteBackend, tools: str, answer: dict[str, object], result: str
) -> None:
    name = "save" if tools == "saving" else "order"
    given = {} if tools == "saving" else {"tools": asking()}
    arguments = {"text": "x"} if tools == "saving" else {}
    async with runtime_for(backend, calls((name, arguments)), says("done"), **given) as runtime:
        handle = await runtime.submit("hi")
        kind = ApprovalRequired if tools == "saving" else InputRequired
        question = await first_of(handle, kind)
        executions = executions_of(await backend.open())
        answered = "decision" if tools == "saving" else "input"
        await executions.answer(handle.run_id, GivenAnswer(answered, question.key, answer))  # type: ignore[attr-defined, arg-type]
        assert (await ended(handle)).text == "done"
        assert result in (await first_of(handle, ToolResult)).text


async def nested_question(handle: RunHandle, after: int = 0) -> tuple[int, ApprovalRequired]:
    """The first question of a sub-agent after a cursor, with its number."""
    async with asyncio.timeout(10), aclosing(handle.stream(after)) as events:
        async for event in events:
            if isinstance(question := innermost(event.body), ApprovalRequired):
                return event.number, question
    raise AssertionError("nothing was asked")


def delegating(save: Tool) -> ToolRegistry:
    """`delegate` may be repeated; `save` is what its sub-agent asks for."""
    return ToolRegistry([replace(delegate_tool(), replay="safe"), save])


def saving(started: asyncio.Event | None = None) -> Tool:
    registry = ToolRegistry()

    @registry.register
    async def save(text: str) -> str:
        if started is not None:
            started.set()
            await asyncio.Event().wait()
        return f"saved {text}"

    return next(iter(registry))


SCRIPT = (
    calls(("delegate", {"task": "save it"})),
    calls(("save", {"text": "x"})),
    says("it is saved"),
    says("done"),
)


async def test_a_sub_agent_that_was_cut_off_begins_anew_and_so_do_its_questions(
    backend: SQLiteBackend,
) -> None:
    started = asyncio.Event()
    cut = agent_for(provider=ScriptedProvider(*SCRIPT), tools=delegating(saving(started)))
    async with AgentRuntime(cut, backend=backend) as one:
        handle = await one.submit("hi")
        cursor, question = await nested_question(handle)
        await one.approve(question)
        await asyncio.wait_for(started.wait(), 10)
        one.pause_seconds = 0
    fresh = agent_for(provider=ScriptedProvider(*SCRIPT[1:]), tools=delegating(saving()))
    async with AgentRuntime(fresh, backend=backend) as other:
        again = await other.resume()
        _, question = await nested_question(again, cursor)
        info = await other.status()
        assert info is not None
        assert info.pending == (question,)
        await other.approve(question)
        assert (await ended(again)).text == "done"
        assert (await first_of(again, ToolResult)).text == "it is saved"


async def test_a_run_that_another_process_ends_meanwhile_is_followed(
    backend: SQLiteBackend,
) -> None:
    script = (calls(("save", {"text": "x"})), says("done"))
    async with (
        runtime_for(backend, *script, *script) as one,
        runtime_for(backend, says("never")) as other,
    ):
        handle = await one.submit("hi")
        followed = await other.approve(await first_of(handle, ApprovalRequired), wait=30)
        assert (followed.run_id, followed.is_here) == (handle.run_id, False)
        assert (await ended(followed)).text == "done"
        handle = await one.submit("and?")
        await first_of(handle, ApprovalRequired)
        stopped = await other.cancel(wait=30)
        assert (await ended(stopped)).status == "cancelled"
