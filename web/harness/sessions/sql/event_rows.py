"""Events as rows: batches are written, runs are read, joined, folded and forgotten."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from web.harness.sessions.deltas import join_deltas, rest_of
from web.harness.sessions.sql import execution_rows
from web.harness.sessions.sql.database import Database, Row, Transaction
from web.harness.sessions.sql.rows import json_row
from web.harness.values.errors import StoreError
from web.harness.values.event_codec import body_from_json, body_to_json
from web.harness.values.events import Event, EventBody, Note
from web.harness.values.json_form import JsonRefused, NotSerialisable

TOPIC = "events"
FORGOTTEN = "events-forgotten"

UNWRITTEN = Note("Something that happened here could not be written down.")


@dataclass(frozen=True, slots=True)
class Run:
    """The row of a run: its last number, whether it has ended, and what became of its deltas."""

    last: int
    ended: bool
    joined: bool
    gap_before: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A body that waits to be written, with when it happened and its JSON."""

    at: float
    body: EventBody
    form: str


def piece_of(at: float, body: EventBody) -> Piece:
    """What JSON cannot hold must not stop a run: it is left out, and said to be."""
    try:
        return Piece(at, body, json_row(body_to_json(body)))
    except NotSerialisable as error:
        note = replace(UNWRITTEN, detail=error.message)
        return Piece(at, note, json_row(body_to_json(note)))


def join_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """The same with neighbouring deltas of one stream joined, so that fewer are written."""
    events = [Event(at, piece.at, piece.body) for at, piece in enumerate(pieces)]
    joined = join_deltas(events)
    return [
        pieces[event.number]
        if event.body is pieces[event.number].body
        else piece_of(event.at, event.body)
        for event in joined
    ]


async def run_of(transaction: Transaction, run_id: str, locked: str = "") -> Run | None:
    row = await transaction.row(
        f"SELECT last, ended, joined, gap_before FROM harness_runs WHERE run_id = :run{locked}",
        {"run": run_id},
    )
    return None if row is None else Run(int(row[0]), bool(row[1]), bool(row[2]), int(row[3]))


async def ends_of(transaction: Transaction, run_ids: list[str]) -> dict[str, tuple[int, bool]]:
    """Last number of each run, and whether it has ended."""
    rows = await transaction.rows(
        "SELECT run_id, last, ended FROM harness_runs WHERE run_id IN :run_list",
        {"run_list": run_ids},
    )
    return {str(run_id): (int(last), bool(ended)) for run_id, last, ended in rows}


@dataclass(frozen=True, slots=True)
class LockedRun:
    """What a writer has to know of a run. `token` names the last batch that was written to it."""

    last: int
    ended: bool
    token: str


async def lock_runs(
    transaction: Transaction, database: Database, run_ids: Sequence[str]
) -> dict[str, LockedRun]:
    """The rows of runs, made where there are none, that nobody else changes until the end."""
    found = await _locked_runs(transaction, database, run_ids)
    if len(found) == len(run_ids):
        return found
    await transaction.do(
        "INSERT INTO harness_runs (run_id, last, ended, joined, gap_before, token) "
        # Where this row alone was lost, the run's events are numbered on.
        "VALUES (:run, (SELECT COALESCE(MAX(number), 0) FROM harness_events WHERE run_id = :run), "
        "0, 0, 0, '') ON CONFLICT (run_id) DO NOTHING",
        [{"run": run_id} for run_id in run_ids if run_id not in found],
    )
    return await _locked_runs(transaction, database, run_ids)


async def _locked_runs(
    transaction: Transaction, database: Database, run_ids: Sequence[str]
) -> dict[str, LockedRun]:
    rows = await transaction.rows(
        "SELECT run_id, last, ended, token FROM harness_runs WHERE run_id IN :run_list "
        f"ORDER BY run_id{database.locked}",
        {"run_list": list(run_ids)},
    )
    return {str(row[0]): LockedRun(int(row[1]), bool(row[2]), str(row[3])) for row in rows}


async def rows_after(
    transaction: Transaction, run_id: str, after: int, limit: int | None
) -> Sequence[Row]:
    return await transaction.rows(
        "SELECT number, happened_at, body, ends FROM harness_events "
        "WHERE run_id = :run AND number > :after ORDER BY number"
        + ("" if limit is None else " LIMIT :limit"),
        {"run": run_id, "after": after, **({} if limit is None else {"limit": limit})},
    )


async def rows_of_many(
    transaction: Transaction, run_ids: Sequence[str], limit: int
) -> Sequence[Row]:
    """The rows of some runs, run by run, each after its id; at most `limit` of all together."""
    return await transaction.rows(
        "SELECT run_id, number, happened_at, body, ends FROM harness_events "
        "WHERE run_id IN :run_list ORDER BY run_id, number LIMIT :limit",
        {"run_list": list(run_ids), "limit": limit},
    )


def events_of_many(rows: Sequence[Row], limit: int) -> dict[str, list[Event]]:
    """The events of each run that is whole in there; the last one is not where the limit cut it.
    Raises StoreError."""
    found: dict[str, list[Event]] = {}
    for row in rows:
        found.setdefault(str(row[0]), []).append(event_of(row[1:]))
    if len(rows) == limit:
        found.popitem()
    return found


def events_of(rows: Sequence[Row], after: int) -> list[Event]:
    """Of a joined delta that the cursor lies in, only the rest. Raises StoreError."""
    events = [event_of(row) for row in rows]
    if events and rows[0][3]:
        events[0] = rest_of(events[0], _ends(rows[0][3]), after)
    return events


async def forget(transaction: Transaction, run_id: str) -> None:
    """With all that was written down to go on with the run, and to look at it."""
    for table in ("harness_events", "harness_runs"):
        await transaction.do(f"DELETE FROM {table} WHERE run_id = :run", {"run": run_id})
    await execution_rows.forget(transaction, [run_id])
    transaction.signal(FORGOTTEN, run_id)


def event_of(row: Row) -> Event:
    """Raises StoreError."""
    try:
        return Event(int(row[0]), float(row[1]), body_from_json(json.loads(row[2])))
    except (JsonRefused, ValueError, RecursionError) as error:
        future = isinstance(error, JsonRefused) and error.code == "from_the_future"
        raise StoreError(
            f"Event {row[0]} of a run cannot be read.",
            hint="It was left as it is. " + ("Update this version." if future else ""),
            code="from_the_future" if future else "store_corrupt",
        ) from error


def packed(ends: array[int] | None) -> bytes | None:
    """The seams of a joined delta as a row has them."""
    if ends is None:
        return None
    numbers = array("I", ends)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _ends(seams: bytes) -> array[int]:
    ends = array("I")
    ends.frombytes(bytes(seams))
    if sys.byteorder == "big":
        ends.byteswap()
    return ends
