"""What people said to runs, as rows."""

from __future__ import annotations

import contextlib
import json
import logging
from typing import cast, get_args

from web.harness.sessions.answers import check_answer
from web.harness.sessions.journal import AnswerKind, GivenAnswer
from web.harness.sessions.sql.database import Transaction
from web.harness.values.errors import DecisionRefused

logger = logging.getLogger(__name__)

ANSWERS = "answers"
"""The topic of the signals that a run got an answer, or will get none any more."""


async def answers_of(transaction: Transaction, run_id: str) -> list[GivenAnswer]:
    """Those that can be read."""
    rows = await transaction.rows(
        "SELECT kind, key, body FROM harness_answers WHERE run_id = :run ORDER BY number",
        {"run": run_id},
    )
    return [answer for row in rows if (answer := _answer_of(*row)) is not None]


async def takes_answers(transaction: Transaction, run_id: str) -> bool:
    """False where there will be no more: the run has ended, or there is none."""
    row = await transaction.row(
        "SELECT 1 FROM harness_executions WHERE run_id = :run AND status <> 'ended'",
        {"run": run_id},
    )
    return row is not None


async def insert_answer(
    transaction: Transaction, run_id: str, answer: GivenAnswer, body: str, token: str
) -> bool:
    """Whether it is written now, or was under the same token; of a run whose head is locked. It
    takes the place of one that is damaged."""
    values = {"run": run_id, "key": answer.key}
    row = await transaction.row(
        "SELECT kind, key, body, token FROM harness_answers WHERE run_id = :run AND key = :key",
        values,
    )
    if row is not None:
        kind, key, text, by = row
        if by == token:
            # The connection was lost after the commit, and nobody here has heard of it.
            transaction.signal(ANSWERS, run_id)
            return True
        if _answer_of(kind, key, text) is not None:
            return False
    await transaction.do("DELETE FROM harness_answers WHERE run_id = :run AND key = :key", values)
    await transaction.do(
        "INSERT INTO harness_answers (run_id, number, kind, key, body, token) VALUES (:run, "
        "(SELECT coalesce(max(number), 0) + 1 FROM harness_answers WHERE run_id = :run), :kind, "
        ":key, :body, :token)",
        {**values, "kind": answer.kind, "body": body, "token": token},
    )
    transaction.signal(ANSWERS, run_id)
    return True


def _answer_of(kind: str, key: str, body: str) -> GivenAnswer | None:
    """None for one that is damaged."""
    with contextlib.suppress(ValueError, RecursionError, DecisionRefused):
        if kind in get_args(AnswerKind):
            # A stop or a pause says nothing else.
            form = {} if kind in ("cancel", "pause") else json.loads(body)
            answer = GivenAnswer(cast(AnswerKind, kind), key, form)
            check_answer(answer)
            return answer
    logger.warning("The answer to %s cannot be read, so its question is open again", key)
    return None
