"""What the loop asks for, and what it is told in return."""

from __future__ import annotations

from dataclasses import dataclass

from web.harness.loop.state import Verdict
from web.harness.values.events import Decision, RunStatus
from web.harness.values.model import StopReason
from web.harness.values.usage import Usage


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the model after `delay` seconds; its answer becomes message `message_id`."""

    message_id: str
    attempt: int
    delay: float


@dataclass(frozen=True, slots=True)
class RunTools:
    """Start these calls, then wait for the next thing to happen; `running` have started before."""

    start: tuple[str, ...]
    running: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwaitApproval:
    """Nothing can start before a person answers one of these questions."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CancelTools:
    """Stop these calls and give each a result that says so."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do."""

    status: RunStatus
    reason: str


Action = CallModel | RunTools | AwaitApproval | CancelTools | Finish


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

    `jitter` (0 to 1) spreads the waits of many runs.
    """

    code: str
    transient: bool
    kept: int = 0
    retry_after: float | None = None
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class CallsStarted:
    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallSettled:
    """A call has its one result, `size` characters long."""

    call_id: str
    size: int


@dataclass(frozen=True, slots=True)
class Decided:
    """A person answered a question."""

    key: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The run has to stop. `kept` is the size of the partial answer that was written."""

    kept: int = 0


Outcome = ModelAnswered | ModelFailed | CallsStarted | CallSettled | Decided | CancelRequested
