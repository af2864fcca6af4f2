"""What is a secret by its name, or plainly a key, is never written down."""

from __future__ import annotations

from typing import Any

import pytest

from web.harness.values.config import AgentConfig
from web.harness.values.errors import ConfigurationError
from web.harness.values.secret_names import LEFT_OUT, refuse_secrets, without_secrets

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


@pytest.mark.parametrize("value", SECRETS)
def test_what_is_shown_to_others_is_without_secrets(value: dict[str, Any]) -> None:
    shown = without_secrets(value)
    assert LEFT_OUT in str(shown)
    assert shown != value
    # Once more changes nothing: what stands there now is none.
    assert without_secrets(shown) == shown


def test_only_what_looks_like_a_key_is_left_out_of_a_text() -> None:
    key = "sk-ant-abc.def/0123"
    text = f'Use {{"k":"{key}","b":[1]}}, not task-sk, sk-learn or Bearer of news.'
    assert without_secrets(text) == text.replace(key, LEFT_OUT)
    assert without_secrets([text, 5, None, True]) == [text.replace(key, LEFT_OUT), 5, None, True]
    assert without_secrets(OPEN[:4]) == OPEN[:4]


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("use password=hunter2secret now", f"use password={LEFT_OUT} now"),
        ("DB_PASSWORD: 'two words'", f"DB_PASSWORD: '{LEFT_OUT}'"),
        ('{"api_key": "abc", "n": 1}', f'{{"api_key": "{LEFT_OUT}", "n": 1}}'),
        ("Authorization: Basic dXNlcjpw", f"Authorization: {LEFT_OUT}"),
    ],
)
def test_the_value_of_a_secret_name_in_a_text_is_left_out(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    ["max_tokens=500", "token: 5", "def f(token: str) -> None", "My password is long", "a=b"],
)
def test_a_text_in_which_no_secret_is_given_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text
