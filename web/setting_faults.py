"""What is wrong with a setting, in words: what was given, and what is allowed."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from web.server_limits import ServerLimits

SHOWN_CHARS = 40
"""Of a value that is refused."""


def said_of(error: Any) -> str:
    """In words, without a full stop: the first of the errors of a `ValidationError`.

    Its value is repeated where it is that of a limit or a switch, and so no secret.
    """
    kind, path = error["type"], error["loc"]
    given = error["input"] if isinstance(error["input"], str | int | float) else None
    shown = "this" if given is None else f"'{str(given)[:SHOWN_CHARS]}'"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if path[0] == "limits":
        if kind == "extra_forbidden":
            return _no_limit(str(path[-1]))
        return f"{shown} is not allowed. A limit is a whole number, 1 or more"
    if kind.startswith("bool_"):
        return f"{shown} is neither on nor off. Write one of both"
    return str(error["msg"])


def _no_limit(name: str) -> str:
    close = get_close_matches(name.lower(), ServerLimits.model_fields, n=1)
    near = f" Did you mean {close[0].upper()}?" if close else ""
    return f"there is no limit of this name.{near} README lists them all"
