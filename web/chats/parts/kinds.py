"""The kinds of part a page shows, as plain data. Each kind has one template of the same name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from web.chats.markdown.blocks import Block
from web.chats.parts.condensed_kinds import Condensed
from web.chats.parts.file_kinds import FileData
from web.chats.parts.halted_kinds import Halted, Recovery
from web.chats.parts.links import ShownAddress
from web.chats.parts.memory_kinds import MemoryData
from web.chats.parts.offer_kinds import OfferData, ShownAttachment
from web.chats.parts.plan_kinds import Plan
from web.chats.parts.setup_kinds import ChatSettings, NeededAgain, Spent
from web.chats.parts.skill_kinds import SkillData
from web.harness.mcp.status import LogLine, State
from web.harness.tools.form_fields import Field
from web.harness.values.events import Decision, InputAction, Resolution, ResultPart
from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage

CallStatus = Literal[
    "writing", "asking", "running", "done", "failed", "denied", "cancelled", "unknown", "not_run"
]
"""`unknown`: the server was stopped while it ran, and nobody knows how far it came. `not_run`: it
comes after the step that its chat was begun from."""

NestedState = Literal["", "working", "asking", "done"]
"""Of a call that runs a sub-agent, '' of any other."""

ChatState = Literal["idle", "working", "asking", "failed", "paused"]

Behind = Literal["working", "asking", "halted"]
"""What the run is at that a message waits for."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the person said. `at` is seconds since the epoch."""

    kind: ClassVar[str] = "user"
    text: str
    at: float
    attachments: tuple[ShownAttachment, ...] = ()


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
    always_asks: bool = False


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of a result. `host` is where a link leads, '' for one that is not to be opened."""

    part: ResultPart
    host: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """What a running tool asks the person for: the `fields` of a form, or to visit `address`.

    `request` is the whole of it; see `InputRequired`.
    """

    key: str
    request: JsonObject
    server: str
    message: str
    fields: tuple[Field, ...] = ()
    address: ShownAddress | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is; see `ToolProgress`."""

    done: float
    total: float | None = None
    message: str = ""

    @property
    def words(self) -> str:
        how_far = f"{self.done:.12g}"
        if self.total is not None:
            how_far = f"{min(100, int(100 * self.done / self.total))} %"
        return f"{how_far}, {self.message}" if self.message else how_far


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. While `writing` only `written` (characters of arguments so far) is known.

    `result` is shown up to a limit; `result_size` is its whole length in characters. `seconds`
    is how long it ran. `decision` is what the person said, None where nobody was asked. `parts` are
    shown instead of `result` where there are some. `files` are paths that it made. `hints` are what
    the maker of the tool says. While it runs, `inputs` are open questions to the person; `answered`
    says how others ended. With `nested` it is a slot in which lies what its sub-agent does;
    `run_id` is that of the run which the person's message began. `recovery` is the open question
    whether it ran, `resolved` what a person said to one.
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
    parts: tuple[ShownPart, ...] = ()
    files: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    progress: Progress | None = None
    inputs: tuple[Input, ...] = ()
    answered: tuple[InputAction, ...] = ()
    nested: NestedState = ""
    recovery: Recovery | None = None
    resolved: Resolution | None = None

    @property
    def waits(self) -> bool:
        """Whether it needs an answer of the person to go on."""
        return self.status == "asking" or bool(self.inputs) or self.recovery is not None


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
    """Under a finished answer: seconds of work, tokens, cost in dollars, the model that gave it.

    `still` are the seconds in which it waited for the person, was paused, or nobody performed it.
    `run_id` is that of a run whose steps can be looked at, '' for others.
    """

    kind: ClassVar[str] = "foot"
    seconds: float
    usage: Usage
    cost: float | None
    model: str
    run_id: str = ""
    still: float = 0.0


