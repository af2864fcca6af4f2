"""Steps, events and submissions of runs, for whatever keeps journals."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from web.harness.loop.actions import CallSettled, CallsStarted, ModelAnswered, ProposedCall
from web.harness.loop.state import RunLimits, RunState
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import CallRecord, Executions, RunJournal, Step, Submission
from web.harness.sessions.opening import Stores
from web.harness.values.events import EventBody, RunResult, TextDelta
from web.harness.values.messages import (
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.usage import Usage

ANN = HarnessIdentity("here", "ann")
BOB = HarnessIdentity("there", "bob")

PICTURE = ImageBlock("image/png", hashlib.sha256(b"picture").hexdigest(), b"picture", "p.png", 4, 4)

END = RunResult("completed", "ab")

STATE = RunState("r", RunLimits(10, None, 2, 3, 0.5, 8.0))


def state(iterations: int) -> RunState:
    """A state that tells from others by its count."""
    return replace(STATE, iterations=iterations)


def submission(
    run_id: str = "r", request_id: str = "q", text: str = "hello", session_id: str = "s"
) -> Submission:
    attached = ResourceBlock("file:a", "a", "text/plain", "a text \x00 \ud800", "server", 3)
    return Submission(
        run_id, ANN, session_id, request_id, text, (PICTURE, attached),
        {"model": "demo:demo"}, {"chat": [1, None]},
    )  # fmt: skip


def message(name: str, text: str = "text") -> Message:
    return Message(name, "user", (TextBlock(text),))


def saying(*texts: str) -> tuple[Message, ...]:
    """Messages `m0`, `m1`, ... with these texts."""
    return tuple(message(f"m{at}", text) for at, text in enumerate(texts))


def round_of_calls(at: int) -> tuple[Step, ...]:
    """An answer with one call, which is started and settled."""
    use = ToolUseBlock(f"c{at}", "look", {"at": [at, {"\x00": "\ud800 日"}]})
    answer = Message(f"a{at}", "assistant", (ThinkingBlock("hm", "seal"), TextBlock("let me"), use))
    result = ToolResultBlock(use.id, (TextBlock(f"found {at}"), PICTURE))
    record = CallRecord(use, answer.id, "safe", approval="k", decision="allow", edited=True)
    proposed = ModelAnswered(9, (ProposedCall(use.id, "look"),), "tool_use", Usage(3, 2), 0.5)
    return (
        Step("model_call", about={"model": "demo:demo", "tokens": 12, "seconds": 1.5}),
        Step("answered", proposed, (answer,), calls=(record,)),
        Step("calls_started", CallsStarted((use.id,)), calls=(record,)),
        Step(
            "call_settled",
            CallSettled(use.id, 7, "digest"),
            (Message(f"t{at}", "tool", (result,)),),
            calls=(replace(record, result=result, seconds=0.25),),
        ),
    )


def texts(*pieces: str) -> list[EventBody]:
    return [TextDelta(piece, "m") for piece in pieces]


async def numbers(stores: Stores, run_id: str = "r") -> list[int]:
    """Those of the events that are kept of a run."""
    return [event.number for event in (await stores.events.read(run_id)).events]


def runs_of(stores: Stores) -> Executions:
    assert stores.executions is not None
    return stores.executions


async def begun(runs: Executions, run_id: str = "r") -> RunJournal:
    """The journal of a new run, whose request is named `request of RUN`."""
    await runs.submit(submission(run_id, f"request of {run_id}"))
    return (await runs.begin(run_id))[1]
