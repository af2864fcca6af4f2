"""What one transaction writes: the new events and steps of many runs, in order, fenced."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from web.harness.loop.state import RunState
from web.harness.sessions.event_log import LATE_EVENTS
from web.harness.sessions.journal import Step, StepKind
from web.harness.sessions.journal_form import ADDED, state_to_json, step_to_json
from web.harness.sessions.sql import event_rows, execution_rows
from web.harness.sessions.sql.database import Database, Transaction, Values
from web.harness.sessions.sql.event_rows import Piece, join_pieces
from web.harness.sessions.sql.execution_rows import Head
from web.harness.sessions.sql.rows import json_row
from web.harness.values.events import RunResult
from web.harness.values.json_form import NotSerialisable, fits, json_copy
from web.harness.values.messages import JsonObject

INLINE_CHARS = 50_000
"""Of a step; a longer one is made a text in a thread."""


logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Fence:
    """The right of this process to write a run, as `Executions.begin` gave it.

    `lost` when another has gone on with the run, `ended` once its result is written, `cut` when
    something was handed over after the log was closed.
    """

    number: int
    lost: bool = False
    ended: bool = False
    cut: bool = False


@dataclass(slots=True)
class StepPiece:
    """A step that waits to be written; `texts` makes its JSON, later for a large one: that takes a
    while."""

    at: float
    kind: StepKind
    form: JsonObject
    pictures: dict[str, bytes]
    state: RunState
    body: str = ""
    added: str | None = None

    @property
    def is_large(self) -> bool:
        return not fits(self.form, INLINE_CHARS)

    def texts(self) -> None:
        added = {name: self.form[name] for name in ADDED if name in self.form}
        self.added = json_row(added) if added else None
        self.body = json_row({name: each for name, each in self.form.items() if name not in ADDED})


def step_piece(at: float, step: Step, state: RunState) -> StepPiece:
    """Raises NotSerialisable. What could be changed later is copied."""
    pictures: dict[str, bytes] = {}
    form = step_to_json(step, pictures.__setitem__)
    piece = StepPiece(at, step.kind, form, pictures, state)
    # Whatever cannot be written is found here: in a batch it would stop the steps of all runs.
    try:
        if piece.is_large:
            json_copy(form, "A step")
        else:
            piece.texts()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerialisable(f"A step cannot be written: {error}.") from error
    return piece


Item = Piece | StepPiece


class Entry(NamedTuple):
    """What waits to be written, with its place among all that was ever handed over."""

    place: int
    run_id: str
    item: Item
    fence: Fence | None


@dataclass(slots=True)
class Part:
    """What a batch writes of one run."""

    fence: Fence | None = None
    items: list[Item] = field(default_factory=list)

    @property
    def pieces(self) -> list[Piece]:
        return [item for item in self.items if isinstance(item, Piece)]

    @property
    def steps(self) -> list[StepPiece]:
        return [item for item in self.items if isinstance(item, StepPiece)]

    @property
    def has_ended(self) -> bool:
        if self.fence is not None and self.fence.ended:
            return True
        last = next((each for each in reversed(self.items) if isinstance(each, Piece)), None)
        return last is not None and isinstance(last.body, RunResult)

    def join(self) -> None:
        """Neighbouring deltas become one; none across a step, which has its place among events."""
        joined: list[Item] = []
        pieces: list[Piece] = []
        for item in self.items:
            if isinstance(item, Piece):
                pieces.append(item)
            else:
                joined += [*join_pieces(pieces), item]
                pieces = []
        self.items = [*joined, *join_pieces(pieces)]


Parts = dict[str, Part]


class Written(NamedTuple):
    """The first number of the events of each run, and the runs that this process has lost."""

    first: Mapping[str, int]
    lost: frozenset[str] = frozenset()


def parts_of(queue: Iterable[Entry], size: int) -> tuple[Parts, int]:
    """At most `size` entries by run, and the place of the last one; a step more where it belongs to
    the last event.

    It ends before a run that is in it comes under another fence: one of both is refused. What came
    after the end of its run is left out.
    """
    parts: Parts = {}
    upto = late = 0
    last = ""
    for count, entry in enumerate(queue):
        # What is shown of a result and what is known of it are never written apart.
        belongs = isinstance(entry.item, StepPiece) and entry.run_id == last
        if count > size or (count == size and not belongs):
            break
        last = entry.run_id
        part = parts.get(entry.run_id) or Part(entry.fence)
        if part.fence is not entry.fence:
            break
        upto = entry.place
        if isinstance(entry.item, Piece) and part.has_ended:
            late += 1
            continue
        part.items.append(entry.item)
        parts[entry.run_id] = part
    if late:
        logger.warning(LATE_EVENTS, late)
    return parts, upto


def make_texts(parts: Parts, *, joined: bool) -> None:
    """Takes long for much: with `joined`, neighbouring deltas become one."""
    for part in parts.values():
        if joined:
            part.join()
        for step in part.steps:
            if not step.body:
                step.texts()


async def write_batch(
    transaction: Transaction, database: Database, parts: Mapping[str, Part], token: str
) -> Written:
    """Writes events and steps, numbered on, and the newest state of each run.

    A batch that was written under this token already is not written again. A run that has ended
    takes no more events, and one that another process has begun meanwhile takes nothing.
    """
    run_ids = sorted(parts)
    fenced = [run_id for run_id in run_ids if parts[run_id].fence is not None]
    runs = await event_rows.lock_runs(transaction, database, run_ids)
    heads = await execution_rows.lock_heads(transaction, database, fenced)
    if any(run.token == token for run in runs.values()):
        ours = [run_id for run_id in run_ids if runs[run_id].token == token]
        first = {run: runs[run].last - len(parts[run].pieces) + 1 for run in ours}
        return Written(first, frozenset(fenced) - frozenset(ours))
    taken = [
        run_id for run_id in run_ids if _is_taken(parts[run_id], runs[run_id], heads.get(run_id))
    ]
    first = {run_id: runs[run_id].last + 1 for run_id in taken}
    for run_id in taken:
        if parts[run_id].pieces:
            # Here the log itself says more.
            transaction.signal(event_rows.TOPIC, run_id, here=False)
    await transaction.do(
        "UPDATE harness_runs SET last = :last, ended = :ended, token = :token WHERE run_id = :run",
        [_run_row(run_id, parts[run_id], runs[run_id], token) for run_id in taken],
    )
    await _insert_events(transaction, taken, parts, first)
    await _insert_steps(transaction, database, parts, first, heads)
    return Written(first, frozenset(fenced) - frozenset(taken))


def _is_taken(part: Part, run: event_rows.LockedRun, head: Head | None) -> bool:
    if part.fence is not None and (
        head is None or head.fence != part.fence.number or head.status == "ended"
    ):
        return False
    return not run.ended or not part.pieces


def _run_row(run_id: str, part: Part, run: event_rows.LockedRun, token: str) -> dict[str, Any]:
    pieces = part.pieces
    ended = run.ended or (bool(pieces) and isinstance(pieces[-1].body, RunResult))
    return {"run": run_id, "last": run.last + len(pieces), "ended": int(ended), "token": token}


async def _insert_events(
    transaction: Transaction, run_ids: Sequence[str], parts: Mapping[str, Part],
    first: Mapping[str, int],
) -> None:  # fmt: skip
    rows = [
        {"run": run_id, "number": number, "at": piece.at, "body": piece.form}
        for run_id in run_ids
        for number, piece in enumerate(parts[run_id].pieces, first[run_id])
    ]
    await transaction.do(
        "INSERT INTO harness_events (run_id, number, happened_at, body) "
        "VALUES (:run, :number, :at, :body)",
        rows,
    )


async def _insert_steps(
    transaction: Transaction, database: Database, parts: Mapping[str, Part],
    first: Mapping[str, int], heads: Mapping[str, Head],
) -> None:  # fmt: skip
    rows: list[Values] = []
    pictures: list[Values] = []
    updates: list[Values] = []
    for run_id, head in heads.items():
        if run_id not in first or not parts[run_id].steps:
            continue
        cursor = first[run_id] - 1
        number, replaced, answered = head.steps, head.replaced, head.answered
        for item in parts[run_id].items:
            if isinstance(item, Piece):
                cursor += 1
                continue
            number += 1
            replaced = number if "replaced" in item.form else replaced
            answered = number if item.kind == "answered" else answered
            rows.append(
                {
                    "run": run_id, "number": number, "at": item.at, "cursor": cursor,
                    "kind": item.kind, "body": item.body, "added": item.added,
                }
            )  # fmt: skip
            pictures += [
                {"run": run_id, "sha256": sha256, "data": data}
                for sha256, data in item.pictures.items()
            ]
        updates.append(
            {
                "run": run_id, "steps": number, "replaced": replaced, "answered": answered,
                "state": json_row(state_to_json(parts[run_id].steps[-1].state)),
            }
        )  # fmt: skip
    await execution_rows.insert_steps(transaction, database, rows, pictures, updates)
