"""What was learned of models is kept by name, is JSON, and is checked when it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from web.harness.values.config import ModelName
from web.harness.values.errors import ConfigurationError
from web.harness.values.learned_limits import LearnedLimits

SMALL, OTHER = ModelName("openai", "small"), ModelName("anthropic", "small")


def learned() -> LearnedLimits:
    limits = LearnedLimits()
    limits.learn(SMALL, 8192)
    limits.calibrate(SMALL, 1000, 1250)
    return limits


def test_a_limit_is_kept_by_provider_and_model() -> None:
    limits = learned()
    assert (limits.get(SMALL), limits.get(OTHER)) == (8192, None)
    assert limits.density(SMALL) == 1.25
    assert limits.density(OTHER) == LearnedLimits().density(OTHER)
    limits.learn(SMALL, 4096)
    assert (limits.get(SMALL), limits.density(SMALL)) == (4096, 1.25)


def test_a_higher_density_counts_at_once_and_a_lower_one_little_by_little() -> None:
    limits = learned()
    limits.calibrate(SMALL, 1000, 1500)
    assert limits.density(SMALL) == 1.5
    limits.calibrate(SMALL, 1000, 1000)
    assert limits.density(SMALL) == 1.4


@pytest.mark.parametrize("number", [0, -1, 7, 10**12])
def test_a_number_that_no_model_has_is_passed_over(number: int) -> None:
    limits = learned()
    limits.learn(SMALL, number)
    assert limits.get(SMALL) == 8192


@pytest.mark.parametrize(
    ("estimated", "counted", "density"),
    [(1000, 100, 1.25), (1000, 0, 1.25), (1000, 50_000, 6.0), (0, 5, 1.25)],
)
def test_a_count_that_cannot_be_is_bounded_or_passed_over(
    estimated: int, counted: int, density: float
) -> None:
    limits = learned()
    limits.calibrate(SMALL, estimated, counted)
    assert limits.density(SMALL) == density


def test_a_guess_holds_at_once_and_is_in_no_json() -> None:
    limits = learned()
    limits.guess(SMALL, 4000)
    assert limits.get(SMALL) == 4000
    assert limits.as_json() == learned().as_json()
    limits.learn(SMALL, 6000)
    assert limits.get(SMALL) == 6000


def test_a_guess_is_never_below_what_the_model_has_taken() -> None:
    limits = LearnedLimits()
    limits.took(SMALL, 5000, 6000)
    limits.guess(SMALL, 4000)
    assert limits.get(SMALL) == 5000


def test_a_limit_below_what_the_model_has_taken_holds_but_is_no_fact() -> None:
    limits = LearnedLimits()
    limits.took(SMALL, 5000, 6000)
    limits.learn(SMALL, 4000)
    assert (limits.get(SMALL), limits.as_json()) == (4000, {})
    limits.took(SMALL, 3000, 3900)
    assert limits.get(SMALL) == 5000


def test_a_guess_rises_with_what_is_taken_near_it_and_more_slowly_after_each_refusal() -> None:
    limits = LearnedLimits()
    limits.guess(SMALL, 10_000)
    limits.took(SMALL, 100, 200)
    assert limits.get(SMALL) == 10_000
    limits.took(SMALL, 5000, 9000)
    assert limits.get(SMALL) == 10_501
    limits.guess(SMALL, 10_000)
    limits.took(SMALL, 5000, 9000)
    assert limits.get(SMALL) == 10_251


def test_it_comes_back_equal_from_json() -> None:
    limits = learned()
    written = json.loads(json.dumps(limits.as_json()))
    assert written == {"openai:small": {"context_tokens": 8192, "density": 1.25}}
    assert LearnedLimits.from_json(written) == limits
    assert LearnedLimits.from_json({}) == LearnedLimits()
    assert len(limits) == 1


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"openai:small": 8192},
        {"openai:small": {"context_tokens": "8192"}},
        {"openai:small": {"context_tokens": True}},
        {"openai:small": {"context_tokens": 3}},
        {"openai:small": {"density": float("nan")}},
        {"openai:small": {"density": 100}},
        {"openai:small": {"more": 1}},
        {"small": {"context_tokens": 8192}},
    ],
)
def test_what_was_edited_is_refused(data: Any) -> None:
    with pytest.raises(ConfigurationError):
        LearnedLimits.from_json(data)
