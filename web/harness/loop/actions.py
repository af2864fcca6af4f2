"""What the loop asks for, and what it is told in return."""

from __future__ import annotations

from dataclasses import dataclass, field

from web.harness.loop.state import Condensing, Verdict
from web.harness.values.events import Decision, Resolution, RunStatus
from web.harness.values.model import StopReason
from web.harness.values.usage import Usage


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the model after `delay` seconds; its answer becomes message `message_id`.

    With `early` a request that nears the limit of the context is told by `ContextFull` and not
    sent, else only one that is beyond it.
    """

    message_id: str
    attempt: int
    delay: float
    early: bool = True


@dataclass(frozen=True, slots=True)
class RunTools:
    """Start these calls, then wait for the next thing to happen; `running` have started before.

    As long as any can run, what a person has to answer is waited for beside it.
    """

    start: tuple[str, ...]
    running: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwaitApproval:
    """Nothing can start before a person answers one of these questions."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwaitRecovery:
    """Nothing can start before a person says what became of one of these calls, or answers another
    question that is open."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwaitInput:
    """Nothing can start before a person gives one of these calls what it asks for, or answers
    another question that is open."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CancelTools:
    """Stop these calls and give each a result that says so."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CondenseContext:
    """Make the next request shorter, by one step, after `delay` seconds; see `Condensing`."""

    condensing: Condensing
    attempt: int
    delay: float


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do."""

    status: RunStatus
    reason: str


Action = (
    CallModel
    | RunTools
    | AwaitApproval
    | AwaitRecovery
    | AwaitInput
    | CancelTools
    | CondenseContext
    | Finish
)


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A call that the model asks for. With a `key` a person is asked first."""

    id: str
    name: str
    verdict: Verdict = "run"
    key: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The model's answer is written. `size` is in characters, 0 where it said nothing at all."""

    size: int
    calls: tuple[ProposedCall, ...]
    stop_reason: StopReason
    usage: Usage
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A model call broke. `kept` is the size of the partial answer that is written if it is final.

    `jitter` (0 to 1) spreads the waits of many runs. `message` and `hint` say it in words.
    """

    code: str
    transient: bool
    kept: int = 0
    retry_after: float | None = None
    jitter: float = 0.0
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ContextFull:
    """The next request nears or exceeds the context, as was measured or as the model said.

    Sizes are in tokens; see `ContextBudget`. `least` is what it has with only what must stay.
    """

    tokens: int
    room: int
    goal: int
    least: int = 0


@dataclass(frozen=True, slots=True)
class Condensed:
    """A step is done, and the next request has `tokens`. `usage` and `cost` are of a summary."""

    tokens: int
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class CondenseFailed:
    """No summary was made, and the conversation is as before. See `ModelFailed`."""

    code: str
    transient: bool = False
    retry_after: float | None = None
    jitter: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class CallsStarted:
    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallSettled:
    """A call has its one result, `size` characters long.

    `digest` stands for the call, its arguments and its result; '' counts as no repetition.
    `usage` and `cost` are those of the sub-agents that it ran.
    """

    call_id: str
    size: int
    digest: str = ""
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """A person answered a question."""

    key: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The run has to stop. `kept` is the size of the partial answer that was written."""

    kept: int = 0


@dataclass(frozen=True, slots=True)
class Resumed:
    """Another process goes on. A model call that was under way is dropped.

    Of the calls that had started, those of `repeat` may be started again, of those of `uncertain`
    nobody knows if they ran, and those of `waiting` go on when a person gives what they ask for.
    A call of which none of this holds has its result, which is told next.
    """

    repeat: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """A person said what is done about an uncertain call.

    With `result` it ran, and its result is told next by `CallSettled`; with `retry` it is started
    again; with `abort` the run is given up.
    """

    call_id: str
    how: Resolution


@dataclass(frozen=True, slots=True)
class InputGiven:
    """A waiting call has what it asked a person for, and can be started."""

    call_id: str


Outcome = (
    ModelAnswered
    | ModelFailed
    | ContextFull
    | Condensed
    | CondenseFailed
    | CallsStarted
    | CallSettled
    | Decided
    | CancelRequested
    | Resumed
    | Resolved
    | InputGiven
)
