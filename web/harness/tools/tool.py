"""A tool, what it is handed when it runs, and what it gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from web.harness.values.messages import JsonObject, TextBlock

ReplayPolicy = Literal["safe", "idempotent", "manual"]
"""May a call of unknown outcome be repeated: freely, with the same key, or as a person says."""


class PermissionLevel(StrEnum):
    """May a model call the tool by itself, after a person's yes, or not at all."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool learns of the call it serves.

    `call_id` is unique within the conversation and stays the same when an idempotent call is
    repeated. `state` is the application's own, shared by all calls of one agent.
    """

    call_id: str
    run_id: str = ""
    session_id: str = ""
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call gave: content for the model, and whether it failed."""

    content: tuple[TextBlock, ...]
    is_error: bool = False

    @classmethod
    def of(cls, text: str, *, is_error: bool = False) -> ToolOutput:
        return cls((TextBlock(text),), is_error)

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.content)


Handler = Callable[[JsonObject, ToolContext], Awaitable[ToolOutput]]
Preview = Callable[[JsonObject, ToolContext], Awaitable[JsonObject | None]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    `handler` is awaited with validated arguments; it may raise `ToolError`, whose message the
    model reads. Cancelling it must end what it started. `preview` tells a person what a call
    would do, without doing it: `{"kind": "text", "text": ...}` or `{"kind": "diff", "path": ...,
    "note": ..., "lines": [["same" | "add" | "cut" | "gap", text], ...]}`. `validate` turns what
    the model sent into the handler's arguments, which are JSON too, or raises `ToolError` with
    words the model can act on; validating its own result changes nothing.
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
