"""Prices of models as an application is given them."""

from __future__ import annotations

import pytest

from web.harness.values.config import ModelName
from web.harness.values.price_list import read_prices
from web.harness.values.usage import Prices, Usage


def test_prices_are_read_by_model() -> None:
    prices = read_prices('{"openai:gpt-x": [1.25, 10], "openai:llama3:8b": [0, 0]}')
    assert prices == {
        ModelName("openai", "gpt-x"): Prices(1.25, 10.0),
        ModelName("openai", "llama3:8b"): Prices(0.0, 0.0),
    }
    assert prices[ModelName("openai", "gpt-x")].cost(Usage(1_000_000, 100_000)) == 2.25


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no JSON object"),
        ('{"gpt": [1, 2]}', "'gpt' is not a model"),
        ('{"openai:gpt": 3}', "'openai:gpt' is not two numbers"),
        ('{"openai:gpt": [1]}', "not two numbers"),
        ('{"openai:gpt": [1, "2"]}', "not two numbers"),
        ('{"openai:gpt": [-1, 2]}', "not two numbers"),
        ('{"openai:gpt": [NaN, 2]}', "not two numbers"),
        ('{"openai:gpt": [true, 2]}', "not two numbers"),
    ],
)
def test_what_is_no_price_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_prices(text)
