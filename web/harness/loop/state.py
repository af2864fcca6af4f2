"""The control state of one run: small, immutable, JSON. It holds no text of the conversation."""

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

CallStatus = Literal["asking", "ready", "running", "uncertain", "waiting", "settled"]
"""A call waits for a person's yes, may start, has started, had started when its process ended and
nobody knows if it ran, waits for a person's input that outlives its process, or has its result."""

Verdict = Literal["run", "refuse"]
"""What happens to a call that is ready: it runs, or it gets an error result without running."""


@dataclass(frozen=True, slots=True)
class CallState:
    """One tool call of the current answer. `key` names the question while it is asking.

    `starts` is how often it was started. `digest` stands for the call with its arguments and its
    result, once it is settled.
    """

    id: str
    name: str
    status: CallStatus
    verdict: Verdict = "run"
    key: str = ""
    size: int = 0
    digest: str = ""
    starts: int = 0

    @property
    def recovery_key(self) -> str:
        """Names the question whether the newest start of it ran."""
        return f"{self.id}-recovery-{self.starts}"


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
    """How a run ended; see `RunResult`. `message` and `hint` say it in words where it failed."""

    status: RunStatus
    reason: str = ""
    message: str = ""
    hint: str = ""


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

    `message_count` is how many messages this run added, the person's first, and `last_role` whose
    the newest is. `calls` are the calls of the newest answer, in its order. `attempt` counts tries
    of the model call that comes next, from 1, and `delay` is how many seconds to wait before it.
    `cancelling` says why the run has to stop, once it has to: what has started is stopped, each
    open call still gets its result. `repeats` counts how often the same calls brought the same
    results in a row, and `last_round` stands for those. `condensing` is what is done to a context
    that is too long; `squeezes` counts how often it was since the last answer, and with
    `summaries_off` no further summary is tried in this run. `grants` are the tools that a person
    allowed for the whole chat, with the keys of the questions. `resumes` is how often another
    process has gone on with it.
    """

    run_id: str
    limits: RunLimits
    phase: Phase = "model"
    message_count: int = 0
    last_role: Role = "user"
    calls: tuple[CallState, ...] = ()
    iterations: int = 0
    attempt: int = 1
    delay: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    last_round: str = ""
    repeats: int = 0
    cancelling: str = ""
    ending: Ending | None = None
    condensing: Condensing | None = None
    squeezes: int = 0
    summaries_off: bool = False
    grants: tuple[tuple[str, str], ...] = ()
    resumes: int = 0

    @property
    def next_message_id(self) -> str:
        """The id of the message that comes next; derived, so that a repeat finds the same one."""
        return f"{self.run_id}-{self.message_count}"

    @property
    def last_message_id(self) -> str:
        return f"{self.run_id}-{self.message_count - 1}"

    def with_message(self, role: Role) -> RunState:
        return replace(self, message_count=self.message_count + 1, last_role=role)

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
        """Raises KeyError and TypeError for what is no state. The earlier form, which had a
        reference to each message, is read too."""
        given = _newer(data)
        ending, condensing = given.get("ending"), given.get("condensing")
        return cls(
            **{
                **given,
                "limits": RunLimits(**given["limits"]),
                "calls": tuple(CallState(**call) for call in given["calls"]),
                "usage": Usage(**given["usage"]),
                "ending": None if ending is None else Ending(**ending),
                "condensing": None if condensing is None else Condensing(**condensing),
                "grants": tuple((name, key) for name, key in given.get("grants", ())),
            }
        )


def start_run(run_id: str, limits: RunLimits) -> RunState:
    """The state of a run whose person's message was just written."""
    return RunState(run_id, limits).with_message("user")


def _newer(data: dict[str, Any]) -> dict[str, Any]:
    if "messages" not in data:
        return data
    messages = data["messages"]
    given = {name: value for name, value in data.items() if name != "messages"}
    given["cancelling"] = "stopped" if data["cancelling"] else ""
    return {**given, "message_count": len(messages), "last_role": messages[-1]["role"]}
