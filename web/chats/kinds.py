"""The kinds of part a page shows, as plain data. Each kind has one template of the same name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from web.chats.markdown.blocks import Block
from web.harness.values.events import Decision
from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage

CallStatus = Literal["writing", "asking", "running", "done", "failed", "denied", "cancelled"]
ChatState = Literal["idle", "working", "asking", "failed"]


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the person said. `at` is seconds since the epoch."""

    kind: ClassVar[str] = "user"
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The frame of one assistant message: a slot that its blocks, and its thinking, lie in."""

    kind: ClassVar[str] = "answer"


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """One block of an answer, or a piece of a block that was cut."""

    kind: ClassVar[str] = "block"
    block: Block


@dataclass(frozen=True, slots=True)
class Thinking:
    """The frame of what a model thought: a slot with its blocks. `busy` while it is thinking."""

    kind: ClassVar[str] = "thinking"
    busy: bool


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before a call runs; see `ApprovalRequired` and `Tool.preview`."""

    key: str
    preview: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. While `writing` only `written` (characters of arguments so far) is known.

    `result` is shown up to a limit; `result_size` is its whole length in characters. `seconds`
    is how long it ran. `decision` is what the person said, None where nobody was asked.
    """

    kind: ClassVar[str] = "call"
    run_id: str
    call_id: str
    name: str
    status: CallStatus
    arguments: JsonObject | None = None
    written: int = 0
    question: Question | None = None
    result: str | None = None
    result_size: int = 0
    seconds: float | None = None
    decision: Decision | None = None
    edited: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A quiet line: an attempt was dropped, the run waits, was stopped, or met a limit.

    `until` (seconds since the epoch) is when a wait ends, None if it is none.
    """

    kind: ClassVar[str] = "notice"
    text: str
    detail: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A run failed: what happened, what was kept, what to do. `run_id` can be tried again."""

    kind: ClassVar[str] = "failure"
    run_id: str
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Foot:
    """Under a finished answer: time in seconds, tokens, cost in dollars, the model that gave it."""

    kind: ClassVar[str] = "foot"
    seconds: float
    usage: Usage
    cost: float | None
    model: str


@dataclass(frozen=True, slots=True)
class Queued:
    """A message that waits for the run before it to end; it can be taken back."""

    kind: ClassVar[str] = "queued"
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """The one status line. `text` says it in words; `run_id` is the run that can be stopped."""

    kind: ClassVar[str] = "status"
    state: ChatState
    text: str
    run_id: str | None = None
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """Title and model of the open chat."""

    kind: ClassVar[str] = "head"
    title: str
    model: str


@dataclass(frozen=True, slots=True)
class Grant:
    """A tool that a person allowed for the chat, until that is taken back."""

    kind: ClassVar[str] = "grant"
    tool: str


@dataclass(frozen=True, slots=True)
class Row:
    """A chat in the side bar. `at` is its last activity in seconds since the epoch."""

    kind: ClassVar[str] = "row"
    chat_id: str
    title: str
    state: ChatState
    at: float


@dataclass(frozen=True, slots=True)
class Undo:
    """A deleted chat that can still be brought back, until `until` (seconds since the epoch)."""

    kind: ClassVar[str] = "undo"
    chat_id: str
    title: str
    until: float


PartData = (
    UserMessage
    | Answer
    | MarkdownBlock
    | Thinking
    | Call
    | Notice
    | Failure
    | Foot
    | Queued
    | Status
    | Head
    | Grant
    | Row
    | Undo
)
