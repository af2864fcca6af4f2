"""What is a secret by its name, or plainly a key, is never written down."""

from __future__ import annotations

import json
import time
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # Whatever else has a value beside it, or around it.
        ('{"run": "export API_KEY=abc"}', f'{{"run": "export API_KEY={LEFT_OUT}"}}'),
        ('url="https://a.b/?token=abc"', f'url="https://a.b/?token={LEFT_OUT}"'),
        # A quote within it does not end it, and neither does the end of what is kept of a text.
        (r'"password": "ab\"cd", "n": 1', f'"password": "{LEFT_OUT}", "n": 1'),
        ('"password": "abc', f'"password": "{LEFT_OUT}'),
        # As some programs write the quotes and signs of JSON that stands in a text.
        (r"\u0022token\u0022:\u0022abc\u0022", rf"\u0022token\u0022:\u0022{LEFT_OUT}\u0022"),
        (r"pass\u0077ord\u003dabc", rf"pass\u0077ord\u003d{LEFT_OUT}"),
        (r"Bearer abcdefgh\u002Bijk.", LEFT_OUT),
        # JSON that is not whole.
        (r"…ey\", \"token\": \"abc\", \"n\": 1", rf"…ey\", \"token\": \"{LEFT_OUT}\", \"n\": 1"),
        (r'run \"password=abc\" now', rf'run \"password={LEFT_OUT}\" now'),
    ],
)  # fmt: skip
def test_a_secret_is_left_out_wherever_in_a_text_it_is_given(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


def test_json_within_json_is_left_whole_without_its_secrets_at_every_level() -> None:
    given = {"api_key": 'a"b\\c\n"d', "n": 1, "nested": {"note": 'password="pässwort"'}}
    shown = {"api_key": LEFT_OUT, "n": 1, "nested": {"note": f'password="{LEFT_OUT}"'}}
    text: Any = given
    for level in range(6):
        text = json.dumps(text, ensure_ascii=level % 2 == 0)
        cleaned = without_secrets(f'It said: {text}, and 5" of C:\\new').removeprefix("It said: ")
        back: Any = json.JSONDecoder().raw_decode(cleaned)[0]
        for _ in range(level):
            back = json.loads(back)
        assert back == shown, level


@pytest.mark.parametrize("text", ["password=" * 100_000, 'token:"' * 100_000, "\\" * 200_000])
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()
    without_secrets(text)
    assert time.process_time() - started < 5
