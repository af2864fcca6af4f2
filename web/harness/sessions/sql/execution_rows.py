"""Executions and their steps as rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from web.harness.loop.state import RunState
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import (
    Execution,
    ExecutionStatus,
    NumberedStep,
    Step,
    Submission,
)
from web.harness.sessions.journal_form import (
    STEP_VERSION,
    state_from_json,
    step_from_json,
    submission_from_json,
)
from web.harness.sessions.sql.answer_rows import ANSWERS
from web.harness.sessions.sql.database import Database, Row, Transaction, Values
from web.harness.sessions.sql.leases import Scope
from web.harness.sessions.sql.rows import json_row
from web.harness.sessions.sql.statements import in_pieces
from web.harness.values.errors import NotFound, StoreError
from web.harness.values.json_form import JsonRefused, canonical
from web.harness.values.messages import JsonObject

T = TypeVar("T")

TABLES = ("harness_steps", "harness_answers", "harness_run_pictures", "harness_executions")

WHERE_SCOPE = "tenant_id = :tenant AND user_id = :user AND session_id = :session"

_COLUMNS = (
    "run_id, body, tenant_id, user_id, session_id, request_id, status, fence, steps, state, "
    "result_status, created_at, changed_at"
)

_ANSWERED = {"state", "answer"}
"""Of `CallRecord.input`, what only going on needs."""

_PICTURE = re.compile(r'"sha256":"([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True)
class Head:
    """What a writer has to know of a run; see the schema."""

    fence: int
    status: str
    steps: int
    replaced: int
    answered: int


def digest_of(form: JsonObject) -> str:
    """Of what a request asks for: its text and what is beside it."""
    asked = {name: form.get(name) for name in ("text", "attachments")}
    if asked["attachments"]:
        # A picture is the same with its bytes and where only its name is known.
        asked["attachments"] = [
            {("kept" if key == "length" else key): value for key, value in each.items()}
            for each in asked["attachments"]
        ]
    return hashlib.sha256(canonical(asked)).hexdigest()


async def lock_heads(
    transaction: Transaction, database: Database, run_ids: Sequence[str]
) -> dict[str, Head]:
    if not run_ids:
        return {}
    rows = await transaction.rows(
        "SELECT run_id, fence, status, steps, replaced, answered FROM harness_executions "
        f"WHERE run_id IN :run_list ORDER BY run_id{database.locked}",
        {"run_list": list(run_ids)},
    )
    return {
        str(row[0]): Head(int(row[1]), str(row[2]), int(row[3]), int(row[4]), int(row[5]))
        for row in rows
    }


async def insert_steps(
    transaction: Transaction,
    database: Database,
    rows: Sequence[Values],
    pictures: Sequence[Values],
    updates: Sequence[Values],
) -> None:
    await transaction.do(
        "INSERT INTO harness_steps (run_id, number, happened_at, cursor, kind, body, added) "
        "VALUES (:run, :number, :at, :cursor, :kind, :body, :added)",
        rows,
    )
    await insert_pictures(transaction, pictures)
    await transaction.do(
        "UPDATE harness_executions SET steps = :steps, state = :state, replaced = :replaced, "
        f"answered = :answered, changed_at = {database.now} WHERE run_id = :run",
        updates,
    )


async def insert_pictures(transaction: Transaction, pictures: Sequence[Values]) -> None:
    await transaction.do(
        "INSERT INTO harness_run_pictures (run_id, sha256, data) VALUES (:run, :sha256, :data) "
        "ON CONFLICT (run_id, sha256) DO NOTHING",
        pictures,
    )


async def insert(
    transaction: Transaction, database: Database, submission: Submission, body: str, digest: str
) -> None:
    """Does nothing where there is one of that run, or of that request.

    It comes after all of its session, whatever the clock says.
    """
    at = (
        f"CASE WHEN max(created_at) >= {database.now} THEN max(created_at) + 0.0001 "
        f"ELSE {database.now} END"
    )
    await transaction.do(
        "INSERT INTO harness_executions (run_id, tenant_id, user_id, session_id, request_id, "
        "digest, body, status, fence, state, steps, replaced, answered, result_status, "
        "created_at, changed_at) SELECT :run, :tenant, :user, :session, :request, :digest, "
        ":body, 'submitted', 0, NULL, 0, 0, 0, '', clock.at, clock.at "
        f"FROM (SELECT {at} AS at FROM harness_executions WHERE {WHERE_SCOPE}) AS clock "
        "WHERE 1 = 1 ON CONFLICT DO NOTHING",
        {
            **Scope(submission.identity, submission.session_id).values,
            "run": submission.run_id,
            "request": submission.request_id,
            "digest": digest,
            "body": body,
        },
    )


async def by_request(transaction: Transaction, submission: Submission) -> tuple[str, str] | None:
    """Run and digest of a request that was taken before."""
    row = await transaction.row(
        f"SELECT run_id, digest FROM harness_executions WHERE {WHERE_SCOPE} "
        "AND request_id = :request",
        {
            **Scope(submission.identity, submission.session_id).values,
            "request": submission.request_id,
        },
    )
    return None if row is None else (str(row[0]), str(row[1]))


async def row_of(transaction: Transaction, run_id: str) -> Row | None:
    return await transaction.row(
        f"SELECT {_COLUMNS} FROM harness_executions WHERE run_id = :run", {"run": run_id}
    )


async def unfinished(transaction: Transaction, where: str, values: Values) -> Sequence[Row]:
    return await transaction.rows(
        f"SELECT {_COLUMNS} FROM harness_executions WHERE status <> 'ended'{where} "
        "ORDER BY created_at, run_id",
        values,
    )


async def locked_head(transaction: Transaction, database: Database, run_id: str) -> Head:
    """Raises NotFound."""
    head = (await lock_heads(transaction, database, [run_id])).get(run_id)
    if head is None:
        raise no_such_run()
    return head


async def set_status(
    transaction: Transaction, database: Database, run_id: str, status: str, fence: int
) -> None:
    await transaction.do(
        "UPDATE harness_executions SET status = :status, fence = :fence, "
        f"changed_at = {database.now} WHERE run_id = :run",
        {"run": run_id, "status": status, "fence": fence},
    )


async def end(transaction: Transaction, database: Database, run_id: str, result: str) -> None:
    """Keeps the steps, and drops what only going on needs."""
    await transaction.do(
        "UPDATE harness_executions SET status = 'ended', state = NULL, result_status = :result, "
        f"changed_at = {database.now} WHERE run_id = :run",
        {"run": run_id, "result": result},
    )
    await transaction.do("DELETE FROM harness_answers WHERE run_id = :run", {"run": run_id})
    await _drop_answers_to_tools(transaction, run_id)


async def _drop_answers_to_tools(transaction: Transaction, run_id: str) -> None:
    """What a person answered, and what servers wanted back with that: nobody goes on from there any
    more, and it may be private."""
    rows = await transaction.rows(
        "SELECT number, body FROM harness_steps WHERE run_id = :run AND body LIKE :holding",
        {"run": run_id, "holding": '%"input":{%'},
    )
    changed: list[Values] = []
    for number, body in rows:
        try:
            form = json.loads(body)
            inputs = [call.get("input") for call in form.get("calls", ())]
            held = [each.pop(name) for each in inputs if each for name in _ANSWERED & each.keys()]
        except (ValueError, AttributeError):
            continue  # A row that is damaged stays as it is; whoever reads it is told.
        if held:
            changed.append({"run": run_id, "number": number, "body": json_row(form)})
    await transaction.do(
        "UPDATE harness_steps SET body = :body WHERE run_id = :run AND number = :number", changed
    )


async def forget(transaction: Transaction, run_ids: Iterable[str]) -> None:
    for run_id in run_ids:
        for table in TABLES:
            await transaction.do(f"DELETE FROM {table} WHERE run_id = :run", {"run": run_id})
        transaction.signal(ANSWERS, run_id)


async def runs_of(transaction: Transaction, scope: Scope) -> list[tuple[str, str]]:
    """Each run of a session with its status."""
    rows = await transaction.rows(
        f"SELECT run_id, status FROM harness_executions WHERE {WHERE_SCOPE}", scope.values
    )
    return [(str(run_id), str(status)) for run_id, status in rows]


async def rename(transaction: Transaction, scope: Scope, new_id: str) -> None:
    await transaction.do(
        f"UPDATE harness_executions SET session_id = :new WHERE {WHERE_SCOPE}",
        {**scope.values, "new": new_id},
    )


async def state_of(transaction: Transaction, run_id: str) -> Row | None:
    """`(state, replaced, answered)`; see the schema."""
    return await transaction.row(
        "SELECT state, replaced, answered FROM harness_executions WHERE run_id = :run",
        {"run": run_id},
    )


async def steps_to_go_on(
    transaction: Transaction, run_id: str, replaced: int, answered: int
) -> Sequence[Row]:
    """`(kind, body, added)` in order: what was done to the conversation since it was last made
    shorter, and all of the newest answer. Of earlier rounds `body` is NULL."""
    return await transaction.rows(
        "SELECT kind, CASE WHEN number >= :answered THEN body END, "
        "CASE WHEN number >= :replaced THEN added END FROM harness_steps WHERE run_id = :run "
        "AND (number >= :answered OR (number >= :replaced AND added IS NOT NULL)) ORDER BY number",
        {"run": run_id, "answered": answered, "replaced": replaced},
    )


async def steps_after(
    transaction: Transaction, run_id: str, after: int, limit: int
) -> Sequence[Row]:
    return await transaction.rows(
        "SELECT number, happened_at, cursor, body, added FROM harness_steps "
        "WHERE run_id = :run AND number > :after ORDER BY number LIMIT :limit",
        {"run": run_id, "after": after, "limit": limit},
    )


async def pictures_in(
    transaction: Transaction, run_ids: Sequence[str], texts: Iterable[str | None]
) -> dict[str, bytes]:
    """The bytes of all pictures that JSON of these runs names."""
    named = sorted({found for text in texts if text for found in _PICTURE.findall(text)})
    pictures: dict[str, bytes] = {}
    for some in in_pieces(named):
        rows = await transaction.rows(
            "SELECT sha256, data FROM harness_run_pictures WHERE run_id IN :run_list "
            "AND sha256 IN :sha_list",
            {"run_list": list(run_ids), "sha_list": some},
        )
        pictures.update((str(sha256), bytes(data)) for sha256, data in rows)
    return pictures


def execution_of(row: Row, pictures: Mapping[str, bytes] | None) -> Execution:
    """Without `pictures`, without what was attached to the message too."""
    run_id, body, tenant, user, session_id, request_id, status, fence, steps = row[:9]
    state, result, created_at, changed_at = row[9:]
    identity = HarnessIdentity(str(tenant), str(user))
    submission = Submission(str(run_id), identity, str(session_id), str(request_id), "")
    run_state: RunState | None = None
    unreadable: StoreError | None = None
    try:
        submission = _submission_of(str(run_id), body, pictures)
        run_state = None if state is None else run_state_of(state)
    except StoreError as error:
        unreadable = error
    return Execution(
        # The session may have another id by now.
        replace(submission, session_id=str(session_id)),
        cast(ExecutionStatus, status),
        int(fence),
        int(steps),
        run_state,
        str(result),
        float(created_at),
        float(changed_at),
        unreadable,
    )


def _submission_of(run_id: str, body: str, pictures: Mapping[str, bytes] | None) -> Submission:
    """Raises StoreError."""

    def made() -> Submission:
        form = json.loads(body)
        if pictures is None and isinstance(form, dict):
            form.pop("attachments", None)
        return submission_from_json(form, pictures.__getitem__ if pictures is not None else None)

    return _readable(made, f"Run {run_id}")


def run_state_of(text: str) -> RunState:
    """Raises StoreError."""
    return _readable(lambda: state_from_json(json.loads(text)), "The state of a run")


def step_of(row: Row, pictures: Mapping[str, bytes]) -> Step:
    """Of `(kind, body, added)`; without a body, what it did to the conversation alone."""
    kind, body, added = row

    def made() -> Step:
        form: dict[str, Any] = (
            {"v": STEP_VERSION, "kind": kind} if body is None else json.loads(body)
        )
        if added is not None:
            form |= json.loads(added)
        return step_from_json(form, pictures.__getitem__)

    return _readable(made, "A step of a run")


def numbered_step_of(row: Row, pictures: Mapping[str, bytes]) -> NumberedStep:
    number, at, cursor, body, added = row
    return NumberedStep(int(number), float(at), int(cursor), step_of(("", body, added), pictures))


def no_such_run() -> NotFound:
    return NotFound("There is no such run.")


def _readable(made: Callable[[], T], what: str) -> T:
    try:
        return made()
    except (JsonRefused, ValueError, RecursionError) as error:
        future = isinstance(error, JsonRefused) and error.code == "from_the_future"
        raise StoreError(
            f"{what} cannot be read."
            + (f" {error.message}" if isinstance(error, JsonRefused) else ""),
            hint=f"It was left as it is. {'Update this version, or cancel' if future else 'Cancel'}"
            " the run to end it.",
            code="from_the_future" if future else "store_corrupt",
        ) from error
