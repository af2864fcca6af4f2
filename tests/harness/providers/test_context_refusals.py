"""A refusal for length is known by the words of the servers that there are, and tells the limit."""

from __future__ import annotations

from typing import Any

import pytest

from web.harness.providers.failures import Api, refusal
from web.harness.values.errors import ContextTooLong, ProviderError

API = Api("openai", "api.example.com", "KEY", "URL")

REFUSALS: list[tuple[str, int | None, int | None]] = [
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9000 tokens. Please reduce the length of the messages.",
        8192,
        9000,
    ),
    (
        "This model's maximum context length is 4097 tokens, however you requested 5000 tokens "
        "(4000 in the messages, 1000 in the completion). Please reduce the length.",
        4097,
        4000,
    ),
    (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
        "in total (4000 in the messages, 1000 in the completion).",
        4096,
        4000,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context "
        "length is 4096 tokens and your request has 51 input tokens (8192 > 4096 - 51).",
        4096,
        51,
    ),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
        "300000 tokens. Please reduce the length of the messages.",
        272_000,
        300_000,
    ),
    (
        "Your input exceeds the context window of this model. Please adjust your input.",
        None,
        None,
    ),
    (
        "the request exceeds the available context size. try increasing the context size",
        None,
        None,
    ),
    (
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
        9000,
    ),
    (
        "However, the model is loaded with context length of only 4096 tokens, which is not "
        "enough. Try to load the model with a larger context length.",
        4096,
        None,
    ),
    ("the input length exceeds the context length", None, None),
    (
        "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        32_768,
        33_000,
    ),
    (
        "Please reduce the length of the messages or completion. Current length is 9000 while "
        "limit is 8192",
        8192,
        9000,
    ),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
        1_200_000,
    ),
    (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        "140000 tokens (139000 of text input, 1000 in the output).",
        131_072,
        139_000,
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        131_072,
        140_000,
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 "
        "`inputs` tokens and 512 `max_new_tokens`",
        4097,
        5000,
    ),
    (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
        4081,
        5000,
    ),
    (
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        4096,
        5000,
    ),
    (
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You "
        "requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens "
        "for the completion.",
        4096,
        4000,
    ),
    ("The prompt is too long: 140000, model maximum context length: 131071", 131_071, 140_000),
    ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
    (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
        "input length or `max_tokens` and try again",
        200_000,
        188_240,
    ),
    ("Input is too long for requested model.", None, None),
    ("maximum context length is 128,000 tokens", 128_000, None),
    (
        "Request too large for gpt-x in organization org on tokens per min (TPM): Limit 6000, "
        "Requested 9000. The input or output tokens must be reduced.",
        6000,
        None,
    ),
]


def error_of(message: str, status: int | None = 400, **more: Any) -> Exception:
    return refusal(API, "m", {"error": {"message": message, **more}}, status=status)


@pytest.mark.parametrize(("message", "limit", "counted"), REFUSALS)
def test_a_refusal_for_length_tells_the_limit(
    message: str, limit: int | None, counted: int | None
) -> None:
    error = error_of(message)
    assert isinstance(error, ContextTooLong)
    assert (error.code, error.transient) == ("context_too_long", False)
    assert (error.limit, error.counted) == (limit, counted)


def test_numbers_beside_the_message_tell_it_too() -> None:
    words = "the request exceeds the available context size. try increasing the context size"
    error = error_of(words, n_prompt_tokens=9000, n_ctx=4096, type="exceed_context_size_error")
    assert isinstance(error, ContextTooLong)
    assert (error.limit, error.counted) == (4096, 9000)


def test_a_code_alone_is_enough_and_so_are_tokens_in_a_body_that_is_too_large() -> None:
    assert isinstance(error_of("no", code="context_length_exceeded"), ContextTooLong)
    assert isinstance(error_of("The request has too large a number of tokens", 413), ContextTooLong)
    assert isinstance(error_of("prompt is too long: 9 tokens > 8 maximum", None), ContextTooLong)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000", 429),
        (
            "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for m",
            400,
        ),
        ("This request has invalid context in its messages", 400),
        ("You exceeded your current quota of 100000 tokens", 429),
        ("The tool result is missing in the conversation context", 400),
        ("Too many tokens, please wait before trying again.", 429),
        ("Too many tokens, please wait before trying again.", None),
        ("Too many tokens per day, please wait before trying again.", 429),
        ("This request would exceed your rate limit of 40,000 input tokens per minute", 429),
        ("Payload too large: nginx", 413),
        ("Request exceeds the maximum size", 413),
        ("Request too large: images exceed 20 MB", 413),
        ("The number of tokens exceeds the maximum output tokens of 4096", 400),
        ("max_tokens is too large: 100000. At most 16384 completion tokens are supported", 400),
        ("input is too long for field 'user': maximum 64", 400),
        ("Invalid 'input': input is too long. Maximum string length is 10485760", 400),
    ],
)
def test_other_refusals_that_speak_of_tokens_or_context_are_none(
    message: str, status: int | None
) -> None:
    assert not isinstance(error_of(message, status), ContextTooLong)


def test_a_body_of_too_many_bytes_says_so() -> None:
    error = error_of("Payload too large: nginx", 413)
    assert isinstance(error, ProviderError)
    assert (error.code, error.transient) == ("provider_bad_request", False)
    assert "bytes" in error.message
    assert "proxy" in error.hint


def test_a_number_that_no_context_has_is_not_taken() -> None:
    error = error_of("maximum context length is 99999999999999999999 tokens")
    assert isinstance(error, ContextTooLong)
    assert error.limit is None
