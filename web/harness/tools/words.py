"""Words about values: shortened, made safe to encode, with near names."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable

from web.harness.values.errors import HarnessError

MAX_ERROR_CHARS = 2000
"""The longest error text a model is sent."""


def clean(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 encoder takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters; the last one is an ellipsis where some are missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown(value: object, limit: int = 80) -> str:
    """A value as JSON for an error text, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return clean(shorten(text, limit))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`" Did you mean 'a' or 'b'?"`, or '' when nothing is near."""
    known = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(name[:200].casefold(), known, n=3, cutoff=0.6)
    if not near:
        return ""
    return " Did you mean " + " or ".join(f"'{known[match]}'" for match in near) + "?"


def describe(error: BaseException) -> str:
    """What a model is told of an exception: its words, for a foreign one with its type."""
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, HarnessError):
        text = f"{text} {error.hint}" if error.hint else text
    else:
        name = type(error).__name__
        text = f"{name}: {text}" if text else name
    return clean(shorten(text, MAX_ERROR_CHARS))
