"""Refusals in words: code, whether to retry, when, and never the key."""

from __future__ import annotations

from typing import Any

import pytest

from web.harness.providers.failures import MAX_WORDS, Api, parse_retry_after, refusal

KEY = "sk-secret-0123456789"
API = Api("openai", "api.example.com", "OPENAI_API_KEY", "OPENAI_BASE_URL", KEY)
NOW = 1_700_000_000.0


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "code", "transient"),
    [
        (401, said("Incorrect API key", code="invalid_api_key"), "provider_auth", False),
        (403, said("Not allowed"), "provider_auth", False),
        (
            404,
            said("The model does not exist", code="model_not_found"),
            "provider_unknown_model",
            False,
        ),
        (404, "", "provider_unknown_model", False),
        (400, said("model: gpt-x is not a valid model ID"), "provider_unknown_model", False),
        (400, said("messages: must not be empty"), "provider_bad_request", False),
        (422, {"detail": [{"msg": "field required"}]}, "provider_bad_request", False),
        (
            413,
            said("Request too large", type="request_too_large"),
            "provider_bad_request",
            False,
        ),
        (429, said("Rate limit reached"), "provider_rate_limited", True),
        (
            429,
            said("You exceeded your current quota", code="insufficient_quota"),
            "provider_quota",
            False,
        ),
        (400, said("Your credit balance is too low"), "provider_quota", False),
        (402, said("Payment required"), "provider_quota", False),
        (408, "", "provider_overloaded", True),
        (500, "<html>oops</html>", "provider_overloaded", True),
        (503, {"message": "loading model"}, "provider_overloaded", True),
        (529, said("Overloaded", type="overloaded_error"), "provider_overloaded", True),
        (302, "", "provider_bad_request", False),
        (None, said("Overloaded", type="overloaded_error"), "provider_overloaded", True),
        (None, said("internal", type="api_error"), "provider_overloaded", True),
        (None, said("slow down", type="rate_limit_error"), "provider_rate_limited", True),
        (None, said("no", type="invalid_request_error"), "provider_bad_request", False),
        (None, said("bad", code=400), "provider_bad_request", False),
        (None, said("busy", code=502), "provider_overloaded", True),
        (None, {"error": "something broke"}, "provider_overloaded", True),
    ],
)
def test_each_refusal_has_its_code(
    status: int | None, body: Any, code: str, transient: bool
) -> None:
    error = refusal(API, "gpt-x", body, status=status)
    assert (error.code, error.transient) == (code, transient)
    assert error.message
    assert error.hint


def test_a_rate_limit_that_counts_tokens_is_no_refusal_for_length() -> None:
    body = said("Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, Used 29000")
    assert refusal(API, "gpt-x", body, status=429).code == "provider_rate_limited"


def test_the_words_say_which_setting_to_look_at() -> None:
    assert "OPENAI_API_KEY" in refusal(API, "m", "", status=401).hint
    unknown = refusal(API, "gpt-x", "", status=404)
    assert "gpt-x" in unknown.message
    assert "openai:NAME" in unknown.hint


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_the_key_is_not_repeated_even_where_the_words_are_cut(status: int) -> None:
    for padding in (0, MAX_WORDS - len(KEY) // 2 - 30, MAX_WORDS - len(KEY) // 2):
        error = refusal(API, "m", said("x" * padding + f" key {KEY} is bad"), status=status)
        shown = f"{error.as_dict()} {error!r}"
        assert KEY[:9] not in shown
        assert len(error.message) < MAX_WORDS + 200
    assert KEY not in repr(API)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert parse_retry_after(headers, now=NOW) == seconds


def test_a_provider_may_say_whether_to_retry() -> None:
    no, yes = {"x-should-retry": "false"}, {"x-should-retry": "true"}
    assert not refusal(API, "m", "", status=500, headers=no).transient
    assert refusal(API, "m", "", status=409, headers=yes).transient
