"""What an agent has used up over all its turns, sub-agents counted."""

from __future__ import annotations

from web.harness.values.events import EventBody, UsageReport, innermost
from web.harness.values.usage import Usage, add_cost


class Totals:
    """Tokens, and dollars where prices are known; `cost` is None as long as none are."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.cost: float | None = None

    def add(self, usage: Usage, cost: float | None) -> None:
        self.usage += usage
        self.cost = add_cost(self.cost, cost)

    def restore(self, usage: Usage, cost: float | None) -> None:
        """Goes on counting from what a saved session says."""
        self.usage, self.cost = usage, cost

    def take(self, body: EventBody) -> None:
        """Counts an event that reports usage, also one of a sub-agent."""
        body = innermost(body)
        if isinstance(body, UsageReport):
            self.add(body.usage, body.cost)
