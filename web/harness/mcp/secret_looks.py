"""What in an address or in the arguments of a command looks like a secret.

Nobody says which it is, so it is told by its looks: by the name before it, by the form that a
vendor gives its keys, or by being long and random. Words, versions, paths and numbers are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

LEFT_OUT = "…"
"""Stands in an address for what is not shown."""

SHORTEST = 6
"""Under a name that is a secret's, a shorter value is a word."""

_NAME = re.compile(
    r"api.?keys?|(?:^|[^a-z])keys?$|(?<![a-z])key(?![a-z])|token|secret|pass(?:word|wd|phrase|code)?$"
    r"|pwd|auth(?!or)|bearer|credential|cookie|signature|(?:^|[^a-z])sig$",
    re.I,
)
_VENDORS = re.compile(
    r"(?:[srp]k[-_](?:live|test|proj|ant|or|svcacct)[-_]|sk-|whsec_|gh[pousr]_|github_pat_|glpat-"
    r"|xox[a-z]-|xapp-|hf_|npm_|pypi-|dop_v1_|shpat_|ya29\.|SG\.|lin_api_|ntn_|pat-|key-|r8_"
    r"|AKIA|ASIA|AIza|eyJ)[\w.~+/=-]{8,}"
)
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.I)
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_DIGEST = re.compile(r"sha(?:256|512):[0-9a-f]+", re.I)
_PAIR = re.compile(r"([\w.-]+)(?:=|:(?!//)\s*)(.+)", re.S)
_SCHEME = re.compile(r"(?:bearer|basic|token)\s+(\S{6,})", re.I)
_USER = re.compile(r"//([^/@\s]+)@")
_TURN = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")
_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")


def secrets_of_path(path: str) -> list[str]:
    """The pieces of an address' path that look like secrets, as they stand there."""
    found: list[str] = []
    named = False
    for piece in path.split("/"):
        plain = unquote(piece)
        name, value = _pair(plain)
        is_named = named and len(piece) >= SHORTEST and not piece.isalpha()
        if is_named or looks_secret(plain) or (_is_name(name) and len(value) >= SHORTEST):
            found.append(piece)
        named = _is_name(plain)
    return found


def without_secrets_of_path(path: str) -> str:
    hidden = set(secrets_of_path(path))
    return "/".join(LEFT_OUT if each in hidden else each for each in path.split("/"))


def secrets_of_arguments(arguments: Sequence[str]) -> list[str]:
    """The same of a command's arguments: of `--token=x`, `TOKEN=x` and `--header "Key: x"` the
    value, of `--token x` the next argument."""
    found: list[str] = []
    named = False
    for argument in arguments:
        if named and not argument.startswith("-") and len(argument) >= SHORTEST:
            found.append(argument)
        else:
            found += _secrets_of(argument)
        named = argument.startswith("-") and "=" not in argument and _is_name(argument)
    return found


def looks_secret(word: str) -> bool:
    """Whether a word is a key as vendors write them, or is long and random."""
    if _DIGEST.search(word):
        return False
    if _VENDORS.search(word) or _UUID.search(word):
        return True
    return any(_is_random(run[0]) for run in _RUN.finditer(word))


def _secrets_of(argument: str) -> Iterator[str]:
    for user in _USER.finditer(argument):
        yield user[1].partition(":")[2] or user[1]
    scheme = _SCHEME.search(argument)
    if scheme is not None:
        yield scheme[1]
        return
    name, value = _pair(argument)
    if _is_name(name) and len(value) >= SHORTEST:
        yield value
    elif "://" in argument:
        # An address: of its path a piece, of its query a value.
        address, _, query = argument.partition("?")
        yield from secrets_of_path(address.partition("://")[2].partition("/")[2])
        for pair in query.split("&"):
            named, held = _pair(pair)
            if len(held) >= SHORTEST and (_is_name(named) or looks_secret(held)):
                yield held
    elif looks_secret(value or argument):
        yield value or argument


def _pair(text: str) -> tuple[str, str]:
    """Name and value of `name=value` or `name: value`; both '' where it is neither."""
    pair = _PAIR.fullmatch(text.lstrip("-"))
    return (pair[1], pair[2].strip()) if pair is not None else ("", "")


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 60 and _NAME.search(text) is not None


def _is_random(run: str) -> bool:
    """Letters and digits in a mix, or letters that change their case as no word does."""
    turns = len(_TURN.findall(run))
    if turns >= 3 or (turns and len(run) >= 24):
        return True
    return len(run) >= 20 and len(_CASE.findall(run)) >= len(run) / 3
