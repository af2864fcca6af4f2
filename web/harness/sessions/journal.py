"""The contract of journals: what a durable run writes down at each step, and who reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from web.harness.loop.actions import Outcome
from web.harness.loop.state import RunState
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionLease
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.errors import StoreError
from web.harness.values.events import Decision
from web.harness.values.messages import (
    AttachedBlock,
    JsonObject,
    Message,
    ToolResultBlock,
    ToolUseBlock,
)

StepKind = Literal[
    "begun",
    "model_call",
    "answered",
    "model_failed",
    "context_full",
    "condensed",
    "calls_started",
    "input_asked",
    "input_answered",
    "call_settled",
    "decided",
    "resumed",
    "resolved",
    "cancel_requested",
    "paused",
]
"""What a step writes down. `begun` has the person's message, `model_call` says that a request goes
out, `resumed` that another process goes on; the others have the outcome that the loop was told."""

ExecutionStatus = Literal["submitted", "running", "paused", "ended"]
"""Taken and not begun; under way, or cut off; stopped on purpose; with its result."""

AnswerKind = Literal["decision", "input", "resolution", "cancel", "pause"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What must be known of a call beside its `CallState`; the newest one of a call counts.

    `use` has the arguments that it runs with, a person's included. `input` is what it asks a person
    for where that outlives the process: `{"key", "request", "state"}`, and once it was given the
    `answer` (`{"action", "content"}`). `asked` are the keys of what it asks and what ends with the
    process.
    """

    use: ToolUseBlock
    message_id: str
    replay: ReplayPolicy = "manual"
    refusal: str = ""
    approval: str = ""
    decision: Decision | None = None
    granted: bool = False
    edited: bool = False
    input: JsonObject | None = None
    result: ToolResultBlock | None = None
    seconds: float | None = None
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One boundary of a run.

    `outcome` is what the loop was told, None for a step that tells it nothing. `messages` are those
    that it added. `replaced` is the whole conversation where it was made shorter, None otherwise.
    `calls` are the records that it changed. `about` is for whoever looks at the run later: of a
    model call its model, sizes and duration in seconds.
    """

    kind: StepKind
    outcome: Outcome | None = None
    messages: tuple[Message, ...] = ()
    replaced: tuple[Message, ...] | None = None
    calls: tuple[CallRecord, ...] = ()
    about: JsonObject = field(default_factory=dict)


class NumberedStep(NamedTuple):
    """Steps of a run are numbered from 1 without gaps. `at` is seconds since the epoch, `cursor`
    the number of the last event that was written before it."""

    number: int
    at: float
    cursor: int
    step: Step


class RunJournal(Protocol):
    """What one run writes to while it goes on, fenced: see `Executions.begin`."""

    def write(self, step: Step, state: RunState) -> None:
        """Hands over a step and the state after it, in order with the events of the run.

        It never waits: events and steps are committed together, soon. Raises NotSerialisable for
        what JSON cannot hold; nothing of the step is written then.
        """
        ...

    async def settled(self) -> None:
        """Returns when all that was handed over is committed.

        Raises LeaseLost where another process has gone on with the run, and StoreError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Submission:
    """A message that was taken. `fitting` says what agent it was given to: see `runtime`."""

    run_id: str
    identity: HarnessIdentity
    session_id: str
    request_id: str
    text: str
    attachments: tuple[AttachedBlock, ...] = ()
    fitting: JsonObject = field(default_factory=dict)
    about: JsonObject = field(default_factory=dict)
    """The application's own, JSON: such as the chat's model."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A run as the journal knows it. `result_status` is that of its `RunResult`, '' before.

    `unreadable` says why nobody can go on with it, where its message or its state cannot be read:
    it can only be cancelled. What cannot be read is left out: text, `fitting`, `about`; `state`.
    """

    submission: Submission
    status: ExecutionStatus
    fence: int
    steps: int
    state: RunState | None = None
    result_status: str = ""
    created_at: float = 0.0
    changed_at: float = 0.0
    unreadable: StoreError | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was written of a run, folded.

    `messages` are those that it added since the conversation was last replaced, `replaced` that
    conversation. `calls` are the records of the newest answer's calls, by id, in their order.
    """

    state: RunState
    messages: tuple[Message, ...] = ()
    replaced: tuple[Message, ...] | None = None
    calls: dict[str, CallRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a person said to a run, from whatever process. Each `key` is answered once.

    `body` of a decision: `{"decision", "arguments", "reason"}`; of an input: `{"action",
    "content"}`; of a resolution: `{"how": "result" | "retry" | "abort", "text"}`; else empty.
    """

    kind: AnswerKind
    key: str
    body: JsonObject = field(default_factory=dict)


class Executions(Protocol):
    """The runs of a backend. All methods raise StoreError where the database fails."""

    async def submit(self, submission: Submission) -> Execution:
        """Takes a message; the same `request_id` in the same session is the same execution.

        Raises HarnessError (`request_id_reused`) where text or attachments differ, or another
        request has that run id.
        """
        ...

    async def begin(self, run_id: str) -> tuple[Execution, RunJournal]:
        """Takes a run over, to begin it or to go on: whoever holds its session does this.

        Its fence grows, and whoever had it before writes nothing any more, neither steps nor
        events. Raises NotFound, and HarnessError (`run_ended`).
        """
        ...

    async def find(self, run_id: str) -> Execution | None: ...

    async def unfinished(
        self, identity: HarnessIdentity | None = None, session_id: str | None = None
    ) -> list[Execution]:
        """Runs that have not ended, the oldest first: all, of an identity, or of one session.

        Without what was attached to their messages, which may be large: `find` has it."""
        ...

    async def recorded(self, run_id: str, *, newest: bool = False) -> Recorded | None:
        """What was written of a run; None where it has not begun. With `newest`, only of its newest
        answer and since: the state and its calls, and not what was said before."""
        ...

    async def steps(
        self, run_id: str, after: int = 0, limit: int = 1000
    ) -> Sequence[NumberedStep]: ...

    async def set_status(self, run_id: str, status: ExecutionStatus, fence: int) -> None:
        """Raises LeaseLost for a fence that is not the newest."""
        ...

    async def answer(self, run_id: str, answer: GivenAnswer) -> None:
        """Writes an answer down, once. Raises DecisionRefused where its key has one already, the
        run has ended, or no run could take it (`check_answer`). Whoever performs the run, on any
        server, is told: see `answers`."""
        ...

    async def answers(self, run_id: str) -> Sequence[GivenAnswer]:
        """All of a run, in the order they were given. One that is damaged is not among them: its
        question is open again."""
        ...

    async def wait_for_answers(self, run_id: str, known: int) -> None:
        """Returns when there are more than `known`, or will be no more: the run has ended, or was
        forgotten. Cancel it when it is not wanted any more."""
        ...

    async def end(self, run_id: str, fence: int, status: str) -> None:
        """The run has its result: what only resuming needs (state, answers) is dropped, its steps
        stay. Ending it twice is fine. Raises LeaseLost, NotFound."""
        ...

    async def end_with(
        self, lease: SessionLease, snapshot: SessionSnapshot, run_id: str, fence: int, status: str
    ) -> SessionSnapshot:
        """Commits the session and ends the run: in one transaction where the lease is of the same
        database, else one after the other. Raises as `end` and `SessionLease.commit`."""
        ...

    async def withdraw(self, run_id: str) -> bool:
        """Drops a run that nobody has begun, or is about to; whether it was one."""
        ...

    async def forget(self, run_id: str) -> None:
        """Drops a run with its steps and answers. Its events are the log's, whose `forget` does the
        same besides."""
        ...
