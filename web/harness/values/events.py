"""What happens in a run, as a tagged union of frozen dataclasses.

A run's events are numbered 1, 2, 3, ... without gaps; the number is the *cursor*. Bodies carry no
number themselves: `Event` puts a number to a body. `type` is the name a program sees.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, NamedTuple

from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage

Decision = Literal["allow", "allow_chat", "deny"]
"""A person's answer to a tool that asks: once, for the whole chat, or not."""

InputAction = Literal["accept", "decline", "cancel"]
"""A person's answer to a tool that asks for input: here it is, no, or not now."""

Resolution = Literal["result", "retry", "abort"]
"""A person's answer about a call of which nobody knows if it ran: it did and here is its result,
run it again, or give the run up."""

RunStatus = Literal["completed", "cancelled", "failed", "limit"]

PlanStatus = Literal["pending", "in_progress", "completed"]

PartKind = Literal["text", "image", "audio", "file", "link", "resource", "structured", "note"]


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A part of a tool's result as a person is shown it.

    | kind | what |
    |---|---|
    | text | `text` as the tool wrote it |
    | image, audio, file | binary data of `media_type`; `title` is its name or what it shows |
    | link | a resource that was not read: `uri`, `title`, `text` describes it |
    | resource | a resource that was read: `uri`, `title` and its `text` |
    | structured | `text` is JSON, indented |
    | note | `text` is a remark of the harness, not the tool's |

    `size` is the whole size: in characters of a text that may be cut here, in bytes of binary
    data. Such data is not in here: `sha256` names it in the store of the chat, and is '' where it
    was not kept.
    """

    kind: PartKind
    text: str = ""
    title: str = ""
    uri: str = ""
    media_type: str = ""
    size: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan, in a line of words, and how far it is."""

    text: str
    status: PlanStatus = "pending"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the assistant message `message_id`."""

    type: ClassVar[str] = "text_delta"
    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More thinking of the assistant message `message_id`."""

    type: ClassVar[str] = "thinking_delta"
    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of the arguments (raw JSON text) of a call that the model is still writing."""

    type: ClassVar[str] = "tool_call_delta"
    call_id: str
    name: str
    arguments: str
    message_id: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A tool starts to run with these arguments. `decision` is how a person let it run.

    A call may start again, after the process that ran it has ended: what was told of it since its
    start holds no more, and what it was asking a person for is not open any more.
    `hints` are what the maker of the tool says of it: "read-only" and the like.
    """

    type: ClassVar[str] = "tool_call_start"
    call_id: str
    name: str
    arguments: JsonObject
    message_id: str
    decision: Decision | None = None
    edited: bool = False
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one result of a call, whether it ran, failed, was denied or was cancelled.

    `seconds` is how long it ran, None if it never started. `stopped`: the run was cancelled
    before the call had ended. `parts` is there where a person is shown more than the text, which
    is what the model reads. `files` are paths of the chat's files that it made or changed, where
    its arguments do not say so. `plan` is the whole plan where the call wrote one.
    """

    type: ClassVar[str] = "tool_result"
    call_id: str
    name: str
    text: str
    is_error: bool = False
    seconds: float | None = None
    decision: Decision | None = None
    stopped: bool = False
    parts: tuple[ResultPart, ...] = ()
    files: tuple[str, ...] = ()
    plan: tuple[PlanStep, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalRequired:
    """A person has to decide on one call before it runs.

    `key` names the question: it is bound to these arguments and answered once. `preview` is what
    the tool says will happen: `{"kind": "text" | "diff", "text": ..., ...}`, or None. It is in
    short, line by line: `more` says how much is not in here, `left_out` how many characters nobody
    is shown. Where the tool `always_asks`, an answer for the whole chat is refused.
    """

    type: ClassVar[str] = "approval_required"
    key: str
    call_id: str
    name: str
    arguments: JsonObject
    message_id: str
    preview: JsonObject | None = None
    hints: tuple[str, ...] = ()
    always_asks: bool = False


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a running call is: `done` of `total` (None where that is not known), and words.

    Each one overtakes those before it; once the run has ended only the last is kept.
    """

    type: ClassVar[str] = "tool_progress"
    call_id: str
    done: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class InputRequired:
    """A tool needs an answer from the person before it can go on.

    `request` is `{"mode": "form" | "url", "server": who asks, "message": why, ...}`, with the
    `schema` of a form's flat object, or the `url` to go to.
    """

    type: ClassVar[str] = "input_required"
    key: str
    call_id: str
    request: JsonObject


