"""The control state of one run: small, immutable, JSON. It holds no message text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from web.harness.values.config import AgentConfig
from web.harness.values.events import RunStatus
from web.harness.values.messages import Role
from web.harness.values.usage import Usage

Phase = Literal["model", "condense", "tools", "finished"]

CondenseStep = Literal["clear", "summarise", "drop", "shorten"]
"""What makes a conversation shorter, in this order: old results of tools are cleared, the oldest
messages are summarised, or dropped where that fails, and what is left is cut."""

CallStatus = Literal["asking", "ready", "running", "settled"]
"""A call waits for a person, may start, has started, or has its one result."""

Verdict = Literal["run", "refuse"]
"""What happens to a call that is ready: it runs, or it gets an error result without running."""


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message of this run. `size` is in characters."""

    id: str
    role: Role
    size: int


@dataclass(frozen=True, slots=True)
class CallState:
    """One tool call of the current answer. `key` names the question while it is asking.

    `digest` stands for the call with its arguments and its result, once it is settled.
    """

    id: str
    name: str
    status: CallStatus
    verdict: Verdict = "run"
    key: str = ""
    size: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits and retry rules that a run was started with. Times are in seconds."""

    max_iterations: int
    max_cost_dollars: float | None
    max_parallel_tools: int
    attempts: int
    backoff_seconds: float
    max_backoff_seconds: float
    max_repeats: int | None = None

    @classmethod
    def of(cls, config: AgentConfig) -> RunLimits:
        return cls(
            config.limits.max_iterations,
            config.limits.max_cost_dollars,
            config.limits.max_parallel_tools,
            config.retry.attempts,
            config.retry.backoff_seconds,
            config.retry.max_backoff_seconds,
            config.limits.max_repeats,
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended; see `RunResult`."""

    status: RunStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Condensing:
    """The next request of `tokens` has to fit into `room`, and had better have `goal` tokens."""

    step: CondenseStep
    tokens: int
    room: int
    goal: int


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands.

    `messages` are those that this run added, the person's first. `calls` are the calls of the
    newest answer, in its order. `attempt` counts tries of the model call that comes next, from 1,
    and `delay` is how many seconds to wait before it. `cancelling` is set once the run has to
    stop: what has started is stopped, each open call still gets its result. `repeats` counts how
    often the same calls brought the same results in a row, and `last_round` stands for those.
    `condensing` is what is done to a context that is too long; `squeezes` counts how often it was
    since the last answer, and with `summaries_off` no further summary is tried in this run.
    """

    run_id: str
    limits: RunLimits
    phase: Phase = "model"
    messages: tuple[MessageRef, ...] = ()
    calls: tuple[CallState, ...] = ()
    iterations: int = 0
    attempt: int = 1
    delay: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    last_round: str = ""
    repeats: int = 0
    cancelling: bool = False
    ending: Ending | None = None
    condensing: Condensing | None = None
    squeezes: int = 0
    summaries_off: bool = False

    @property
    def next_message_id(self) -> str:
        """The id of the message that comes next; derived, so that a repeat finds the same one."""
        return f"{self.run_id}-{len(self.messages)}"

    def with_message(self, role: Role, size: int) -> RunState:
        ref = MessageRef(self.next_message_id, role, size)
        return replace(self, messages=(*self.messages, ref))

    def call(self, call_id: str) -> CallState | None:
        return next((call for call in self.calls if call.id == call_id), None)

    def with_call(self, changed: CallState) -> RunState:
        calls = tuple(changed if call.id == changed.id else call for call in self.calls)
        return replace(self, calls=calls)

    def as_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` makes an equal state."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunState:
        ending, condensing = data["ending"], data["condensing"]
        return cls(
            **{
                **data,
                "limits": RunLimits(**data["limits"]),
                "messages": tuple(MessageRef(**ref) for ref in data["messages"]),
                "calls": tuple(CallState(**call) for call in data["calls"]),
                "usage": Usage(**data["usage"]),
                "ending": None if ending is None else Ending(**ending),
                "condensing": None if condensing is None else Condensing(**condensing),
            }
        )


def start_run(run_id: str, limits: RunLimits, message_size: int) -> RunState:
    """The state of a run whose person's message, of that many characters, was just written."""
    return RunState(run_id, limits).with_message("user", message_size)
