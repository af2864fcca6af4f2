"""What goes through Temporal: ids, numbers and control states; texts travel in the database."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Any, Literal

from web.harness.values.errors import LimitExceeded

MAX_BYTES = 90_000
"""Of one payload, in the end: the loop's states and outcomes are far below."""

PACK_ABOVE = 8_000
"""Characters; what is longer is compressed."""

_PACKED = "z:"

What = Literal["model", "condense", "tool", "cancel", "answers", "finish"]
"""One action on a run that a worker has: see `Claim.perform`."""


@dataclass(frozen=True, slots=True)
class Times:
    """In seconds. A worker that tells nothing for `heartbeat`, or takes up nothing for `start`, is
    given up. `patience` is the longest pause before the run is offered to a worker again."""

    heartbeat: float = 10.0
    start: float = 10.0
    patience: float = 60.0


HERE = Times(heartbeat=15.0, start=120.0)
"""Of a run that one process alone can perform. Its next process says so when it takes the run, and
until then nobody else could: that there is one that takes up nothing is borne for long. What ended
while Temporal could not be told is asked for after `heartbeat`."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A history beyond these goes on in a new one; Temporal ends one at 51,200 events or 50 MB."""

    events: int = 4_000
    bytes: int = 4_000_000


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker has the run: `queue` is its own, `fence` its claim's, `state` packed.

    `known` counts the outcomes of this claim that the state includes. With `kept` the worker had it
    all the time, and calls go on that were begun before it was given up.
    """

    queue: str
    fence: int
    state: str
    known: int = 0
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """What a workflow begins with; `claimed` and `told` where it goes on from another history.
    `before` is `Turn.answers_before`."""

    run_id: str
    queue: str
    times: Times = field(default_factory=Times)
    bounds: Bounds = field(default_factory=Bounds)
    claimed: Claimed | None = None
    told: tuple[str, ...] = ()
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One action for the worker that has the run. `known` are the outcomes that need no telling."""

    run_id: str
    fence: int
    what: What
    call_id: str = ""
    known: int = 0


@dataclass(frozen=True, slots=True)
class News:
    """Outcomes of a claim, packed, from number `first` (0, 1, ...) on; `paused` where the run was
    stopped on purpose, `leaving` where the worker ends and wants another to have the run."""

    first: int
    outcomes: str
    paused: bool = False
    leaving: bool = False


def packed(value: Any) -> str:
    """JSON in few bytes. Raises LimitExceeded for what stays longer than `MAX_BYTES`."""
    text = json.dumps(value, separators=(",", ":"))
    if len(text) > PACK_ABOVE:
        text = _PACKED + base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    if len(text) > MAX_BYTES:
        raise LimitExceeded(
            f"What a workflow has to know of this run takes {len(text):,} bytes; at most "
            f"{MAX_BYTES:,} are taken.",
            hint="It has too many calls at a time.",
        )
    return text


def unpacked(text: str) -> Any:
    if text.startswith(_PACKED):
        text = zlib.decompress(base64.b85decode(text[len(_PACKED) :])).decode()
    return json.loads(text)