@dataclass(frozen=True, slots=True)
class InputAnswered:
    """An `InputRequired` is not open any more: it was answered, or withdrawn with its call.

    What the person typed is for the tool alone and not in here.
    """

    type: ClassVar[str] = "input_answered"
    key: str
    call_id: str
    action: InputAction | Literal["withdrawn"]


@dataclass(frozen=True, slots=True)
class RecoveryRequired:
    """It is not known whether this call ran; a person decides.

    What it was asking a person for is not open any more. The same key may come twice, and is then
    the same question.
    """

    type: ClassVar[str] = "recovery_required"
    key: str
    call_id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class RecoveryAnswered:
    """A `RecoveryRequired` is not open any more: a person said `how` it goes on, or the run was
    stopped. The result of the call follows, or its next start."""

    type: ClassVar[str] = "recovery_answered"
    key: str
    call_id: str
    how: Resolution | Literal["withdrawn"]


@dataclass(frozen=True, slots=True)
class AttemptReset:
    """A model call was dropped: all that was shown of `message_id` is taken back, the questions
    about its calls included."""

    type: ClassVar[str] = "attempt_reset"
    message_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class ContextCondensed:
    """The conversation got too long for the model, and older parts of it were made shorter.

    `before` and `after` are tokens of the next request, as estimated. `cleared` results of tools
    were taken out; `summarised` messages are now the text `summary` to the model; `dropped` ones
    could not be summarised; `shortened` ones were cut. A person still sees all of them.
    """

    type: ClassVar[str] = "context_condensed"
    before: int
    after: int
    summary: str = ""
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    shortened: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of the harness for the person, such as what a model was not sent, and why."""

    type: ClassVar[str] = "note"
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing happens for about `seconds` (0: not known), and why; `on` says what follows."""

    type: ClassVar[str] = "waiting"
    reason: str
    seconds: float
    on: Literal["retry", "summary"] = "retry"


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Tokens of one model call, and its cost in US dollars where prices are known."""

    type: ClassVar[str] = "usage"
    message_id: str
    usage: Usage
    model: str
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The run fails with this error; a `RunResult` follows."""

    type: ClassVar[str] = "error"
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The last event of every run. `text` is the final answer, '' if there is none.

    `reason` says why a run that is not `completed` ended: the error code, the limit, or who
    stopped it.
    """

    type: ClassVar[str] = "run_result"
    status: RunStatus
    text: str
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    iterations: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NestedEvent:
    """Something happened in the run of a sub-agent that the call `call_id` started.

    `body` may be a nested event again. The ids of messages, calls and questions in it begin with
    `call_id`, and a question is answered by its key as any other.
    """

    type: ClassVar[str] = "nested"
    call_id: str
    body: EventBody


EventBody = (
    TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | ToolCallStart
    | ToolResult
    | ApprovalRequired
    | ToolProgress
    | InputRequired
    | InputAnswered
    | RecoveryRequired
    | RecoveryAnswered
    | AttemptReset
    | ContextCondensed
    | Note
    | Waiting
    | UsageReport
    | ErrorReport
    | RunResult
    | NestedEvent
)


class Event(NamedTuple):
    """One numbered event. `at` is seconds since the epoch."""

    number: int
    at: float
    body: EventBody

    @property
    def type(self) -> str:
        return self.body.type


def innermost(body: EventBody) -> EventBody:
    """What happened, without the calls of sub-agents that it happened in."""
    while isinstance(body, NestedEvent):
        body = body.body
    return body


def event_data(body: EventBody) -> dict[str, Any]:
    """The JSON shape of a body, without its type: what `data:` holds in the event stream.

    A nested event is `{"call_id", "event": its type, "data": its shape}`.
    """
    if isinstance(body, NestedEvent):
        inner = event_data(body.body)
        return {"call_id": body.call_id, "event": body.body.type, "data": inner}
    data: dict[str, Any] = {each.name: getattr(body, each.name) for each in fields(body)}
    usage = data.get("usage")
    if isinstance(usage, Usage):
        data["usage"] = asdict(usage)
    if isinstance(body, ToolResult):
        data["parts"] = [asdict(part) for part in body.parts]
        data["plan"] = [asdict(step) for step in body.plan]
    return data
