"""Executions, their steps and the answers to them as rows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from web.harness.loop.state import RunState
from web.harness.sessions.journal import (
    Execution,
    ExecutionStatus,
    GivenAnswer,
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
from web.harness.sessions.sql.database import Database, Row, Transaction, Values
from web.harness.sessions.sql.leases import Scope
from web.harness.sessions.sql.rows import json_row
from web.harness.values.errors import NotFound, StoreError
from web.harness.values.json_form import JsonRefused, canonical
from web.harness.values.messages import JsonObject

T = TypeVar("T")

ANSWERS = "answers"
"""The topic of the signals that a run got an answer, or will get none any more."""

TABLES = ("harness_steps", "harness_answers", "harness_run_pictures", "harness_executions")

WHERE_SCOPE = "tenant_id = :tenant AND user_id = :user AND session_id = :session"

_COLUMNS = (
    "run_id, body, session_id, status, fence, steps, state, result_status, created_at, changed_at"
)

_PICTURE = re.compile(r'"sha256":"([0-9a-f]{64})"')

ROWS_AT_ONCE = 500


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
    for at in range(0, len(rows), ROWS_AT_ONCE):
        await transaction.do(
            "INSERT INTO harness_steps (run_id, number, happened_at, cursor, kind, body, added) "
            "VALUES (:run, :number, :at, :cursor, :kind, :body, :added)",
            rows[at : at + ROWS_AT_ONCE],
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

    It comes after all of its session, whatever the clock says. What was changed when it was made is
    known to nobody but who sent it.
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


async def sent_again(transaction: Transaction, database: Database, run_id: str) -> None:
    """Somebody else waits for a run that was not begun."""
    await transaction.do(
        f"UPDATE harness_executions SET changed_at = CASE WHEN {database.now} > created_at THEN "
        f"{database.now} ELSE created_at + 0.0001 END WHERE run_id = :run "
        "AND status = 'submitted' AND fence = 0",
        {"run": run_id},
    )


async def is_nobodys(transaction: Transaction, run_id: str) -> bool:
    """Whether a run was not begun, and nobody but who sent it knows of it."""
    row = await transaction.row(
        "SELECT 1 FROM harness_executions WHERE run_id = :run AND status = 'submitted' "
        "AND fence = 0 AND changed_at = created_at",
        {"run": run_id},
    )
    return row is not None


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
    await _drop_request_states(transaction, run_id)
    transaction.signal(ANSWERS, run_id)


async def _drop_request_states(transaction: Transaction, run_id: str) -> None:
    """What servers wanted back with a person's answer: nobody goes on from there any more."""
    rows = await transaction.rows(
        "SELECT number, body FROM harness_steps WHERE run_id = :run AND body LIKE :holding",
        {"run": run_id, "holding": '%"input":{%'},
    )
    changed: list[Values] = []
    for number, body in rows:
        try:
            form = json.loads(body)
            inputs = [call.get("input") for call in form.get("calls", ())]
            held = [each for each in inputs if each and each.pop("state", None) is not None]
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
    for at in range(0, len(named), ROWS_AT_ONCE):
        rows = await transaction.rows(
            "SELECT sha256, data FROM harness_run_pictures WHERE run_id IN :run_list "
            "AND sha256 IN :sha_list",
            {"run_list": list(run_ids), "sha_list": named[at : at + ROWS_AT_ONCE]},
        )
        pictures.update((str(sha256), bytes(data)) for sha256, data in rows)
    return pictures


async def answers_of(transaction: Transaction, run_id: str) -> Sequence[Row]:
    return await transaction.rows(
        "SELECT kind, key, body FROM harness_answers WHERE run_id = :run ORDER BY number",
        {"run": run_id},
    )


async def count_answers(transaction: Transaction, run_id: str) -> int | None:
    """None where there will be no more: the run has ended, or there is none."""
    row = await transaction.row(
        "SELECT status, (SELECT count(*) FROM harness_answers WHERE run_id = :run) "
        "FROM harness_executions WHERE run_id = :run",
        {"run": run_id},
    )
    return None if row is None or row[0] == "ended" else int(row[1])


async def insert_answer(
    transaction: Transaction, run_id: str, answer: GivenAnswer, body: str, token: str
) -> bool:
    """Whether it is written now, or was under the same token; of a run whose head is locked."""
    row = await transaction.row(
        "SELECT token FROM harness_answers WHERE run_id = :run AND key = :key",
        {"run": run_id, "key": answer.key},
    )
    if row is not None:
        return bool(row[0] == token)
    await transaction.do(
        "INSERT INTO harness_answers (run_id, number, kind, key, body, token) VALUES (:run, "
        "(SELECT count(*) + 1 FROM harness_answers WHERE run_id = :run), :kind, :key, :body, "
        ":token)",
        {"run": run_id, "kind": answer.kind, "key": answer.key, "body": body, "token": token},
    )
    transaction.signal(ANSWERS, run_id)
    return True


def execution_of(row: Row, pictures: Mapping[str, bytes]) -> Execution:
    """Raises StoreError for a submission that cannot be read. A state that cannot be is left out:
    whoever needs it reads `recorded`, and the others can still end the run."""
    run_id, body, session_id, status, fence, steps, state, result, created_at, changed_at = row

    def made() -> Execution:
        submission = submission_from_json(json.loads(body), pictures.__getitem__)
        return Execution(
            # The session may have another id by now.
            replace(submission, session_id=str(session_id)),
            cast(ExecutionStatus, status),
            int(fence),
            int(steps),
            _state_or_none(state),
            str(result),
            float(created_at),
            float(changed_at),
        )

    return _readable(made, f"Run {run_id}")


def _state_or_none(text: str | None) -> RunState | None:
    with contextlib.suppress(StoreError):
        return None if text is None else run_state_of(text)
    return None


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
            hint="It was left as it is. " + ("Update this version." if future else ""),
            code="from_the_future" if future else "store_corrupt",
        ) from error
