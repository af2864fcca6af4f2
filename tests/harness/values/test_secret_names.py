"""What is a secret by its name, or plainly a key, is never written down."""

from __future__ import annotations

from typing import Any

import pytest

from web.harness.values.config import AgentConfig
from web.harness.values.errors import ConfigurationError
from web.harness.values.secret_names import refuse_secrets

SECRETS: list[dict[str, Any]] = [
    {"api_key": "x"},
    {"API-Key": "x"},
    {"openaiApiKey": "x"},
    {"OPENAI_API_KEY": "x"},
    {"token": "x"},
    {"accessToken": "x"},
    {"refresh_tokens": [], "auth_tokens": ["x"]},
    {"db.password": "x"},
    {"credentials": {"user": "ana"}},
    {"headers": [{"Authorization": "Basic x"}]},
    {"private key": "x"},
    {"note": "sk-live-123456"},
    {"note": "Bearer abcdefgh1234"},
]

OPEN: list[dict[str, Any]] = [
    {"token": 5, "password": None, "secret": "", "api_key": False},
    {"token_count": "5", "max_tokens": "many", "tokens": ["a", "b"]},
    {"key": "a", "keyboard": "b", "monkey": "c", "primary_key": "id"},
    {"secretary": "Ana", "tokenizer": "x", "passwordless": "yes"},
    {"note": "the task sk-live-123456 was asked for", "name": "sk-learn"},
]


@pytest.mark.parametrize("value", SECRETS)
def test_a_secret_is_refused_and_never_shown(value: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="never written down") as refused:
        refuse_secrets(value, "metadata")
    assert "123456" not in str(refused.value)


@pytest.mark.parametrize("value", OPEN)
def test_what_is_none_passes(value: dict[str, Any]) -> None:
    refuse_secrets(value, "metadata")


def test_a_configuration_is_under_the_same_rule() -> None:
    for extra in ({"API-Key": "x"}, {"token": "x"}, {"a": ["sk-live-123456"]}):
        with pytest.raises(ConfigurationError):
            AgentConfig.from_dict({"extra": extra})
        with pytest.raises(ConfigurationError):
            AgentConfig(extra=extra).to_dict()
    with pytest.raises(ConfigurationError, match="no keys and passwords"):
        AgentConfig.from_dict({"token": "abc"})
    with pytest.raises(ConfigurationError, match="given twice"):
        AgentConfig.from_dict({"prompt_cache": 1, "extra": {"prompt_cache": 2}})
