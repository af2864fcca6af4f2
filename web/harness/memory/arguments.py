"""What the methods of the stores are given, checked: a model's tools and programs call them."""

from __future__ import annotations

from web.harness.values.errors import MemoryRefused
from web.harness.values.json_form import kind_of

MAX_FOUND = 1_000_000
"""What a search without a limit may find."""


def as_text(value: object, what: str) -> str:
    """The text; `what` names it in words. Raises MemoryRefused for anything else."""
    if not isinstance(value, str):
        raise MemoryRefused(f"{what} is {kind_of(value)} and has to be text.")
    return value


def as_limit(value: object) -> int:
    """How many to find; None stands for all. Raises MemoryRefused."""
    if value is None:
        return MAX_FOUND
    if not isinstance(value, int) or isinstance(value, bool):
        raise MemoryRefused(f"The limit is {kind_of(value)} and has to be a whole number.")
    return max(value, 0)
