"""Failures of a model API in words: what happened, and what a person can do about it."""

from __future__ import annotations

import email.utils
import json
import math
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpcore
import httpx

from web.harness.providers.context_refusals import length_refusal
from web.harness.values.errors import ContextTooLong, PicturesRefused, ProviderError

MAX_WORDS = 500
"""Characters of a provider's own message that an error repeats."""

_QUOTA_WORDS = re.compile(r"insufficient_quota|exceeded your current quota|credit balance", re.I)
_UNKNOWN_MODEL_WORDS = re.compile(
    r"model_not_found|(?:unknown|invalid|unsupported|no such) model"
    r"|model\b.{0,120}\b(?:does not exist|not found|is not (?:supported|available|a valid))",
    re.I | re.S,
)
# What servers say whose model takes no pictures, or not these. Some only know texts as content;
# some want an assistant's words after a tool's, where this API has pictures of the tool.
_PICTURE_WORDS = re.compile(
    r"\bimages?\b|image_url|\bpictures?\b|\bvision\b|multi-?modal"
    r"|(?:must|should) be a (?:valid )?string|'user' after role 'tool'",
    re.I,
)
_OF_THE_ACCOUNT = frozenset({401, 402, 403, 429})
_PERMANENT_TYPES = frozenset(
    {"invalid_request_error", "not_found_error", "permission_error", "billing_error"}
)
_CONNECT_ERRORS = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ProxyError,
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
)
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Api:
    """What the words about one model API need: its host and the names of its settings."""

    provider: str
    host: str
    key_variable: str
    url_variable: str
    key: str | None = field(default=None, repr=False)

    def clean(self, text: str) -> str:
        """`text` without the key, on one line, of bounded length."""
        if self.key:
            text = text.replace(self.key, "[key]")
        text = " ".join(text.split())
        return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Said:
    """What an error body says: a type and a code for programs, a message for people."""

    type: str
    code: str
    message: str
    numbers: str = ""
    """Further fields that are numbers, such as the size of a context."""

    @property
    def all(self) -> str:
        return f"{self.type} {self.code} {self.message}"


def refusal(
    api: Api,
    model: str,
    body: Any,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    pictures: bool = False,
) -> ProviderError:
    """The error for an answer with an error status, or (status None) for one in mid-stream.

    `body` is the decoded JSON of the answer, or its text. A status that a mid-stream error carries
    in its code is used as one. With `pictures` in the request it may be PicturesRefused.
    """
    said = _said(body)
    if pictures and _blames_pictures(said, status):
        return PicturesRefused(
            f"{api.host} did not take the pictures of this request"
            f"{_status(status)}{_quoted(api.clean(said.message))}",
            hint="Choose a model that takes pictures, or send the message without them.",
        )
    if status is None and said.code.isdecimal():
        status = int(said.code)
    retry_after = parse_retry_after(headers or {}, now=time.time())
    error = _known_refusal(api, model, said, status, retry_after)
    if error is not None:
        return error
    words = api.clean(said.message)
    if status == 413:
        return ProviderError(
            f"The request has too many bytes for {api.host}{_status(status)}{_quoted(words)}",
            hint="Send less at once, start a new chat, or raise the limit of the server or of the "
            "proxy before it.",
            code="provider_bad_request",
        )
    if not _may_pass(said, status, headers or {}):
        return ProviderError(
            f"{api.host} refused the request{_status(status)}{_quoted(words)}",
            hint="The same request would be refused again; change what the message names.",
            code="provider_bad_request",
        )
    if status == 429 or "rate_limit" in said.all:
        return ProviderError(
            f"{api.host} is limiting requests{_status(status)}{_quoted(words)}",
            hint="Wait a moment and send the message again.",
            code="provider_rate_limited",
            transient=True,
            retry_after=retry_after,
        )
    return ProviderError(
        f"{api.host} failed to answer{_status(status)}{_quoted(words)}",
        hint="The trouble is at the provider; try again in a moment.",
        code="provider_overloaded",
        transient=True,
        retry_after=retry_after,
    )


def _blames_pictures(said: _Said, status: int | None) -> bool:
    """Whether a request may go through without its pictures."""
    return status == 413 or (
        status not in _OF_THE_ACCOUNT and _PICTURE_WORDS.search(said.all) is not None
    )


def _known_refusal(
    api: Api, model: str, said: _Said, status: int | None, retry_after: float | None
) -> ProviderError | None:
    """The error for the refusals that a person can do something about."""
    quoted = _status(status) + _quoted(api.clean(said.message))
    too_long = length_refusal(f"{said.all} {said.numbers}", status)
    if too_long is not None:
        return ContextTooLong(
            f"The conversation is too long for {model}{quoted}",
            hint="Start a new chat, or choose a model with a larger context.",
            limit=too_long.limit,
            counted=too_long.counted,
        )
    if status == 402 or _QUOTA_WORDS.search(said.all):
        return ProviderError(
            f"The account at {api.host} has no credit left{quoted}",
            hint=f"Check the plan and billing of the account that {api.key_variable} belongs to.",
            code="provider_quota",
            retry_after=retry_after,
        )
    if status == 404 or (status != 429 and _UNKNOWN_MODEL_WORDS.search(said.all)):
        return ProviderError(
            f"{api.host} knows no model '{api.clean(model)}'{quoted}",
            hint=f"Choose a model that this server offers, as {api.provider}:NAME. If the name is "
            f"right, check the address in {api.url_variable}.",
            code="provider_unknown_model",
        )
    if status in (401, 403) or said.type == "authentication_error":
        return ProviderError(
            f"{api.host} refused the API key{quoted}"
            if api.key
            else f"{api.host} wants an API key, and none is set{quoted}",
            hint=f"Set {api.key_variable} to a key that is valid for {api.host}{_again(api)}.",
            code="provider_auth",
        )
    if status is not None and 300 <= status < 400:
        return ProviderError(
            f"{api.host} sends requests on to another address{quoted}",
            hint=f"Set {api.url_variable} to the final address of the API.",
            code="provider_bad_request",
        )
    return None


