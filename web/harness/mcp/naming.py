"""Names of tools for models, made from what a server calls them.

A name depends on server and tool alone, so it is the same after a restart, in any order and
whatever else is connected: what a person allowed by name stays allowed for that tool, and a model
finds in old messages the names that it has now.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Container

MAX_NAME_CHARS = 64
MAX_SERVER_CHARS = 24
"""Of a name that has to be shortened; the tool says more than the server."""

_LEGAL = re.compile(r"[A-Za-z0-9_-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9-]+")
_LIKE_A_DIGEST = re.compile(r"_[0-9a-f]{8,}$")


def tool_name(server: str, tool: str, taken: Container[str] = ()) -> str:
    """`server__tool`: 1 to 64 of `A-Za-z0-9_-`, different for every pair of server and tool.

    Where something is lost on the way (other characters, too many, a name that another pair could
    have too), the name ends in a digest of the pair. `taken` are names it must not have, those of
    built-in tools say.
    """
    plain = f"{server}__{tool}"
    if _is_plain(server, tool) and len(plain) <= MAX_NAME_CHARS and plain not in taken:
        return plain
    digest = hashlib.sha256(json.dumps([server, tool]).encode()).hexdigest()
    start = f"{_cleaned(server, 'server')[:MAX_SERVER_CHARS].strip('_')}__"
    base = start + _cleaned(tool, "tool")
    for length in range(8, len(digest) - len(start)):
        name = f"{base[: MAX_NAME_CHARS - length - 1].rstrip('_')}_{digest[:length]}"
        if name not in taken:
            return name
    raise ValueError(f"no name is free for a tool of {server!r}")


def _is_plain(server: str, tool: str) -> bool:
    """Whether the pair can be read back from the two names joined by `__`."""
    return (
        _LEGAL.fullmatch(server) is not None
        and _LEGAL.fullmatch(tool) is not None
        and "__" not in server
        and not server.endswith("_")
        and _LIKE_A_DIGEST.search(tool) is None
    )


def _cleaned(name: str, instead: str) -> str:
    """The name in legal characters: letters without their accents, `_` for all else."""
    letters = unicodedata.normalize("NFKD", name[: 4 * MAX_NAME_CHARS])
    bare = "".join(char for char in letters if not unicodedata.combining(char))
    return _ILLEGAL.sub("_", bare).strip("_") or instead
