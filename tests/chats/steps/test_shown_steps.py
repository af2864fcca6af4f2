"""Each kind of step is shown with what it says, and nothing that is the tool's alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.kept_runs import steps_of
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.steps.shown_steps import shown_steps
from web.chats.steps.step_kinds import ShownStep
from web.harness.agent.agent import Agent
from web.harness.loop.actions import (
    CallsStarted,
    Condensed,
    CondenseFailed,
    ContextFull,
    Decided,
    ModelFailed,
    Resolved,
    Resumed,
)
from web.harness.loop.state import RunState
from web.harness.sessions.journal import CallRecord, NumberedStep, Step
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.config import AgentConfig
from web.harness.values.events import ApprovalRequired, EventBody
from web.harness.values.messages import (
    JsonObject,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.usage import Usage

USE, OTHER = ToolUseBlock("r-1-0", "look", {"at": 1}), ToolUseBlock("r-1-1", "pay", {"sum": 5})
FIRST = Message(
    "r-0", "user", (ResourceBlock("file:a", "a.txt", "text/plain", "x"), TextBlock("Hi"))
)
ANSWER = Message("r-1", "assistant", (ThinkingBlock("hm"), TextBlock("Let me look"), USE, OTHER))
RESULTS = Message(
    "r-2",
    "tool",
    (
        ToolResultBlock("r-1-0", (TextBlock("found"),)),
        ToolResultBlock("r-1-1", (TextBlock("no money"),), is_error=True),
    ),
)
DONE = Message("r-3", "assistant", (TextBlock("Done."),))


def shown(*steps: Step) -> list[ShownStep]:
    numbered = [NumberedStep(at, float(at), 0, step) for at, step in enumerate(steps, 1)]
    return list(shown_steps(numbered, {}))


def test_a_run_is_shown_from_the_message_to_the_answer() -> None:
    steps = shown(*steps_of([FIRST, ANSWER, RESULTS, DONE]))
    kinds = [step.kind for step in steps]
    one_answer = ["model_call", "answered"]
    settled = ["call_settled", "call_settled"]
    assert kinds == ["begun", *one_answer, "calls_started", *settled, *one_answer]
    begun, call, answered, started, first, second, _, last = steps
    assert (begun.text, begun.attachments, begun.forks) == ("Hi", ("a.txt",), False)
    assert (call.model, call.about["messages"]) == ("demo:demo", 2)
    assert (answered.text, answered.thinking, answered.how) == ("Let me look", "hm", "tool_use")
    assert (answered.seconds, answered.cost, answered.usage) == (1.5, 0.0123, Usage(1_234, 56))
    assert [each.name for each in started.calls] == ["look", "pay"]
    assert [each.arguments for each in answered.calls] == [{"at": 1}, {"sum": 5}]
    assert (first.calls[0].result, first.calls[0].is_error, first.forks) == ("found", False, False)
    # The round is whole with its last result.
    assert (second.calls[0].result, second.calls[0].is_error, second.forks) == (
        "no money", True, True,
    )  # fmt: skip
    assert (last.text, last.forks) == ("Done.", True)


def test_a_call_that_a_step_only_names_has_its_name_from_one_before() -> None:
    record = CallRecord(USE, "r-1")
    _, named = shown(
        Step("answered", calls=(record,)), Step("calls_started", CallsStarted((USE.id,)))
    )
    assert [each.name for each in named.calls] == ["look"]
    (unknown,) = shown(Step("calls_started", CallsStarted((USE.id,))))
    assert [each.name for each in unknown.calls] == [USE.id]


def test_what_a_person_typed_for_a_tool_is_not_shown() -> None:
    asks = {
        "key": "k",
        "request": {"message": "Your pin?"},
        "state": "s3cret",
        "answer": {"pin": 1},
    }
    (step,) = shown(Step("input_asked", calls=(CallRecord(USE, "r-1", input=asks),)))
    assert step.calls[0].asks == {"message": "Your pin?"}
    assert "s3cret" not in str(step)
    assert "pin': 1" not in str(step)


def test_decisions_failures_and_what_was_made_shorter_are_said_in_words() -> None:
    failed, full, condensed, not_condensed, decided, resolved, resumed = shown(
        Step("model_failed", ModelFailed("busy", True, retry_after=2.0, message="Too much.")),
        Step("context_full", ContextFull(9_000, 8_000, 4_000)),
        Step("condensed", Condensed(3_000, Usage(5, 1)), replaced=(FIRST,)),
        Step("condensed", CondenseFailed("refused")),
        Step(
            "decided",
            Decided("k", "deny"),
            calls=(CallRecord(USE, "r-1", decision="deny", edited=True),),
        ),
        Step("resolved", Resolved(USE.id, "retry")),
        Step("resumed", Resumed((), (USE.id,))),
    )
    assert (failed.how, failed.words, failed.wait) == ("busy", "Too much.", 2.0)
    assert full.words == "9,000 tokens, 8,000 fit"
    assert (condensed.words, condensed.usage) == ("3,000 tokens are left", Usage(5, 1))
    assert not_condensed.how == "refused"
    assert (decided.how, decided.calls[0].edited, decided.calls[0].decision) == (
        "deny", True, "deny",
    )  # fmt: skip
    assert (resolved.how, resolved.calls[0].name) == ("retry", "look")
    assert [each.call_id for each in resumed.calls] == [USE.id]


class Written:
    """A journal in memory."""

    def __init__(self) -> None:
        self.steps: list[NumberedStep] = []
        self.wrote: Callable[[Step], None] = lambda step: None

    def write(self, step: Step, state: RunState) -> None:
        self.steps.append(NumberedStep(len(self.steps) + 1, 1.0, 0, step))
        self.wrote(step)

    async def settled(self) -> None:
        """All is here at once."""


@pytest.mark.anyio
async def test_what_an_agent_writes_of_its_run_can_be_looked_at() -> None:
    async def look(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput.of(f"found {arguments['at']}")

    schema = {"type": "object", "properties": {"at": {"type": "integer"}}}
    tools = [
        Tool("look", "Looks.", schema, look, PermissionLevel.ALLOW),
        Tool("pay", "Pays.", schema, look, PermissionLevel.ASK),
    ]
    model = ScriptedProvider(
        calls(("look", {"at": 1}), ("pay", {"at": 2}), ("fly", {}), text="So."), says("Done.")
    )
    journal = Written()
    async with Agent(AgentConfig(), provider=model, tools=ToolRegistry(tools)) as agent:
        asked: list[str] = []

        def told(bodies: list[EventBody]) -> None:
            asked.extend(body.key for body in bodies if isinstance(body, ApprovalRequired))

        def wrote(step: Step) -> None:
            if step.kind == "answered":
                while asked:
                    agent.decide(asked.pop(), "allow", arguments={"at": 3})

        journal.wrote = wrote
        await agent.perform("Go", run_id="r", emit=told, journal=journal)
    steps = list(shown_steps(journal.steps, {}))
    assert [step.kind for step in steps[:3]] == ["begun", "model_call", "answered"]
    assert (steps[1].model, steps[1].about["tools"]) == ("demo:demo", 2)
    answered = steps[2]
    assert [(each.name, each.arguments) for each in answered.calls] == [
        ("look", {"at": 1}),
        ("pay", {"at": 2}),
        ("fly", {}),
    ]
    assert answered.usage is not None
    assert answered.seconds is not None
    (decided,) = [step for step in steps if step.kind == "decided"]
    assert [(each.name, each.edited) for each in decided.calls] == [("pay", True)]
    settled = [step for step in steps if step.kind == "call_settled"]
    results = {call.name: call.result for step in settled for call in step.calls}
    assert results["look"] == "found 1"
    assert (results["pay"] or "").startswith("found 3")
    assert results["fly"]
    assert [step.forks for step in settled] == [False, False, True]
    assert (steps[-1].kind, steps[-1].text, steps[-1].forks) == ("answered", "Done.", True)
    names = {call.name for step in steps for call in step.calls}
    assert names == {"look", "pay", "fly"}
