"""A tool, what it is handed when it runs, and what it gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from web.harness.tools.resource import GetResource, no_resources
from web.harness.values.events import Decision, InputAction, PlanStep, ResultPart
from web.harness.values.messages import JsonObject, ResultContent, TextBlock

if TYPE_CHECKING:
    from web.harness.tools.inside import Inside

ReplayPolicy = Literal["safe", "idempotent", "manual"]
"""May a call of unknown outcome be repeated: freely, with the same key, or as a person says."""


class PermissionLevel(StrEnum):
    """May a model call the tool by itself, after a person's yes, or not at all."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class InputAnswer:
    """What a person said to a request for input; `content` holds the fields of an accepted form."""

    action: InputAction
    content: JsonObject | None = None


ReportProgress = Callable[[float, float | None, str], None]
"""Takes how far a call is, how far it goes (None where that is not known), and words."""


class Ask(Protocol):
    """Puts a request to the person and waits for the answer; see `InputRequired` for its shape.

    With a `state`, JSON of the tool's own, the question outlives the process where the run does:
    it is written down, one of a call at a time, and when the person has answered after the process
    ended, the handler is called again with `ToolContext.continued`. Raises NotSerialisable for a
    state that is no JSON.
    """

    async def __call__(
        self, request: JsonObject, /, *, state: JsonObject | None = None
    ) -> InputAnswer: ...


@dataclass(frozen=True, slots=True)
class Continued:
    """What a call goes on from: the `state` that its question had, and the person's answer."""

    state: JsonObject
    answer: InputAnswer


def tell_nobody(done: float, total: float | None, message: str) -> None:
    """The progress of a call that nobody watches."""


async def nobody_answers(request: JsonObject, /, *, state: JsonObject | None = None) -> InputAnswer:
    """The answer where there is no person to ask."""
    return InputAnswer("decline")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool learns of the call it serves, and how it speaks with the person meanwhile.

    `call_id` is unique within the conversation and stays the same when an idempotent call is
    repeated. `state` is the application's own, shared by all calls of one agent. `progress` may be
    called as often as one likes, from any thread. Several requests of `ask` may be open at once;
    the call's time limit stands still meanwhile, and an open one ends with the call. `approval` is
    the key of the question that let the call run, also where it was put for an earlier call and
    answered for the whole chat, and `decision` that answer; both are '' where nobody was asked.
    `inside` is for a tool that runs another agent, None outside of a run. `resource` lends live
    things that outlast the call, where the run has any: `await context.resource("shell", "session",
    open_shell)`, whose function returns a `Resource`. `continued` is set where the call asked with
    a state before its process ended: it goes on from there instead of beginning anew.
    """

    call_id: str
    run_id: str = ""
    session_id: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    progress: ReportProgress = tell_nobody
    ask: Ask = nobody_answers
    approval: str = ""
    decision: Decision | Literal[""] = ""
    inside: Inside | None = None
    resource: GetResource = no_resources
    continued: Continued | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call gave: content (text and pictures) for the model, and whether it failed.

    `parts` is the same for a person, in order, where text alone would not show it well: pictures,
    sound, links. Empty where the content says all. Binary data is not in them but kept by a
    `KeepBlob`. `files` are the paths of the chat's files that the call made or changed. `plan` is
    what the agent plans now, where the call wrote that down.
    """

    content: tuple[ResultContent, ...]
    is_error: bool = False
    parts: tuple[ResultPart, ...] = ()
    files: tuple[str, ...] = ()
    plan: tuple[PlanStep, ...] = ()

    @classmethod
    def of(cls, text: str, *, is_error: bool = False) -> ToolOutput:
        return cls((TextBlock(text),), is_error)

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True)
class Blob:
    """Binary data of a result. `media_type` is what its bytes are, whatever a server says."""

    sha256: str
    media_type: str
    data: bytes = field(repr=False)


KeepBlob = Callable[[Blob], bool]
"""Keeps data for the page to show; False where it is too much. It may be dropped later."""


Handler = Callable[[JsonObject, ToolContext], Awaitable[ToolOutput]]
Preview = Callable[[JsonObject, ToolContext], Awaitable[JsonObject | None]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    `handler` is awaited with validated arguments; it may raise `ToolError`, whose message the
    model reads. Cancelling it must end what it started. `preview` tells a person what a call
    would do, all of it, without doing it: `{"kind": "text", "text": ...}` or `{"kind": "diff",
    "path": ..., "note": ..., "lines": [["same" | "add" | "cut" | "gap", text], ...]}`, a text being
    one line or several. A `text` may have `"files": [[name, text], ...]` beside it, which a person
    sees where all is shown. `validate` turns what
    the model sent into the handler's arguments, which are JSON too, or raises `ToolError` with
    words the model can act on; validating its own result changes nothing. `hints` are what its
    maker says of it in a word or two ("read-only"), for a person to see; they permit nothing.
    `always_asks` suits what runs programs: a person's yes is for one call, and none is for all.
    `timeout_seconds` is None for what the agent's configuration says, infinity for no limit. A run
    that was begun with one `version` goes on with no other; '' is one too.
    """

    name: str
    description: str
    input_schema: JsonObject
    handler: Handler
    permission: PermissionLevel = PermissionLevel.ASK
    timeout_seconds: float | None = None
    replay: ReplayPolicy = "manual"
    preview: Preview | None = None
    validate: Callable[[JsonObject], JsonObject] | None = None
    hints: tuple[str, ...] = ()
    always_asks: bool = False
    version: str = ""
