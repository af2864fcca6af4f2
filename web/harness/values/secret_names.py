"""Secrets are never written down: what by its name is a key, a token or a password, and texts that
are plainly keys.

The one rule for all that a snapshot holds beside its messages. A name counts whatever its
spelling: `api_key`, `API-Key`, `apiKey`. Under such a name numbers, true, false and null are no
secret (`token: 5`), and neither is an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from web.harness.values.errors import ConfigurationError
from web.harness.values.escaped_text import Unescaped

_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")

_ALONE = frozenset(
    (
        *("apikey", "apikeys", "authorization", "bearer", "credential", "credentials"),
        *("passphrase", "password", "passwords", "passwd", "secret", "secrets"),
    )
)
_LAST = frozenset(["token", "apitoken", "accesstoken", "authtoken"])
"""Of a name with several words these count at its end alone: `access_token`, not `token_count`."""
_KEYS = frozenset(["api", "access", "private", "secret", "signing", "encryption", "auth"])
"""Before `key` or `keys`, or `tokens`."""

_NAME_CHARS = 80

_LOOKS_LIKE_ONE = re.compile(
    r"(?:[sr]k[-_](?:live|test|proj|ant|or)[-_]\w\S{3,}|sk-\w{20,}|gh[pousr]_\w{20,}"
    r"|github_pat_\w{20,}|glpat-\S{16,}|xox[a-z]-\S{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}"
    r"|Bearer \S{8,})\s*"
)


def is_secret_name(name: str) -> bool:
    return _known(name) if len(name) <= _NAME_CHARS else _is_one(name)


def _is_one(name: str) -> bool:
    words = [word.lower() for word in _WORD_ENDS.split(name) if word]
    if not words:
        return False
    if _ALONE.intersection(words) or words[-1] in _LAST:
        return True
    pairs = pairwise(words)
    return any(one in _KEYS and other in ("key", "keys", "tokens") for one, other in pairs)


_known = lru_cache(4_096)(_is_one)
"""The same few names come again and again."""


def refuse_secrets(value: Any, where: str) -> None:
    """Raises ConfigurationError for a JSON value that holds a secret; `where` names the value."""
    if isinstance(value, str):
        if _LOOKS_LIKE_ONE.fullmatch(value):
            raise _refusal(f"{where} is a text that looks like a key")
    elif isinstance(value, list):
        for at, each in enumerate(value):
            refuse_secrets(each, f"{where}[{at}]")
    elif isinstance(value, dict):
        for name, each in value.items():
            path = f"{where}.{name[:80]}" if where else name[:80]
            if is_secret_name(name) and _says_something(each):
                raise _refusal(f"{path} looks like a secret")
            refuse_secrets(each, path)


def _says_something(value: Any) -> bool:
    """Whether there is a text in it."""
    if isinstance(value, dict):
        return any(map(_says_something, value.values()))
    if isinstance(value, list):
        return any(map(_says_something, value))
    return isinstance(value, str) and value != ""


def _refusal(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what}, which is never written down.",
        hint="Give keys to the provider and to tools. Where it is none, give it another name. "
        "Nothing was read or written.",
    )


LEFT_OUT = "[left out: it looks like a secret]"

ESCAPED_LEVELS = 8
"""How deep JSON within JSON within a text is looked into; no program nests it as deep."""

_KEY = _LOOKS_LIKE_ONE.pattern.replace(r"\S", r"[\w.~+/=-]").removesuffix(r"\s*")
_INSIDE = re.compile(rf"(?<![^\W_]){_KEY}")

_NAME = re.compile(r"(?<![\w-])([A-Za-z_][\w-]{2,79})[\"']?[ \t]{0,3}[=:][ \t]{0,3}")
_VALUE = re.compile(
    r"\"((?:[^\"\\\n]|\\.)+)|'((?:[^'\\\n]|\\.)+)"
    r"|((?:(?:Basic|Bearer|Token) +)?(?:[^\s,;\"'()\\]|\\++(?![\"']))+)"
)
"""A name and its value as people, shells and files write them: `NAME=value`, `name: "value"`, also
where the end of the value was cut off."""
_PLAIN = re.compile(
    r"[\d.]+|(?:str|string|int|float|bool|bytes|any|object|true|false|null|none)", re.IGNORECASE
)
"""Numbers and the like are no secret, and neither is the type of a parameter in code."""


def without_secrets(value: Any) -> Any:
    """The same JSON value with `LEFT_OUT` in place of every secret: of the texts under a name that
    is one's, and in any other text of what looks like a key or is given as the value of such a
    name, also in JSON that stands in it as a text, escaped once or several times."""
    if isinstance(value, str):
        return _without(value)
    if isinstance(value, list):
        return [without_secrets(each) for each in value]
    if isinstance(value, dict):
        return {
            name: _hidden(each) if is_secret_name(name) else without_secrets(each)
            for name, each in value.items()
        }
    return value


def _without(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in sorted(_secrets_in(text, ESCAPED_LEVELS)):
        if start >= done:
            pieces += text[done:start], LEFT_OUT
        done = max(done, end)
    return "".join((*pieces, text[done:])) if pieces else text


def _secrets_in(text: str, levels: int) -> Iterator[tuple[int, int]]:
    """Where secrets begin and end; they may overlap."""
    for found in _INSIDE.finditer(text):
        yield found.span()
    done = 0
    for found in _NAME.finditer(text):
        # What looks like a name within a value is left out with it.
        if found.start() < done or not is_secret_name(found[1]):
            continue
        value = _VALUE.match(text, found.end())
        if value is not None and not _says_nothing(value[value.lastindex or 0]):
            start, done = value.span(value.lastindex or 0)
            yield start, done
    if levels and "\\" in text:
        inner = Unescaped(text)
        if len(inner.text) < len(text):
            for start, end in _secrets_in(inner.text, levels - 1):
                yield inner.place(start), inner.place(end)


def _says_nothing(value: str) -> bool:
    return _PLAIN.fullmatch(value) is not None or value.startswith(LEFT_OUT.split()[0])


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _hidden(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_hidden(each) for each in value]
    return LEFT_OUT if isinstance(value, str) and value else value
