"""Configurations as JSON: both shapes, and the rule for fields that are not known."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from web.harness.values.config import AgentConfig, Limits, ModelName, Retry, ToolDefaults
from web.harness.values.config_form import differences
from web.harness.values.errors import ConfigurationError
from web.harness.values.json_form import NotSerialisable
from web.harness.values.usage import Prices

FULL = AgentConfig(
    model=ModelName("openai", "llama3:8b"),
    system_prompt="Be brief.",
    max_tokens=100,
    temperature=0.5,
    limits=Limits(max_iterations=3, max_cost_dollars=1.5, prices=Prices(3.0, 15.0)),
    retry=Retry(attempts=2, call_timeout_seconds=90.0),
    tools=ToolDefaults(timeout_seconds=None),
    extra={"team": {"name": "invoices", "tags": [1, None]}},
)


@pytest.mark.parametrize("config", [AgentConfig(), FULL])
def test_a_configuration_comes_back_equal_through_json(config: AgentConfig) -> None:
    assert AgentConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_every_field_is_written_in_the_nested_shape() -> None:
    form = FULL.to_dict()
    assert form["model"] == "openai:llama3:8b"
    assert form["limits"]["prices"] == {"input_cost_per_m": 3.0, "output_cost_per_m": 15.0}
    for group, kind in [("limits", Limits), ("retry", Retry), ("tools", ToolDefaults)]:
        assert form[group].keys() == {each.name for each in fields(kind)}
    assert "extra" not in AgentConfig().to_dict()


def test_the_older_flat_shape_is_read() -> None:
    config = AgentConfig.from_dict(
        {
            "model": "claude",
            "provider": "anthropic",
            "max_tokens": 8192,
            "max_iterations": 12,
            "max_result_chars": 12_000,
            "max_cost_dollars": 2,
            "max_parallel_tools": 4,
            "input_cost_per_m": 3,
            "output_cost_per_m": 15,
            "llm_max_attempts": 3,
            "llm_retry_backoff_seconds": 0.25,
            "model_timeout_seconds": 300,
            "tool_timeout_seconds": 7.5,
        }
    )
    assert config.model == ModelName("anthropic", "claude")
    limits = config.limits
    assert (limits.max_iterations, limits.max_result_chars) == (12, 12_000)
    assert (limits.max_cost_dollars, limits.max_parallel_tools) == (2.0, 4)
    assert limits.prices == Prices(3.0, 15.0)
    assert config.retry == replace(
        Retry(), attempts=3, backoff_seconds=0.25, call_timeout_seconds=300.0
    )
    assert config.tools.timeout_seconds == 7.5


def test_the_nested_shape_of_harnessx_is_read_and_what_means_nothing_here_is_kept() -> None:
    config = AgentConfig.from_dict(
        {
            "model": "gpt",
            "provider": "openai",
            "limits": {"max_iterations": 5, "input_cost_per_m": 1.0, "output_cost_per_m": 2.0},
            "retry": {"attempts": 9, "call_timeout_seconds": 20.0},
            "tools": {"default_timeout_seconds": None, "dedupe_calls": False},
            "prompt_cache": {"ttl_seconds": None, "cache_history": True, "key_salt": ""},
        }
    )
    assert config.limits.prices == Prices(1.0, 2.0)
    assert config.retry.attempts == 9
    assert config.tools.timeout_seconds is None
    assert config.extra == {
        "prompt_cache": {"ttl_seconds": None, "cache_history": True, "key_salt": ""},
        "tools.dedupe_calls": False,
    }
    assert AgentConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colour": 1}, "no field 'colour'"),
        ({"max_iteration": 1}, "Did you mean 'limits.max_iterations'|Did you mean 'max_iter"),
        ({"limits": {"colour": 1}}, "no field 'limits.colour'"),
        ({"limits": 5}, "limits is the number 5 and has to be an object"),
        ({"limits": {"prices": None}}, "limits.prices is null"),
        ({"max_iterations": 0}, "whole number, 1 or more"),
        ({"max_repeats": 1}, "2 or more, or null"),
        ({"max_iterations": True}, "max_iterations is true"),
        ({"max_iterations": "9"}, "the text '9'"),
        ({"max_iterations": 2.0}, "whole number"),
        ({"max_iterations": 10**400}, "a number"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": -1}, "0 or more, or null for none"),
        ({"system_prompt": None}, "system_prompt is null and has to be a text"),
        ({"model": "gpt"}, "'gpt' is not a model"),
        ({"model": 3}, "has to be PROVIDER:NAME"),
        ({"provider": "openai"}, "go together"),
        ({"max_iterations": 1, "limits": {"max_iterations": 1}}, "the same field, given twice"),
        ({"retry": {"attempts": 1}, "llm_max_attempts": 1}, "the same field, given twice"),
        ({"extra": []}, "extra is a list"),
        ({"extra": {"a": {1, 2}}}, "extra.a is a set"),
        ({"openai_api_key": "sk-1"}, "holds no keys"),
        ({"extra": {"deep": [{"password": "x"}]}}, r"extra.deep\[0\].password looks like a secret"),
        ({"extra": {"access_token": "x"}}, "looks like a secret"),
    ],
)
def test_a_field_that_is_wrong_or_unknown_is_refused_by_name(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        AgentConfig.from_dict(given)


def test_no_error_shows_the_value_of_a_secret() -> None:
    hidden = {"api_key": "sk-hidden"}
    for given in (hidden, {"extra": hidden}, {"extra": {"deep": [hidden]}}):
        with pytest.raises(ConfigurationError) as refused:
            AgentConfig.from_dict(dict(given))
        assert "sk-hidden" not in str(refused.value.as_dict())


def test_what_cannot_be_written_is_refused_when_it_is_written() -> None:
    with pytest.raises(NotSerialisable, match=r"extra\.when"):
        AgentConfig(extra={"when": object()}).to_dict()
    with pytest.raises(ConfigurationError, match="looks like a secret"):
        AgentConfig(extra={"api_key": "x"}).to_dict()


def test_differences_are_named_by_field() -> None:
    other = replace(FULL, system_prompt="", limits=replace(FULL.limits, prices=Prices(1.0, 15.0)))
    assert [each.path for each in differences(FULL, other)] == [
        "limits.prices.input_cost_per_m",
        "system_prompt",
    ]
    assert differences(FULL, FULL) == []
