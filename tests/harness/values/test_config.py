"""A configuration that no agent can go by is refused when it is made, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from web.harness.values.config import AgentConfig, Limits, ModelName, Retry, ToolDefaults
from web.harness.values.errors import ConfigurationError
from web.harness.values.usage import MAX_COST, MAX_TOKENS, Prices, Usage, add_cost

make: Any = AgentConfig
limits: Any = Limits
retry: Any = Retry

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: limits(max_iterations=0), "limits.max_iterations is the number 0"),
    (lambda: limits(max_iterations=5.0), "whole number"),
    (lambda: limits(max_iterations=True), "whole number"),
    (lambda: limits(max_repeats=1), "2 or more"),
    (lambda: limits(max_cost_dollars=-1), "limits.max_cost_dollars"),
    (lambda: limits(max_parallel_tools=0), "limits.max_parallel_tools"),
    (lambda: limits(prices=Prices(-1.0, 1.0)), "limits.prices.input_cost_per_m"),
    (lambda: limits(prices={}), "limits.prices"),
    (lambda: retry(attempts=0), "retry.attempts"),
    (lambda: ToolDefaults(-1.0), "tools.timeout_seconds"),
    (lambda: make(max_tokens=0), "max_tokens"),
    (lambda: make(system_prompt=None), "system_prompt is null"),
    (lambda: make(system_prompt="half \ud800"), "half a character"),
    (lambda: make(temperature=-1), "temperature"),
    (lambda: make(temperature=float("nan")), "temperature"),
    (lambda: make(limits={"max_iterations": 5}), "limits is an object and has to be Limits"),
    (lambda: make(model="demo"), "is not a model"),
    (lambda: make(model=5), "model is the number 5"),
    (lambda: make(extra=[1]), "extra is a list"),
    (lambda: ModelName("demo", "x y "), "no provider and model"),
    (lambda: ModelName("a", ""), "no provider and model"),
    (lambda: ModelName("a:b", "c"), "no model"),
]


@pytest.mark.parametrize(("made", "said"), REFUSED)
def test_what_no_agent_can_go_by_is_refused_by_its_field(
    made: Callable[[], object], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        made()
    assert said in refused.value.message


def test_the_text_of_a_model_is_taken() -> None:
    assert make(model=" openai: gpt-5 ").model == ModelName("openai", "gpt-5")


def test_whole_numbers_count_as_seconds_and_dollars_too() -> None:
    config = make(limits=limits(max_cost_dollars=1), retry=retry(backoff_seconds=0))
    assert AgentConfig.from_dict(config.to_dict()) == config


def test_what_is_no_count_of_tokens_counts_as_none() -> None:
    odd: Any = Usage
    assert odd(-100, None, 5.0, 10**300, True) == Usage(0, 0, 5, MAX_TOKENS, 0)
    assert add_cost(MAX_COST, 1.0) == MAX_COST
    assert Prices(1e9, 1e9).cost(odd(10**300, 1)) == MAX_COST
