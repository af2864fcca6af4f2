"""Tokens that say which they are and when they were sent.

A token is one word, `T` number `X` time, in base 36: letters and digits come unchanged through
markdown, HTML and JSON. Times are those of the monotonic clock, which all processes of a machine
share, in units of ten microseconds; they start again every ten minutes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_UNIT_NS = 10_000
_WRAP = 36**5
_TOKEN = re.compile(rb"T([0-9a-z]+)X([0-9a-z]+)")


def stamp() -> str:
    """This moment as it stands in a token."""
    return _base36(time.monotonic_ns() // _UNIT_NS % _WRAP)


def word(number: int, stamped: str) -> str:
    """Token `number` (from 0), sent at `stamped`."""
    return f"T{_base36(number)}X{stamped}"


def numbers(data: bytes) -> list[int]:
    """The numbers of all tokens in `data`, in order."""
    return [int(number, 36) for number, _ in _TOKEN.findall(data)]


def ages(data: bytes, after: int, seen_ns: int) -> Iterator[tuple[int, float]]:
    """Number and age in seconds of the tokens in `data` that are numbered above `after`.

    `seen_ns` is the time, by `time.monotonic_ns`, at which the data came.
    """
    seen = seen_ns // _UNIT_NS
    for digits, sent in _TOKEN.findall(data):
        number = int(digits, 36)
        if number > after:
            yield number, (seen - int(sent, 36)) % _WRAP * _UNIT_NS / 1e9


def _base36(value: int) -> str:
    digits = ""
    while True:
        value, digit = divmod(value, 36)
        digits = _DIGITS[digit] + digits
        if not value:
            return digits
