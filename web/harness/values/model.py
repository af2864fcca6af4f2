"""The seam between an agent and a model API: what is asked, what streams back."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from web.harness.values.messages import JsonObject, Message, ToolUseBlock
from web.harness.values.text import sayable, sayable_json
from web.harness.values.usage import Usage

StopReason = Literal["end_turn", "tool_use", "max_tokens", "refusal"]
"""Why a model ended its answer; `refusal` means that it or a filter declined."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `input_schema` is a JSON Schema of type object."""

    name: str
    description: str
    input_schema: JsonObject


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. `model` is the provider's own name for it."""

    model: str
    messages: Sequence[Message]
    system_prompt: str = ""
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 8192
    temperature: float | None = None
    stall_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingChunk:
    """More thinking. A `signature` closes its block; a `redacted` block has no text."""

    text: str
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ToolUseChunk:
    """More of the call at `index` (0, 1, ... in the order of the calls).

    `arguments` is raw JSON text. `id` and `name` are '' until the provider has sent them.
    """

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelDone:
    """The last chunk of every complete stream: the finished calls, why it stopped, what it used.

    `tool_uses` hold parsed arguments. An id that the provider left out is '' (the agent gives one).
    """

    stop_reason: StopReason
    usage: Usage = field(default_factory=Usage)
    tool_uses: tuple[ToolUseBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteChunk:
    """A remark for the person, not of the model: what of the request it was not sent, and why."""

    text: str


ModelChunk = TextChunk | ThinkingChunk | ToolUseChunk | NoteChunk | ModelDone


class Provider(Protocol):
    """One model API.

    `stream` sends one request and yields what comes back, in order, ending with exactly one
    `ModelDone`. Any failure, before or in mid-stream, raises ProviderError (transient or not); an
    ended stream without its closing event, malformed data and a silence of
    `request.stall_seconds` are transient failures. Closing the generator ends the connection at
    once. A provider never repeats a request by itself and never writes a key into an error. What of
    the pictures its API would refuse is named in their place, and told by a `NoteChunk`; a refusal
    that is about pictures raises PicturesRefused.
    """

    def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        """Yields non-empty lists: all chunks that one read from the network brought."""
        ...

    async def aclose(self) -> None:
        """Closes connections. Closing twice is fine."""
        ...


def parse_arguments(raw: str) -> tuple[JsonObject, str | None]:
    """`(arguments, malformed)` from a model's raw argument text.

    Empty text and `null` mean `{}`. NaN and Infinity are no JSON: they could not be sent on.
    Half characters are replaced, and what is nested too deep is malformed.
    """
    if not raw.strip():
        return {}, None
    try:
        value: Any = sayable_json(
            json.loads(raw, parse_constant=_refuse_constant, parse_float=_finite)
        )
    except (ValueError, RecursionError):
        return {}, sayable(raw)
    if value is None:
        return {}, None
    return (value, None) if isinstance(value, dict) else ({}, sayable(raw))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large")
    return number
