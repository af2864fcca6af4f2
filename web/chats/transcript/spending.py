"""What a chat has used up: tokens, and dollars where prices are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from web.chats.parts.channel import Channel
from web.chats.parts.setup_kinds import Spent
from web.harness.agent.totals import Totals
from web.harness.values.events import EventBody, RunResult
from web.harness.values.usage import Usage

SPENT = "spent"
"""Where a session's state keeps it."""


@dataclass(slots=True)
class Spending:
    """Counts what the runs of one chat report, sub-agents and summaries included."""

    totals: Totals = field(default_factory=Totals)
    turns: int = 0

    def take(self, bodies: Iterable[EventBody]) -> bool:
        """Counts events; returns whether anything was used."""
        before = (self.totals.usage, self.turns)
        for body in bodies:
            self.totals.take(body)
            self.turns += isinstance(body, RunResult)
        return before != (self.totals.usage, self.turns)

    def show(self, channel: Channel) -> None:
        spent = Spent(self.turns, self.totals.usage, self.totals.cost)
        channel.put("chat-spent", "spent", spent)

    def as_json(self) -> dict[str, Any]:
        usage, cost = asdict(self.totals.usage), self.totals.cost
        return {"turns": self.turns, "usage": usage, "cost": cost}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Spending:
        spending = cls(turns=data["turns"])
        spending.totals.restore(Usage(**data["usage"]), data["cost"])
        return spending
