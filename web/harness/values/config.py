"""How an agent behaves: model, prompt, limits, retries, tools."""

from __future__ import annotations

from dataclasses import dataclass, field

from web.harness.values.errors import ConfigurationError
from web.harness.values.usage import Prices


@dataclass(frozen=True, slots=True)
class ModelName:
    """`PROVIDER:NAME`, say `openai:gpt-5` or `demo:demo`."""

    provider: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ModelName:
        """Reads `PROVIDER:NAME`; raises ConfigurationError when a part is missing."""
        provider, separator, name = text.strip().partition(":")
        if not separator or not provider or not name:
            raise ConfigurationError(
                f"'{text}' is not a model.", hint="Write PROVIDER:NAME, for example demo:demo."
            )
        return cls(provider, name)

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


DEMO_MODEL = ModelName("demo", "demo")


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
    prices: Prices = field(default_factory=Prices)


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


@dataclass(frozen=True, slots=True)
class ToolDefaults:
    """What holds for a tool that says nothing else."""

    timeout_seconds: float | None = 120.0


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """All of an agent that can be written down. Times are in seconds."""

    model: ModelName = DEMO_MODEL
    system_prompt: str = ""
    max_tokens: int = 8192
    """Of one answer."""
    temperature: float | None = None
    limits: Limits = field(default_factory=Limits)
    retry: Retry = field(default_factory=Retry)
    tools: ToolDefaults = field(default_factory=ToolDefaults)
