"""A person decides on calls: once, for the chat, edited, denied; bound to what was shown."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.agent.agents import agent_for, all_events, decided, of_type, tools
from tests.support.scripted_provider import (
    calls,
    says,
)
from web.harness.agent.agent import Agent
from web.harness.agent.questions import Answer, Approver
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolContext
from web.harness.values.errors import DecisionRefused, ToolError
from web.harness.values.events import (
    ApprovalRequired,
    Decision,
    RunResult,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import ToolResultBlock

pytestmark = pytest.mark.anyio


async def test_an_allowed_call_runs_with_the_arguments_that_were_shown() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    events, _ = await decided(agent, "allow")
    (start,) = of_type(events, ToolCallStart)
    assert (start.arguments, start.decision, start.edited) == ({"text": "a"}, "allow", False)
    assert of_type(events, ToolResult)[0].text == "saved a"


async def test_edited_arguments_run_and_the_model_is_told() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    events, _ = await decided(agent, "allow", arguments={"text": "b"})
    (start,) = of_type(events, ToolCallStart)
    assert (start.arguments, start.edited) == ({"text": "b"}, True)
    (result,) = of_type(events, ToolResult)
    said, _, note = result.text.partition("\n")
    assert said == "saved b"
    assert note == 'The person changed the arguments before it ran, to: {"text": "b"}'


async def test_long_edited_arguments_are_repeated_to_the_model_in_part() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    events, _ = await decided(agent, "allow", arguments={"text": "é" * 50_000})
    note = of_type(events, ToolResult)[0].text.partition("\n")[2]
    assert 'to: {"text": "éé' in note
    assert 2_000 < len(note) < 2_200
    assert note.endswith("more characters)")


async def test_edited_arguments_that_do_not_fit_leave_the_question_open() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            if isinstance(event.body, ApprovalRequired):
                with pytest.raises(DecisionRefused, match="text"):
                    agent.decide(event.body.key, "allow", arguments={"words": 1})
                agent.decide(event.body.key, "allow")
            last = event.body
    assert isinstance(last, RunResult)
    assert last.status == "completed"


async def test_a_refusal_reaches_the_model_with_its_reason() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    events, _ = await decided(agent, "deny", reason="not today")
    (result,) = of_type(events, ToolResult)
    assert (result.is_error, result.decision) == (True, "deny")
    assert "not today" in result.text
    assert not of_type(events, ToolCallStart)


async def test_allowing_for_the_chat_asks_no_more() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), calls(("save", {"text": "b"})), says("ok"))
    events, _ = await decided(agent, "allow_chat")
    assert len(of_type(events, ApprovalRequired)) == 1
    assert [result.text for result in of_type(events, ToolResult)] == ["saved a", "saved b"]
    assert agent.permissions.grants == ["save"]


@pytest.mark.parametrize("decision", ["allow", "allow_chat"])
async def test_a_tool_learns_which_approval_let_it_run(decision: str) -> None:
    registry = tools()
    contexts: list[ToolContext] = []

    @registry.register(permission=PermissionLevel.ASK)
    def keep(context: ToolContext) -> None:
        contexts.append(context)

    @registry.register(permission=PermissionLevel.ALLOW)
    def look(context: ToolContext) -> None:
        contexts.append(context)

    agent = agent_for(
        calls(("keep", {}), ("look", {})), calls(("keep", {})), says("ok"), tools=registry
    )
    events, _ = await decided(agent, decision)
    keys = [question.key for question in of_type(events, ApprovalRequired)]
    first, free, second = sorted(contexts, key=lambda each: each.call_id)
    assert (first.approval, first.decision) == (keys[0], decision)
    # Nobody was asked for the first one; for the second only where that was not settled before.
    assert (free.approval, free.decision) == ("", "")
    assert (second.approval, second.decision) == (keys[-1], decision)
    assert len(keys) == (1 if decision == "allow_chat" else 2)
    assert second.call_id != first.call_id


async def test_a_grant_that_was_brought_back_is_told_without_its_question() -> None:
    registry = tools()
    contexts: list[ToolContext] = []

    @registry.register(permission=PermissionLevel.ASK)
    def keep(context: ToolContext) -> None:
        contexts.append(context)

    permissions = Permissions(grants=["keep"])
    await agent_for(calls(("keep", {})), says("ok"), tools=registry, permissions=permissions).run(
        "x"
    )
    assert [(each.approval, each.decision) for each in contexts] == [("", "allow_chat")]


async def test_a_question_is_answered_once_and_not_when_it_is_too_late() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            if isinstance(event.body, ApprovalRequired):
                key = event.body.key
                agent.decide(key, "allow")
                with pytest.raises(DecisionRefused, match="answered"):
                    agent.decide(key, "deny")
                with pytest.raises(DecisionRefused, match="not open"):
                    agent.decide(key + "0", "allow")
    with pytest.raises(DecisionRefused):
        agent.decide(key, "allow")


async def test_questions_of_equal_calls_with_other_arguments_have_other_keys() -> None:
    agent = agent_for(calls(("save", {"text": "a"}), ("save", {"text": "b"})), says("ok"))
    events, _ = await decided(agent, "allow")
    assert len({question.key for question in of_type(events, ApprovalRequired)}) == 2


async def test_without_anybody_to_ask_a_call_is_refused() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    result = await agent.run("hello")
    assert result.status == "completed"
    tool_message = agent.memory.get_messages()[2]
    assert isinstance(tool_message.content[0], ToolResultBlock)
    assert "nobody to ask" in tool_message.content[0].text


async def test_an_approver_is_asked() -> None:
    asked: list[str] = []

    async def approver(question: ApprovalRequired) -> Answer:
        asked.append(question.name)
        return Answer("allow")

    agent = agent_for(calls(("save", {"text": "a"})), says("ok"), approver=approver)
    assert (await agent.run("hello")).status == "completed"
    assert asked == ["save"]


async def test_a_preview_that_sees_the_call_fail_spares_the_person_the_question() -> None:
    registry = ToolRegistry()

    async def preview(arguments: dict[str, object], context: ToolContext) -> None:
        raise ToolError("There is no such folder.")

    @registry.register(preview=preview)
    def save(text: str) -> str:
        return "saved"

    agent = agent_for(calls(("save", {"text": "a"})), says("ok"), tools=registry)
    events = await all_events(agent)
    assert not of_type(events, ApprovalRequired)
    assert "no such folder" in of_type(events, ToolResult)[0].text


async def test_what_always_asks_cannot_be_allowed_for_the_chat() -> None:
    registry = ToolRegistry()
    save = tools().get("save")
    assert save is not None
    registry.add(replace(save, always_asks=True))
    agent = agent_for(
        *(calls(("save", {"text": "a"})), calls(("save", {"text": "b"})), says("ok")),
        tools=registry,
    )
    keys, results = [], []
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            if isinstance(event.body, ApprovalRequired):
                assert event.body.always_asks
                with pytest.raises(DecisionRefused, match="before each call"):
                    agent.decide(event.body.key, "allow_chat")
                agent.decide(event.body.key, "allow")
                keys.append(event.body.key)
            elif isinstance(event.body, ToolResult):
                results.append(event.body.text)
    assert len(set(keys)) == 2
    assert results == ["saved a", "saved b"]
    assert agent.permissions.grants == []


@pytest.mark.parametrize("decision", ["denied", "no", "", "ALLOW", None, False, True, ["allow"]])
async def test_what_is_no_decision_runs_nothing_and_leaves_the_question_open(
    decision: object,
) -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"))
    events = []
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event.body, ApprovalRequired):
                with pytest.raises(DecisionRefused, match="is no decision"):
                    agent.decide(event.body.key, decision)  # type: ignore[arg-type]
                agent.decide(event.body.key, "deny")
    assert not of_type(events, ToolCallStart)
    assert of_type(events, RunResult)[0].status == "completed"


def result_of(agent: Agent) -> ToolResultBlock:
    """Of the one call of a run."""
    (result,) = agent.memory.get_messages()[2].content
    assert isinstance(result, ToolResultBlock)
    return result


@pytest.mark.parametrize("given", [Answer("allow"), "allow"])
@pytest.mark.parametrize("is_async", [True, False])
async def test_an_approver_may_wait_or_not_and_give_the_decision_alone(
    given: Answer | Decision, is_async: bool
) -> None:
    async def waiting(question: ApprovalRequired) -> Answer | Decision:
        return given

    plain: Approver = lambda question: given  # noqa: E731
    agent = agent_for(
        calls(("save", {"text": "a"})), says("ok"), approver=waiting if is_async else plain
    )
    await agent.run("hello")
    assert result_of(agent).text == "saved a"


@pytest.mark.parametrize("given", [True, None, "junk", Answer("no"), Answer("allow", [1])])  # type: ignore[arg-type]
async def test_an_approver_that_gives_no_answer_refuses_in_words(given: object) -> None:
    agent = agent_for(calls(("save", {"text": "a"})), says("ok"), approver=lambda question: given)
    await agent.run("hello")
    result = result_of(agent)
    assert result.is_error
    assert "was not allowed, so it did not run" in result.text


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
async def test_an_approver_that_fails_refuses_and_the_run_goes_on(
    error: type[BaseException],
) -> None:
    def fails(question: ApprovalRequired) -> Answer:
        raise error("secret")

    agent = agent_for(calls(("save", {"text": "a"})), says("ok"), approver=fails)
    result = await agent.run("hello")
    told = result_of(agent).text
    assert (result.status, told) == (
        "completed",
        "This call was not allowed, so it did not run: the approver failed.",
    )


async def test_what_a_reader_changes_in_a_question_or_a_start_changes_no_call() -> None:
    agent = agent_for(calls(("save", {"text": "a"})), calls(("double", {"number": 2})), says("ok"))
    async with agent.run_stream("hello") as stream:
        async for event in stream:
            if isinstance(event.body, ApprovalRequired | ToolCallStart):
                event.body.arguments["text"] = "changed"
            if isinstance(event.body, ApprovalRequired):
                agent.decide(event.body.key, "allow")
    results = [message.content[0] for message in agent.memory.get_messages()[2::2]]
    assert [each.text for each in results if isinstance(each, ToolResultBlock)] == ["saved a", "4"]


async def test_a_run_keeps_nothing_of_those_who_have_answered() -> None:
    asked: list[weakref.ref[Any]] = []
    left: list[bool] = []

    async def approver(question: ApprovalRequired) -> Decision:
        left.extend(each() is not None for each in asked[:1])
        asked.append(weakref.ref(asyncio.current_task()))
        return "allow"

    answers = [calls(("save", {"text": text})) for text in "abc"]
    await agent_for(*answers, says("ok"), approver=approver).run("hello")
    assert left == [False, False]
