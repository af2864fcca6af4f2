"""Names for files that a person brings in: made legal, and made free where one is taken."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from web.harness.builtin.paths import MAX_NAME_BYTES, folded, parse_path
from web.harness.values.errors import ToolError
from web.harness.values.text import sayable

NO_NAME = "file"

_PREFIX = "file-"
"""Before a name that is legal letter by letter, but means something of its own."""

_ROOM_BYTES = 12
"""For the prefix, and for the number of a name that is taken."""
_MAX_ENDING_CHARS = 16
_MOST = 10_000


def legal_name(name: str) -> str:
    """The last name of a path that a stranger wrote, as a file can be called. Never fails."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", sayable(name)))[-1]
    plain = "".join(map(_legal, last))
    stem, ending = _parts(" ".join(plain.split()).rstrip(" ."))
    room = MAX_NAME_BYTES - _ROOM_BYTES - len(ending.encode())
    plain = stem.encode()[:room].decode(errors="ignore").rstrip(" .") + ending or NO_NAME
    for candidate in (plain, _PREFIX + plain):
        try:
            return "/".join(parse_path(candidate))
        except ToolError:
            continue
    return NO_NAME


def title_name(title: str) -> str:
    """A title as a file can be called: all of it, with a dash for each slash. Never fails."""
    return legal_name(re.sub(r"\s*[/\\]+\s*", "-", title))


def free_names(name: str, paths: Iterable[str]) -> Iterator[str]:
    """`name`, `name-2`, ... without those that some disk would take for one of `paths`."""
    taken = {folded(way) for path in paths for way in _ways(path)}
    stem, ending = _parts(name)
    for number in range(1, _MOST):
        candidate = name if number == 1 else f"{stem}-{number}{ending}"
        if folded(candidate) not in taken:
            yield candidate


def _parts(name: str) -> tuple[str, str]:
    """A name without its ending, and the ending with its dot."""
    stem, dot, ending = name.rpartition(".")
    if not stem or not ending or len(ending) > _MAX_ENDING_CHARS:
        return name, ""
    return stem, dot + ending


def _ways(path: str) -> Iterator[str]:
    names = path.split("/")
    return ("/".join(names[: depth + 1]) for depth in range(len(names)))


@lru_cache(maxsize=4096)
def _legal(character: str) -> str:
    """The character, or what stands for one that no path may hold."""
    try:
        parse_path(f"a{character}a")
    except ToolError:
        category = unicodedata.category(character)
        if category in ("Cc", "Zl", "Zp"):
            return " "
        return "" if category == "Cf" or character == "\ufffd" else "-"
    return character
