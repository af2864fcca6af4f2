"""What a chat has of its own beside the server's standard: instructions and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any

from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.errors import HarnessError
from web.harness.values.usage import Prices

PriceList = Mapping[ModelName, Prices]
"""What tokens of each model cost, as far as the application knows."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Limits of one chat; where one is None the server's holds.

    `max_tokens` of one answer, `max_context_tokens` of one model call, `max_iterations` model calls
    and `max_cost_dollars` of one turn.
    """

    max_iterations: int | None = None
    max_cost_dollars: float | None = None
    max_tokens: int | None = None
    max_context_tokens: int | None = None


STANDARD = Setup()
"""A chat that has nothing of its own."""

BOUNDS: Mapping[str, tuple[float, float]] = {
    "max_iterations": (1, 1_000),
    "max_cost_dollars": (0.0001, 10_000),
    "max_tokens": (1, 1_000_000),
    "max_context_tokens": (1_000, 100_000_000),
}
"""The least and the most that each limit can be set to."""

LABELS: Mapping[str, str] = {
    "max_iterations": "Model calls",
    "max_cost_dollars": "Cost in dollars",
    "max_tokens": "Tokens of an answer",
    "max_context_tokens": "Tokens of a model call",
}

_WHOLE = frozenset(BOUNDS) - {"max_cost_dollars"}


def configured(
    standard: AgentConfig, model: ModelName, prompt: str, setup: Setup, prices: PriceList
) -> AgentConfig:
    """The configuration of a chat's next turn: the standard one with what the chat has of its own.

    `prompt` is '' for the standard system prompt.
    """
    limits = standard.limits
    return replace(
        standard,
        model=model,
        system_prompt=prompt or standard.system_prompt,
        max_tokens=setup.max_tokens or standard.max_tokens,
        limits=replace(
            limits,
            max_iterations=setup.max_iterations or limits.max_iterations,
            max_cost_dollars=setup.max_cost_dollars or limits.max_cost_dollars,
            max_context_tokens=setup.max_context_tokens or limits.max_context_tokens,
            prices=prices.get(model, limits.prices),
        ),
    )


def setup_of(config: AgentConfig, standard: AgentConfig) -> tuple[Setup, str]:
    """What a configuration asks for beside the standard, within the bounds, and in words which of
    its limits were beyond them: `Model calls 1,000 (5,000 was asked for)`; '' if none was."""
    wanted, usual = _limits(config), _limits(standard)
    asked = {
        name: value for name, value in wanted.items() if value is not None and value != usual[name]
    }
    kept = {name: _within(name, value) for name, value in asked.items()}
    beyond = (
        f"{LABELS[name]} {_number(kept[name])} ({_number(value)} was asked for)"
        for name, value in asked.items()
        if kept[name] != value
    )
    return Setup(**kept), ", ".join(beyond)


def typed_setup(given: Mapping[str, str], setup: Setup) -> Setup:
    """A setup changed as a person typed it: '' puts a limit back to the server's, and what is not
    there stays. Raises HarnessError (`invalid_arguments`)."""
    changes: dict[str, Any] = {}
    for name in BOUNDS:
        if (text := given.get(name)) is not None:
            changes[name] = _typed(name, text.strip())
    return replace(setup, **changes)


def checked_setup(changes: Mapping[str, float | None], setup: Setup) -> Setup:
    """A setup with some of its limits changed, None for the server's. Raises HarnessError."""
    for name, value in changes.items():
        if value is not None:
            _check(name, value)
    return replace(setup, **changes)  # type: ignore[arg-type]


def standard_limits(standard: AgentConfig) -> dict[str, Any]:
    """What holds where a chat says nothing."""
    return _limits(standard)


def _limits(config: AgentConfig) -> dict[str, Any]:
    own = {"max_tokens": config.max_tokens}
    return {
        each.name: own.get(each.name, getattr(config.limits, each.name, None))
        for each in fields(Setup)
    }


def _within(name: str, value: float) -> Any:
    least, most = BOUNDS[name]
    kept = min(max(value, least), most)
    return int(kept) if name in _WHOLE else kept


def _typed(name: str, text: str) -> float | int | None:
    if not text:
        return None
    # A comma may stand before cents or before thousands, so that in dollars it is neither.
    between, form = (
        (r"[,\s'\u2019]", r"-?\d+") if name in _WHOLE else (r"\s", r"-?(?:\d+(?:\.\d*)?|\.\d+)")
    )
    plain = re.sub(rf"(?<=\d){between}(?=\d{{3}}(?!\d))", "", text.removeprefix("$").strip())
    try:
        if not re.fullmatch(form, plain, re.ASCII):
            raise ValueError
        value = int(plain) if name in _WHOLE else float(plain)
    except ValueError:
        kind = "whole number" if name in _WHOLE else "number"
        raise HarnessError(
            f"{LABELS[name]}: '{text[:40]}' is not a {kind}.",
            hint="Nothing was changed. Leave the field empty for what is usual here.",
            code="invalid_arguments",
        ) from None
    _check(name, value)
    return value


def _number(value: float) -> str:
    """A number as a person writes it: 1,000, 0.0001; of one that is very long that it is."""
    if isinstance(value, float) and not isfinite(value):
        return "this"
    if abs(value) >= 10**15:
        return "a number of more than 15 digits"
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def _check(name: str, value: float) -> None:
    least, most = BOUNDS[name]
    # NaN is not between them either.
    if not least <= value <= most:
        raise HarnessError(
            f"{LABELS[name]}: {_number(value)} is not between {_number(least)} and "
            f"{_number(most)}.",
            hint="Nothing was changed.",
            code="invalid_arguments",
        )
