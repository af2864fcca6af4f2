"""A server asks for the model's words while a tool runs: the request, and who answers it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from web.harness.values.usage import Usage

StopReason = Literal["endTurn", "stopSequence", "maxTokens"]


@dataclass(frozen=True, slots=True)
class SamplingMessage:
    """One message of the conversation that the model is to go on with."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """What the model is asked: at most `max_tokens` of an answer, which ends before a `stop`."""

    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    system_prompt: str = ""
    temperature: float | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """What the model said; `model` is the name of the one that did."""

    text: str
    model: str
    stop_reason: StopReason = "endTurn"
    usage: Usage = field(default_factory=Usage)


class Sampler(Protocol):
    """Asks a model in the name of the chat.

    The person has seen the request and will see the answer; that is not its part. It limits how
    long it takes. Raises HarnessError in words. Cancelling it ends the model's work.
    """

    @property
    def model(self) -> str:
        """The model that would be asked, as a person knows it."""
        ...

    async def __call__(self, request: SamplingRequest, /) -> SamplingAnswer: ...
