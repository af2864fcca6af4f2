"""SQL as the stores write it, in the form that each driver takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Dialect = Literal["sqlite", "postgresql"]

ROWS_AT_ONCE = 500
"""That a statement is done for before the event loop has its turn."""

_LIST = re.compile(r"IN :(\w+_list)\b")

_LISTED = {
    "sqlite": r"IN (SELECT value FROM json_each(:\1))",
    "postgresql": r"= ANY (CAST(:\1 AS text[]))",
}

_NAME = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")


@lru_cache(maxsize=256)
def with_lists(sql: str, dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """`IN :names` that end in `_list` stand for any number of texts. They are sent as one value, so
    that the statement is the same whatever their number, and need not be made again."""
    return _LIST.sub(_LISTED[dialect], sql), tuple(_LIST.findall(sql))


def sent(values: Mapping[str, Any], lists: Sequence[str], dialect: Dialect) -> Mapping[str, Any]:
    """The values with those lists as the statement of `with_lists` wants them."""
    form = json.dumps if dialect == "sqlite" else list
    return {**values, **{name: form(values[name]) for name in lists}} if lists else values


@lru_cache(maxsize=256)
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """With `$1` in the place of `:name`, and the names in that order."""
    names = tuple(dict.fromkeys(_NAME.findall(sql)))
    return _NAME.sub(lambda found: f"${names.index(found[1]) + 1}", sql), names


def in_pieces(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """All of them in order, as many at a time as make the event loop wait for nothing."""
    for at in range(0, len(values), ROWS_AT_ONCE):
        yield values[at : at + ROWS_AT_ONCE]
