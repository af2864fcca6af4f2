"""How an agent behaves: model, prompt, limits, retries, tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import JsonObject
from web.harness.values.text import sayable
from web.harness.values.usage import Prices


@dataclass(frozen=True, slots=True)
class ModelName:
    """`PROVIDER:NAME`, say `openai:gpt-5` or `demo:demo`."""

    provider: str
    name: str

    def __post_init__(self) -> None:
        for part in (self.provider, self.name):
            if not isinstance(part, str) or not part or part != part.strip():
                raise ConfigurationError(
                    f"{self.provider!r} and {self.name!r} are no provider and model: each is a "
                    "text, not empty, without blanks around it."
                )
        if ":" in self.provider or sayable(str(self)) != str(self):
            raise ConfigurationError(f"{self.provider!r} and {self.name!r} are no model.")

    @classmethod
    def parse(cls, text: str) -> ModelName:
        """Reads `PROVIDER:NAME`; raises ConfigurationError when a part is missing."""
        provider, _, name = (part.strip() for part in text.partition(":"))
        if not provider or not name:
            raise ConfigurationError(
                f"'{text}' is not a model.", hint="Write PROVIDER:NAME, for example demo:demo."
            )
        return cls(provider, name)

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


DEMO_MODEL = ModelName("demo", "demo")

SMALL_DEMO_MODEL = ModelName("demo", "small")
"""As scripted, but it takes 8,192 tokens and refuses more, as real models do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run ends by itself. None means no limit."""

    max_iterations: int = 50
    """Model calls in one run."""
    max_cost_dollars: float | None = None
    """Of one run; needs prices."""
    max_result_chars: int = 60_000
    """Of one tool result; what is longer is cut, and the model is told."""
    max_parallel_tools: int = 8
    """Tools of one run that run at the same time."""
    max_repeats: int | None = 5
    """The same calls with the same arguments and results in a row; at least 2."""
    max_context_tokens: int | None = None
    """What the model takes in one call, its answer included. None: what is known of it. A longer
    conversation is made shorter before it is sent."""
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        _check(self, "limits.")


@dataclass(frozen=True, slots=True)
class Retry:
    """How transient failures of a model are repeated."""

    attempts: int = 4
    """Tries of one model call, the first included."""
    backoff_seconds: float = 0.5
    """Before the second try; doubled before each further one."""
    max_backoff_seconds: float = 30.0
    """The longest wait, a provider's Retry-After included; a longer one fails the run."""
    stall_seconds: float = 60.0
    """A stream that sends nothing for so long counts as lost."""
    call_timeout_seconds: float | None = None
    """Of one try of a model call, to the end of its answer; a longer one counts as lost."""

    def __post_init__(self) -> None:
        _check(self, "retry.")


@dataclass(frozen=True, slots=True)
class ToolDefaults:
    """What holds for a tool that says nothing else."""

    timeout_seconds: float | None = 120.0

    def __post_init__(self) -> None:
        _check(self, "tools.")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """All of an agent that can be written down. Times are in seconds.

    What none of its parts can be is refused when it is made, with ConfigurationError.
    """

    model: ModelName = DEMO_MODEL
    system_prompt: str = ""
    max_tokens: int = 8192
    """Of one answer."""
    temperature: float | None = None
    limits: Limits = field(default_factory=Limits)
    retry: Retry = field(default_factory=Retry)
    tools: ToolDefaults = field(default_factory=ToolDefaults)
    extra: JsonObject = field(default_factory=dict, hash=False)
    """Of the application, or of another program: kept with the rest, and read by nobody here."""

    def __post_init__(self) -> None:
        """Takes the text of a model too. Raises ConfigurationError, which names the field."""
        if isinstance(self.model, str):
            object.__setattr__(self, "model", ModelName.parse(self.model))
        _check(self, "")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AgentConfig:
        """From the nested shape or the older flat one. Raises ConfigurationError by field."""
        from web.harness.values.config_form import config_from_dict

        return config_from_dict(data)

    def to_dict(self) -> JsonObject:
        """The nested shape, JSON alone, from which `from_dict` makes an equal configuration."""
        from web.harness.values.config_form import config_to_dict

        return config_to_dict(self)


def _check(part: Limits | Retry | ToolDefaults | AgentConfig, prefix: str) -> None:
    from web.harness.values.config_form import check_fields

    check_fields(part, prefix)
