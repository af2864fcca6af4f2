"""What the page shows of how a chat is set up, and of what it has used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from web.chats.setup import STANDARD, Setup
from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """What can be changed of the open chat; `models` are those that it may have.

    `system_prompt` is '' where the server's own holds, `usual_prompt`. `limits` are set for this
    chat, `usual` hold where it has none. Without a price for the model, cost is not `priced`.
    """

    kind: ClassVar[str] = "settings"
    title: str
    model: str
    models: tuple[str, ...]
    system_prompt: str = ""
    limits: Setup = STANDARD
    usual: Setup = STANDARD
    priced: bool = False
    usual_prompt: str = ""

    @property
    def has_own(self) -> bool:
        """Whether the chat has instructions or limits of its own."""
        return bool(self.system_prompt) or self.limits != STANDARD


@dataclass(frozen=True, slots=True)
class NeededAgain:
    """An MCP server of before a restart, and what of it was not stored, in words. `entry` is what
    was."""

    kind: ClassVar[str] = "needed_again"
    proposal_id: str
    name: str
    needed: tuple[str, ...]
    entry: JsonObject


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and dollars of all turns of a chat; `cost` is None as long as no price is known."""

    kind: ClassVar[str] = "spent"
    turns: int
    usage: Usage
    cost: float | None
