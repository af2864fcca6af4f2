"""The quiet line where a conversation was made shorter for the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Condensed:
    """What the model is not sent any more; see `ContextCondensed`. A slot with the notes."""

    kind: ClassVar[str] = "condensed"
    before: int
    after: int
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    shortened: int = 0

    @property
    def words(self) -> str:
        """What was done most, in a few words."""
        if self.summarised:
            return "Earlier messages were summarised for the model"
        if self.dropped:
            return "The oldest messages are not sent to the model any more"
        if self.cleared:
            return "Old results of tools are not sent to the model any more"
        return "Long results were cut for the model"
