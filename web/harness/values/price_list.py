"""Prices of models, as an application is given them."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from web.harness.values.config import ModelName
from web.harness.values.errors import ConfigurationError
from web.harness.values.usage import Prices

_HINT = '{"PROVIDER:NAME": [3, 15]}'


def read_prices(text: str) -> dict[ModelName, Prices]:
    """Reads `{"PROVIDER:NAME": [in, out], ...}`: US dollars per million tokens that go in and that
    come out. Raises ValueError with words for whoever wrote it."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"this is not JSON. Write prices as {_HINT}") from None
    if not isinstance(given, dict):
        raise ValueError(f"this is no JSON object. Write prices as {_HINT}")
    return {_model(name): _prices(name, value) for name, value in given.items()}


def _model(name: str) -> ModelName:
    try:
        return ModelName.parse(name)
    except ConfigurationError as error:
        raise ValueError(f"{error.message} {error.hint.rstrip('.')}") from None


def _prices(name: str, value: Any) -> Prices:
    if isinstance(value, list) and len(value) == 2 and all(map(_is_price, value)):
        return Prices(float(value[0]), float(value[1]))
    raise ValueError(
        f"the price of '{name}' is not two numbers: dollars per million tokens that go in, and "
        "that come out"
    )


def _is_price(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 10**9 and isfinite(value) and value >= 0
