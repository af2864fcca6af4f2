"""What turns work with, and how many there may be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from web.chats.chat import Chat
from web.chats.setup import PriceList
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Tool
from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.model import Provider


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """`max_running` turns of all chats at a time; `max_queued` messages of one chat that wait."""

    max_running: int
    max_queued: int
    max_message_chars: int
    kept_runs: int


@dataclass(frozen=True, slots=True)
class Connected:
    """More tools, of which one whose name is taken is left out, and what a model is told of it."""

    tools: Sequence[Tool] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a turn works with, made by the application."""

    config: AgentConfig
    provider: Callable[[ModelName], Provider]
    """The provider of a model; raises ConfigurationError. It stays the application's."""
    tools: Callable[[Chat], ToolRegistry]
    connected: Callable[[Chat], Awaitable[Connected]] | None = None
    """What a chat is connected to, asked before each model call; it may have to be waited for."""
    only_here: Callable[[Chat], bool] = lambda chat: False
    """Whether a chat has what no other process can have: servers that its person connected."""
    learned: LearnedLimits = field(default_factory=LearnedLimits)
    """What was learned of the models: one chat's refusal spares all others theirs."""
    prices: PriceList = field(default_factory=dict)


Source = Callable[[Chat], Awaitable[Connected]]


def joined(*sources: Source) -> Source:
    """One source of several, asked one after another. Of two tools of one name the first counts."""

    async def connected(chat: Chat) -> Connected:
        found = [await source(chat) for source in sources]
        tools = [tool for each in found for tool in each.tools]
        words = [each.instructions for each in found if each.instructions]
        return Connected(tools, "\n\n".join(words))

    return connected
