"""The events of a run that has ended take less room: neighbouring deltas are joined, and what is
told twice is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from web.harness.sessions.deltas import find_seams, join_deltas, told_twice
from web.harness.sessions.sql import event_rows
from web.harness.sessions.sql.database import Database, Row, Transaction
from web.harness.sessions.sql.rows import json_row
from web.harness.values.event_codec import body_to_json

AT_ONCE = 5_000
"""Events that are joined; what the border between two such parts cuts stays cut."""


async def join(database: Database, run_id: str) -> None:
    """Joins the deltas of a run. Raises StoreError."""
    joined: list[dict[str, Any]] = []
    after = 0
    # Not all at once: what a long run has said would be in memory three times over.
    while rows := await _rows(database, run_id, after, AT_ONCE):
        joined += await asyncio.to_thread(_joined, run_id, rows)
        after = int(rows[-1][0])
    await database.write(lambda each: _write(each, database, run_id, joined))


async def fold(database: Database, run_id: str) -> None:
    """Drops from a joined run what is told twice. Raises StoreError."""
    rows = await _rows(database, run_id, 0, None)
    dropped = await asyncio.to_thread(_twice, rows)
    if dropped:
        await database.write(lambda each: _drop(each, database, run_id, dropped))


async def _rows(database: Database, run_id: str, after: int, limit: int | None) -> Sequence[Row]:
    return await database.read(lambda each: event_rows.rows_after(each, run_id, after, limit))


async def _write(
    transaction: Transaction, database: Database, run_id: str, rows: list[dict[str, Any]]
) -> None:
    """Puts the joined events of a run that has ended in the place of all others."""
    run = await event_rows.run_of(transaction, run_id, database.locked)
    if run is None or run.joined:
        return
    await transaction.do("DELETE FROM harness_events WHERE run_id = :run", {"run": run_id})
    await transaction.do(
        "INSERT INTO harness_events (run_id, number, happened_at, body, ends) "
        "VALUES (:run, :number, :at, :body, :ends)",
        rows,
    )
    await transaction.do("UPDATE harness_runs SET joined = 1 WHERE run_id = :run", {"run": run_id})


def _joined(run_id: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows of a run with its deltas joined, from rows that follow each other. Slow for many."""
    events = [event_rows.event_of(row) for row in rows]
    joined = join_deltas(events)
    seams = find_seams(events, joined)
    return [
        {
            "run": run_id,
            "number": event.number,
            "at": event.at,
            "body": json_row(body_to_json(event.body)),
            "ends": event_rows.packed(seams.get(event.number)),
        }
        for event in joined
    ]


def _twice(rows: Sequence[Row]) -> list[int]:
    """The numbers of what is told twice, from all rows of a run. Slow for a long one."""
    return [event.number for event in told_twice(event_rows.events_of(rows, 0))]


async def _drop(
    transaction: Transaction, database: Database, run_id: str, dropped: Sequence[int]
) -> None:
    """Drops events of a joined run for good."""
    run = await event_rows.run_of(transaction, run_id, database.locked)
    if run is None or not run.joined:
        return
    await transaction.do(
        "DELETE FROM harness_events WHERE run_id = :run AND number = :number",
        [{"run": run_id, "number": number} for number in dropped],
    )
    await transaction.do(
        "UPDATE harness_runs SET gap_before = :gap WHERE run_id = :run",
        {"run": run_id, "gap": max(dropped)},
    )
