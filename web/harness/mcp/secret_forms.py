"""How a secret may stand in a text: as it is, or escaped in a way that is easily undone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote

CONCEALED = "[secret]"
SHORTEST_SECRET = 6
"""Shorter values are words such as `true`, which a text must be able to hold."""

_UNSEEN = re.compile(r"[\x00-\x1f\x7f]+")


def without(text: str, forms: Iterable[str]) -> str:
    """The text with each of these concealed; the longest must come first."""
    for form in forms:
        if form in text:
            text = text.replace(form, CONCEALED)
    return text


def forms_of(secrets: Iterable[str]) -> list[str]:
    """All the ways in which these may stand in a text, the longest first."""
    forms = {form for secret in secrets for form in _forms(secret)}
    return sorted(forms, key=len, reverse=True)


@lru_cache(maxsize=512)
def _forms(secret: str) -> tuple[str, ...]:
    """How a secret may stand in a text: as it is, escaped in some way, and its longer lines."""
    plain = {secret, unquote(secret), *_UNSEEN.split(secret)}
    forms = {form for each in plain if len(each) >= SHORTEST_SECRET for form in _escaped(each)}
    return tuple(forms)


def _escaped(text: str) -> Iterator[str]:
    yield text
    if text.isalnum() and text.isascii():
        return
    for written in (repr(text), repr(text.encode(errors="replace"))[1:], json.dumps(text)):
        yield written[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield quote(text, safe="", errors="replace")
    yield quote_plus(text, errors="replace")
