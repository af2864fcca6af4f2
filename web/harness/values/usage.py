"""Tokens counted and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TOKENS = 10**12
MAX_COST = 1e9
"""In dollars. Of one conversation: what is beyond is no count."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as a provider reports them; 0 where it reports none.

    `input_tokens` counts all input, cached parts included.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    thinking_tokens: int = 0

    def __post_init__(self) -> None:
        """What is no count, as some servers report, counts as none; nobody used up more than
        `MAX_TOKENS`."""
        for name in self.__slots__:
            count = getattr(self, name)
            if type(count) is not int or not 0 <= count <= MAX_TOKENS:
                object.__setattr__(self, name, _count(count))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            self.thinking_tokens + other.thinking_tokens,
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens, given by the application; None where unknown."""

    input_cost_per_m: float | None = None
    output_cost_per_m: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """Dollars for this usage, or None when a price that it needs is unknown."""
        if self.input_cost_per_m is None or self.output_cost_per_m is None:
            return None
        into = usage.input_tokens * self.input_cost_per_m
        return min((into + usage.output_tokens * self.output_cost_per_m) / 1_000_000, MAX_COST)


def add_cost(sofar: float | None, more: float | None) -> float | None:
    """The sum of two costs in dollars; what is unknown adds nothing."""
    return sofar if more is None else min((sofar or 0.0) + more, MAX_COST)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return 0
    return int(min(value, MAX_TOKENS))