@dataclass(frozen=True, slots=True)
class Queued:
    """A message that waits for the run before it to end; it can be taken back.

    `behind` says what that run is at: it goes on by itself, or not before its person has answered
    it, or said whether it goes on.
    """

    kind: ClassVar[str] = "queued"
    message_id: str
    text: str
    attachments: int = 0
    behind: Behind = "working"


@dataclass(frozen=True, slots=True)
class Status:
    """The one status line. `text` says it in words; `run_id` is the run that can be stopped, and
    paused too with `pauses`."""

    kind: ClassVar[str] = "status"
    state: ChatState
    text: str
    run_id: str | None = None
    questions: int = 0
    pauses: bool = False


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
class ServerSignIn:
    """How a person signs in to a server.

    `offered` says that it can be begun. Then there is an `address` to visit within `seconds`.
    `done` says that there are tokens, which can be forgotten.
    """

    offered: bool = False
    address: ShownAddress | None = None
    seconds: float = 600.0
    done: bool = False


@dataclass(frozen=True, slots=True)
class Server:
    """One MCP server and how it is doing: a slot that its tools lie in.

    `key` names it in addresses. `where` is its address or command, without what may be secret.
    `of_host` is one of the configuration file, which every chat has. `retries` says that it is
    tried again by itself; an attempt takes at most `connect_seconds`. `instructions` are its words
    to the model, `stderr` and `log` its last lines.
    """

    kind: ClassVar[str] = "server"
    key: str
    name: str
    of_host: bool
    where: str
    state: State
    cause: str = ""
    retries: bool = False
    connect_seconds: float = 20.0
    title: str = ""
    version: str = ""
    protocol: str = ""
    instructions: str = ""
    sign_in: ServerSignIn = ServerSignIn()
    stderr: tuple[str, ...] = ()
    log: tuple[LogLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server, by the name that models call it. `hints` are what the server says of it.

    `granted` is one that a person allowed for the chat; `changed` one that the server has made
    another after that, so that it asks again.
    """

    name: str
    title: str
    description: str
    hints: tuple[str, ...]
    on: bool
    granted: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The tools of a server. `more` is how many beyond these it has."""

    kind: ClassVar[str] = "server_tools"
    server: str
    tools: tuple[ServerTool, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A command that was typed and not started: exactly what will run if the person says so.

    `variables` are names from the environment that it gets beside the usual ones.
    """

    kind: ClassVar[str] = "proposal"
    proposal_id: str
    name: str
    command: str
    args: tuple[str, ...]
    variables: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class Attention:
    """What waits for the person among the servers, in words; `more` is how much beyond these."""

    kind: ClassVar[str] = "attention"
    waiting: tuple[str, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A chat in the side bar. `at` is its last activity in seconds since the epoch."""

    kind: ClassVar[str] = "row"
    chat_id: str
    title: str
    state: ChatState
    at: float


@dataclass(frozen=True, slots=True)
class MoreChats:
    """There are older chats than the side bar shows; so many more come on a click."""

    kind: ClassVar[str] = "more_chats"
    count: int


@dataclass(frozen=True, slots=True)
class Undo:
    """A word on what was deleted, and how it is brought back until `until` (seconds since the
    epoch).

    `chat_id` is the chat, or the one in which it was done. A file is brought back by the number of
    a version, a skill by its origin, a memory by what named it: that is `ref`. An upload that was
    never sent is only told of.
    """

    kind: ClassVar[str] = "undo"
    chat_id: str
    title: str
    until: float
    of: Literal["chat", "file", "skill", "upload", "memory"] = "chat"
    ref: str = ""


PartData = (
    UserMessage
    | Answer
    | MarkdownBlock
    | Thinking
    | Call
    | Notice
    | Failure
    | Halted
    | Condensed
    | Plan
    | Foot
    | Queued
    | Status
    | Head
    | ChatSettings
    | NeededAgain
    | Spent
    | Grant
    | Server
    | ServerTools
    | Proposal
    | Attention
    | Row
    | MoreChats
    | Undo
    | OfferData
    | SkillData
    | MemoryData
    | FileData
)
