"""The plan of an agent as the page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from web.harness.values.events import PlanStep


@dataclass(frozen=True, slots=True)
class Plan:
    """What an agent plans to do and how far it is; `is_live` while its run goes on."""

    kind: ClassVar[str] = "plan"
    steps: tuple[PlanStep, ...]
    is_live: bool = False

    @property
    def done(self) -> int:
        """How many steps are done."""
        return sum(step.status == "completed" for step in self.steps)
