"""The versions of a file: what it was, and who made it so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from web.harness.builtin.rooted import Stamp
from web.harness.tools.tool import ToolContext
from web.harness.values.messages import JsonObject

OriginKind = Literal["call", "person", "restore", "outside"]
"""Who made a version: a tool's call, the person through the page, the person by restoring an older
one, or somebody with an editor, past this library."""

Deed = Literal["written", "edited", "deleted", "restored", "found"]
"""How a version came to be. One that was made past the tools was found: outside, or by a program
that a call ran."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made a version.

    `run_id` and `call_id` name the call. `approval` is the key of the question that let it run,
    and `decision` its answer; both are '' where nobody was asked.
    """

    kind: OriginKind
    run_id: str = ""
    call_id: str = ""
    approval: str = ""
    decision: str = ""


EARLIEST, LATEST = -62_000_000_000.0, 253_300_000_000.0
"""Times that every calendar has, in every time zone: the years 5 to 9996."""

_MOST = 2**53
"""Numbers up to this one are the same in every program that reads JSON."""

_DIGEST = re.compile(r"[0-9a-f]{64}|")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+|", re.ASCII)

OUTSIDE = Origin("outside")
PERSON = Origin("person")


def call_origin(context: ToolContext) -> Origin:
    """The call that a tool serves, and the approval that let it run."""
    return Origin("call", context.run_id, context.call_id, context.approval, context.decision)


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a file.

    Numbers count from 1 for each path and are never used again while a later version is kept.
    `sha256` is '' where the file was deleted. `size` is in bytes, `at` in seconds since 1970.
    `restored` is the number of the version that this one brought back, 0 for none.
    """

    number: int
    sha256: str
    size: int
    at: float
    media_type: str
    deed: Deed
    origin: Origin
    restored: int = 0

    @property
    def gone(self) -> bool:
        """Whether there is no file in this state."""
        return not self.sha256


@dataclass(slots=True)
class History:
    """The kept versions of one path, oldest first, and the stamp of the file as the last one was
    written."""

    versions: list[Version] = field(default_factory=list)
    stamp: Stamp | None = None

    @property
    def last(self) -> Version | None:
        return self.versions[-1] if self.versions else None

    @property
    def held_bytes(self) -> int:
        """The size of all versions that are not the file as it is now."""
        return sum(version.size for version in self.versions[:-1])

    def made_by(self, origin: Origin) -> Version | None:
        """The version that this very call has made already, when it is repeated after a crash."""
        if not origin.run_id or not origin.call_id:
            return None
        for version in reversed(self.versions):
            made = version.origin
            if (made.run_id, made.call_id) == (origin.run_id, origin.call_id):
                return version
        return None

    def is_all(self, sha256: str) -> bool:
        """Whether the person alone has made the versions, and all hold this, or are deletions."""
        return bool(self.versions) and all(
            version.origin.kind in ("person", "restore") and version.sha256 in (sha256, "")
            for version in self.versions
        )

    @property
    def next_number(self) -> int:
        return self.versions[-1].number + 1 if self.versions else 1

    def find(self, number: int) -> Version | None:
        return next((version for version in self.versions if version.number == number), None)


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file as it lies in the folder now.

    `size` is in bytes, `changed_at` in seconds since 1970. `versions` counts the kept ones. `last`
    is the version that the file is in, None where it was changed from outside since: that becomes
    a version as soon as somebody looks at the file's versions, or writes to it. `sha256` and
    `media_type` are '' of a very large file from outside whose content was not looked at yet.
    """

    path: str
    size: int
    changed_at: float
    sha256: str
    media_type: str
    versions: int
    last: Version | None


def version_data(version: Version) -> JsonObject:
    """The JSON shape of a version, as it is written down."""
    return asdict(version)


def read_version(data: JsonObject) -> Version:
    """A version from its JSON shape; what a later program has added to it is passed over.

    Raises KeyError, TypeError or ValueError for what is none.
    """
    return Version(
        number=whole(data["number"], 1),
        sha256=_fitting(data["sha256"], _DIGEST),
        size=whole(data["size"]),
        at=_time(data["at"]),
        media_type=_fitting(data["media_type"], _MEDIA_TYPE),
        deed=_one_of(data["deed"], Deed),
        origin=_read_origin(data["origin"]),
        restored=whole(data.get("restored", 0)),
    )


def _read_origin(data: JsonObject) -> Origin:
    return Origin(
        kind=_one_of(data["kind"], OriginKind),
        run_id=text(data.get("run_id", "")),
        call_id=text(data.get("call_id", "")),
        approval=text(data.get("approval", "")),
        decision=text(data.get("decision", "")),
    )


def whole(value: Any, least: int = 0) -> int:
    """A whole number as it was read from JSON. Raises TypeError or ValueError for another."""
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    if not least <= value <= _MOST:
        raise ValueError(f"{value} is out of range")
    return value


def text(value: Any) -> str:
    """The same of a text that can be written in UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    value.encode()
    return value


def in_calendar(at: float) -> float:
    """A time in seconds since 1970, or the nearest that can be written as a date."""
    return min(max(at, EARLIEST), LATEST)


def _time(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{value!r} is no number")
    if not (math.isfinite(value) and EARLIEST <= value <= LATEST):
        raise ValueError(f"{value} is no time")
    return float(value)


def _fitting(value: Any, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(text(value)):
        raise ValueError(f"{value!r} is out of place")
    return text(value)


def _one_of(value: Any, names: Any) -> Any:
    if value not in get_args(names):
        raise ValueError(f"{value!r} is not known")
    return value


def referenced(histories: dict[str, History]) -> Iterator[str]:
    """The digests of all content that some version holds, some of them more than once."""
    for history in histories.values():
        for version in history.versions:
            if version.sha256:
                yield version.sha256
