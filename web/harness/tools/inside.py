"""What a tool that runs another agent is handed: the place of that run inside its own call."""

from __future__ import annotations

from typing import Any, Protocol

from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.values.config import AgentConfig
from web.harness.values.events import RunResult
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.model import Provider

MAX_DEPTH = 3
"""Agents inside one another, the outermost not counted."""


class Inside(Protocol):
    """The run that a call belongs to, for agents that the call runs.

    `depth` is 0 for a call of the outermost agent. `config`, `provider`, `tools`, `permissions` and
    `learned_limits` are those of the run; they stay its owner's.
    """

    @property
    def depth(self) -> int: ...
    @property
    def config(self) -> AgentConfig: ...
    @property
    def provider(self) -> Provider: ...
    @property
    def tools(self) -> ToolRegistry: ...
    @property
    def permissions(self) -> Permissions: ...
    @property
    def learned_limits(self) -> LearnedLimits: ...

    async def perform(self, agent: Any, message: str) -> RunResult:
        """One turn of an `Agent`, whose events are shown nested in the call.

        Its questions go to whoever answers those of the run, its usage and cost count for the run
        and for its cost limit, and stopping the call stops it. The agent stays the caller's.
        Raises ToolError where agents are nested too deep.
        """
        ...
