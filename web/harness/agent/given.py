"""What an agent is made with and asked, checked before anything of it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Tool
from web.harness.tools.words import shown
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import AttachedBlock
from web.harness.values.model import Provider

Tools = ToolRegistry | Iterable[Tool | Callable[..., Any]]
"""A registry, which is used as it is, or tools and functions that one is made of."""


def config_of(given: AgentConfig | None) -> AgentConfig:
    """The configuration. Raises ConfigurationError for what is none."""
    if given is None:
        return AgentConfig()
    if not isinstance(given, AgentConfig):
        raise ConfigurationError(
            f"An agent takes an AgentConfig, not {shown(given)}.",
            hint="Write AgentConfig(system_prompt=...), or AgentConfig.from_dict({...}).",
        )
    return given


def provider_of(given: Provider | None) -> Provider | None:
    """The provider. Raises ConfigurationError for what is none."""
    if given is not None and not callable(getattr(given, "stream", None)):
        raise ConfigurationError(
            f"{shown(given)} is no provider.",
            hint="Make one: make_provider('openai', api_key=...); the model is of the "
            "configuration: AgentConfig(model='openai:NAME').",
        )
    return given


def tools_of(given: Tools | None) -> ToolRegistry:
    """The registry. Raises ConfigurationError for what is neither a tool nor a function."""
    if isinstance(given, ToolRegistry):
        return given
    registry = ToolRegistry()
    if given is None:
        return registry
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(
            f"{shown(given)} is no list of tools.", hint="Give functions, tools or a ToolRegistry."
        )
    for each in given:
        if isinstance(each, Tool):
            registry.add(each)
        elif callable(each) and not isinstance(each, type):
            registry.register(each)
        else:
            raise ConfigurationError(
                f"{shown(each)} is no tool.", hint="Give functions, tools or a ToolRegistry."
            )
    return registry


def check_asked(message: object, attachments: Sequence[object]) -> None:
    """Raises TypeError where a turn is asked of something that cannot be one."""
    if not isinstance(message, str):
        raise TypeError(f"A message is text (str), not {_kind(message)}.")
    if isinstance(attachments, str) or not isinstance(attachments, Sequence):
        raise TypeError(f"Attachments are a list of blocks, not {_kind(attachments)}.")
    for each in attachments:
        if not isinstance(each, get_args(AttachedBlock)):
            raise TypeError(
                f"An attachment is an ImageBlock or a ResourceBlock, not {_kind(each)}."
            )


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
