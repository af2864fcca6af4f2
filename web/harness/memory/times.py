"""Times as they are written down, for people to read: in UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_YEAR_9999 = 253_370_764_800


def iso(seconds: float) -> str:
    """Seconds since 1970 as `2026-01-02T03:04:05Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def plausible(seconds: float) -> float:
    """The same, or 0 for a time that not every calendar and zone has."""
    return seconds if 0 <= seconds < _YEAR_9999 else 0.0


def seconds_of(text: Any) -> float:
    """The time that was written, also by hand (`2026-01-02`); 0 for what is none."""
    try:
        moment = datetime.fromisoformat(text)
        return plausible(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())
    except (TypeError, ValueError, OverflowError):
        return 0.0
