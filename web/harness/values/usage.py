"""Tokens counted and what they cost."""

from __future__ import annotations

from dataclasses import dataclass


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
        return (
            usage.input_tokens * self.input_cost_per_m
            + usage.output_tokens * self.output_cost_per_m
        ) / 1_000_000
