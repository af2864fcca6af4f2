"""The harness as a library: `from web.harness import Agent, AgentConfig, ...`.

Each name is loaded from its module at first use (PEP 562), so that `import web.harness` costs next
to nothing. Inside this package everybody imports from the module itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from web.harness.values.config import (
        DEMO_MODEL as DEMO_MODEL,
        AgentConfig as AgentConfig,
        Limits as Limits,
        ModelName as ModelName,
        Retry as Retry,
        ToolDefaults as ToolDefaults,
    )
    from web.harness.values.errors import (
        AgentBusy as AgentBusy,
        AgentClosed as AgentClosed,
        ConfigurationError as ConfigurationError,
        DecisionRefused as DecisionRefused,
        HarnessError as HarnessError,
        LeaseLost as LeaseLost,
        LimitExceeded as LimitExceeded,
        NotFound as NotFound,
        ProviderError as ProviderError,
        SessionConflict as SessionConflict,
        ToolError as ToolError,
    )
    from web.harness.values.events import Event as Event, EventBody as EventBody
    from web.harness.values.messages import Message as Message
    from web.harness.values.usage import Prices as Prices, Usage as Usage

_NAMES = {
    "web.harness.values.config": (
        "DEMO_MODEL",
        "AgentConfig",
        "Limits",
        "ModelName",
        "Retry",
        "ToolDefaults",
    ),
    "web.harness.values.errors": (
        "AgentBusy",
        "AgentClosed",
        "ConfigurationError",
        "DecisionRefused",
        "HarnessError",
        "LeaseLost",
        "LimitExceeded",
        "NotFound",
        "ProviderError",
        "SessionConflict",
        "ToolError",
    ),
    "web.harness.values.events": ("Event", "EventBody"),
    "web.harness.values.messages": ("Message",),
    "web.harness.values.usage": ("Prices", "Usage"),
}
"""Module to the names it gives; the imports above tell type checkers the same."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
