"""The kinds of part that show the files of a chat.

Paths in here are a stranger's words, on one line. A `card` is the id of the part that shows the
call which made something, '' where there is none (any more).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Made:
    """Who made a version, in `words`. `detail` names the call and the approval, for those who look
    closer."""

    words: str
    detail: str = ""
    card: str = ""


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """One version of a file. `gone` is one in which it was deleted, `current` the file as it is.

    `size` is in bytes, `at` in seconds since 1970.
    """

    number: int
    sha256: str
    size: int
    at: float
    made: Made
    gone: bool
    current: bool


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file of a chat. `versions` are the newest of the `kept` ones, newest first."""

    kind: ClassVar[str] = "file"
    path: str
    size: int
    changed_at: float
    media_type: str
    sha256: str
    made: Made
    kept: int
    versions: tuple[ShownVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A file that was deleted and can be brought back, as it was in version `number`."""

    path: str
    at: float
    made: Made
    number: int


@dataclass(frozen=True, slots=True)
class FilesFoot:
    """What else there is to say of a chat's files: all of them count, not only those shown.

    `bytes` is the size of all, `left_out` counts what lies in the folder and cannot be used, of
    which some are `named`, each with why. `more`
    says that there are more than can be listed. `gone` are the files deleted last, of `gone_count`.
    `waiting` says that nobody has looked yet, `fault` why nobody could; the rest is then as it was
    when somebody last could.
    """

    kind: ClassVar[str] = "files_foot"
    count: int
    bytes: int
    shown: int
    left_out: int = 0
    named: tuple[tuple[str, str], ...] = ()
    more: bool = False
    waiting: bool = False
    fault: str = ""
    gone: tuple[GoneFile, ...] = ()
    gone_count: int = 0


FileData = ShownFile | FilesFoot
