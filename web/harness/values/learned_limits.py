"""What was learned of the context of models: its size, and how many tokens a text has there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from web.harness.values.config import ModelName
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import JsonObject
from web.harness.values.tokens import density_of

MIN_CONTEXT = 256
"""No model has a smaller context; a refusal that names less speaks of something else."""

MAX_CONTEXT = 10**9

MAX_MODELS = 1_000
"""What was learned of more is neither written nor read."""

LEAST_DENSITY, MOST_DENSITY = 0.7, 6.0
"""Some servers leave what they have cached out of their counts; nobody has texts so dense."""

NEAR_GUESS = 0.8
"""A request of so much of a guessed context that is taken shows that the guess may be too low."""

MOST_RISE, LEAST_RISE = 0.05, 0.001
"""So much of itself a guess rises then; half of that after each further refusal."""

LOWERED = 0.2
"""So much of the way down goes the density with a count that is lower."""


@dataclass(frozen=True, slots=True)
class _Guess:
    """A context that no refusal has named; `rise` is the part of itself that it grows by."""

    context_tokens: int
    rise: float = MOST_RISE


@dataclass(frozen=True, slots=True)
class Learned:
    """Of one model: `context_tokens` that it takes, None where no refusal has told; `density` is
    how many tokens it counts for each one estimated, None where it has not reported any."""

    context_tokens: int | None = None
    density: float | None = None


class LearnedLimits:
    """By `provider:model`. Several agents of one process may share it; it is plain memory.

    What was guessed, of refusals that name no size, is in no JSON, and rises again.
    """

    def __init__(self, learned: Mapping[str, Learned] | None = None) -> None:
        self._learned = dict(learned or {})
        self._guesses: dict[str, _Guess] = {}
        self._taken: dict[str, int] = {}

    def get(self, model: ModelName) -> int | None:
        """The context of a model in tokens, None where no refusal has told it.

        It may be guessed by one that named no size.
        """
        told, guess = self._of(model).context_tokens, self._guesses.get(str(model))
        if guess is None:
            return told
        return guess.context_tokens if told is None else min(told, guess.context_tokens)

    def density(self, model: ModelName) -> float:
        """Tokens that this model counts for each one estimated."""
        known = self._of(model).density
        return density_of(model.provider) if known is None else known

    def learn(self, model: ModelName, context_tokens: int) -> None:
        """Notes the context that a refusal told. Numbers that no model has are passed over."""
        name = str(model)
        if MIN_CONTEXT <= context_tokens < self._taken.get(name, 0):
            # It holds for now. But the model has taken more, so it is no fact to be written down.
            self._guesses[name] = _Guess(context_tokens)
        elif MIN_CONTEXT <= context_tokens <= MAX_CONTEXT:
            known = self._of(model)
            self._learned[str(model)] = replace(known, context_tokens=context_tokens)
            self._guesses.pop(name, None)

    def guess(self, model: ModelName, context_tokens: int) -> None:
        """Takes the context to be no larger, but no smaller than what the model has taken."""
        name = str(model)
        tokens = max(context_tokens, self._taken.get(name, 0), MIN_CONTEXT)
        known = self._guesses.get(name)
        rise = MOST_RISE if known is None else max(known.rise / 2, LEAST_RISE)
        self._guesses[name] = _Guess(min(tokens, MAX_CONTEXT), rise)

    def took(self, model: ModelName, counted: int, tokens: int) -> None:
        """Notes that the model took a request that it `counted` so, its answer included.

        `tokens` is what the request might have become. Near a guess, or beyond, the guess rises.
        """
        name, guess = str(model), self._guesses.get(str(model))
        self._taken[name] = max(self._taken.get(name, 0), min(counted, MAX_CONTEXT))
        if guess is not None and tokens >= guess.context_tokens * NEAR_GUESS:
            risen = int(guess.context_tokens * (1 + guess.rise)) + 1
            risen = max(risen, self._taken[name])
            self._guesses[name] = replace(guess, context_tokens=min(risen, MAX_CONTEXT))

    def calibrate(self, model: ModelName, estimated: int, counted: int) -> None:
        """Notes that a request of `estimated` tokens has, by the model's own count, `counted`.

        A count that is much too low, or none, is passed over. A higher density counts at once, a
        lower one little by little: the next text may be as dense as one before.
        """
        if estimated > 0 and counted >= estimated * LEAST_DENSITY:
            density = min(counted / estimated, MOST_DENSITY)
            known = self._of(model).density
            if known is not None and density < known:
                density = known - (known - density) * LOWERED
            self._learned[str(model)] = replace(self._of(model), density=round(density, 4))

    def as_json(self) -> JsonObject:
        """`{"openai:gpt-x": {"context_tokens": 8192, "density": 1.13}, ...}`, models by name."""
        return {model: asdict(self._learned[model]) for model in sorted(self._learned)}

    @classmethod
    def from_json(cls, data: Any) -> LearnedLimits:
        """Reads what `as_json` gave. Raises ConfigurationError for anything else."""
        if not isinstance(data, dict):
            raise ConfigurationError("Learned limits are no JSON object.")
        if len(data) > MAX_MODELS:
            raise ConfigurationError(
                f"Learned limits of {len(data):,} models; at most {MAX_MODELS:,} are kept."
            )
        return cls({str(model): _read(str(model), entry) for model, entry in data.items()})

    def __len__(self) -> int:
        return len(self._learned)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LearnedLimits) and other._learned == self._learned

    __hash__ = None  # type: ignore[assignment]

    def _of(self, model: ModelName) -> Learned:
        return self._learned.get(str(model), Learned())


def _read(model: str, entry: Any) -> Learned:
    ModelName.parse(model)
    if isinstance(entry, dict) and set(entry) <= {"context_tokens", "density"}:
        tokens, density = entry.get("context_tokens"), entry.get("density")
        if (tokens is None or _is_between(tokens, MIN_CONTEXT, MAX_CONTEXT, int)) and (
            density is None or _is_between(density, LEAST_DENSITY, MOST_DENSITY, (int, float))
        ):
            return Learned(tokens, density)
    raise ConfigurationError(f"What was learned of {model} is not as it was written.")


def _is_between(value: Any, least: float, most: float, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and least <= value <= most
