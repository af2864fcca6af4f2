"""What notes and facts may hold."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TITLE_CHARS = 200
MAX_TAGS = 20
MAX_TAG_CHARS = 50
MAX_CATEGORY_CHARS = 50


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Of one store."""

    max_notes: int = 20_000
    max_note_chars: int = 100_000
    """Of the content of one note."""
    max_note_bytes: int = 1_000_000
    """Of one file, as a person may have written it; a larger one is not read."""
    max_facts: int = 20_000
    max_fact_chars: int = 4_000
    max_facts_bytes: int = 64_000_000
    """Of the file of all facts."""
    busy_seconds: float = 10.0
    """So long another program may hold the folder before that is an error."""
