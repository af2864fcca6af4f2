"""For whom a call to a server is made, where several people share a connection."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_whose: ContextVar[Hashable] = ContextVar("mcp_caller", default=None)


@contextmanager
def calling_for(whose: Hashable) -> Iterator[None]:
    """The calls that are made inside are that person's."""
    token = _whose.set(whose)
    try:
        yield
    finally:
        _whose.reset(token)


def caller() -> Hashable:
    """Whose call is being made; None where nobody said."""
    return _whose.get()