def _again(api: Api) -> str:
    """A variable is read at the start alone; an argument is not called by a name in capitals."""
    return ", then restart" if api.key_variable.isupper() else ""


def broken_stream(api: Api, why: str) -> ProviderError:
    """A stream that ended early or cannot be read."""
    return ProviderError(
        f"The answer of {api.host} broke off: {api.clean(why)}.",
        hint="Send the message again.",
        code="provider_stream_broken",
        transient=True,
    )


def stalled(api: Api, seconds: float) -> ProviderError:
    """A server that has sent nothing for `seconds`."""
    return ProviderError(
        f"{api.host} has sent nothing for {seconds:g} seconds.",
        hint="Send the message again; if it stays silent, check the server or its status page.",
        code="provider_stalled",
        transient=True,
    )


def no_model_api(api: Api) -> ProviderError:
    """A web page where the answer of a model should be."""
    return ProviderError(
        f"{api.host} answered with a web page, not with a model's answer.",
        hint=f"Check the address in {api.url_variable}; it usually ends in /v1.",
        code="provider_bad_request",
    )


def closed(api: Api) -> ProviderError:
    """A stream of a provider that is closed."""
    return ProviderError(
        f"The connection to {api.host} was closed by this program.", code="provider_closed"
    )


def transport_error(api: Api, error: Exception, stall_seconds: float) -> ProviderError:
    """The error for a failure of the network."""
    if isinstance(error, (httpx.ReadTimeout, httpcore.ReadTimeout)):
        return stalled(api, stall_seconds)
    if isinstance(error, _CONNECT_ERRORS):
        return _unreachable(api, error)
    return broken_stream(api, str(error) or "the connection was lost")


def _unreachable(api: Api, error: Exception) -> ProviderError:
    certificate = _cause(error, ssl.SSLCertVerificationError)
    if certificate is not None:
        return ProviderError(
            f"The certificate of {api.host} is not trusted: {api.clean(str(certificate))}",
            hint="Check the address, or make the certificate known to this machine "
            "(SSL_CERT_FILE names a file of trusted ones).",
            code="provider_unreachable",
        )
    if isinstance(error, (httpx.ConnectTimeout, httpcore.ConnectTimeout)):
        why = "it did not answer in time"
    else:
        why = api.clean(str(_cause(error, OSError) or error)) or "no connection"
    return ProviderError(
        f"Could not reach {api.host}: {why}.",
        hint=f"Check that the server runs, that the network is up and that {api.url_variable} "
        "is right.",
        code="provider_unreachable",
        transient=True,
    )


def parse_retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or an HTTP date).

    `now` is seconds since the epoch. None if the server named none that can be understood.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _seconds(text)
    if seconds is not None or not text:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _may_pass(said: _Said, status: int | None, headers: Mapping[str, str]) -> bool:
    """Whether the same request may succeed later."""
    advice = headers.get("x-should-retry", "").lower()
    if advice in ("true", "false"):
        return advice == "true"
    if status is None:
        return said.type not in _PERMANENT_TYPES and said.code not in _PERMANENT_TYPES
    return status >= 500 or status in _TRANSIENT_STATUS


def _said(body: Any) -> _Said:
    """Finds type, code and message in the error bodies that servers are known to send."""
    if isinstance(body, str):
        try:
            return _said(json.loads(body))
        except (ValueError, RecursionError):
            return _Said("", "", "" if body.lstrip().startswith("<") else body)
    if isinstance(body, list) and body:
        return _said(body[0])
    if not isinstance(body, dict):
        return _Said("", "", "" if body is None else str(body))
    inner = body.get("error")
    if isinstance(inner, dict):
        body = inner
    elif isinstance(inner, str):
        return _Said(_word(body.get("type")), _word(body.get("code")), inner)
    message = body.get("message") or body.get("detail") or body.get("msg") or ""
    if not isinstance(message, str):
        message = json.dumps(message)
    numbers = " ".join(f"{key}={value}" for key, value in body.items() if isinstance(value, int))
    return _Said(_word(body.get("type")), _word(body.get("code")), message, numbers)


def _word(value: Any) -> str:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _cause(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """The deepest error of `kind` that led to `error`."""
    found = None
    while error is not None:
        if isinstance(error, kind):
            found = error
        error = error.__cause__ or error.__context__
    return found


def _status(status: int | None) -> str:
    return "" if status is None else f" ({status})"


def _quoted(words: str) -> str:
    return f": {words}" if words else "."
