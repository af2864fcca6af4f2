"""`SqlExecutions`: runs that can be gone on with, in SQLite or PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import TypeVar

from web.harness.loop.state import RunState
from web.harness.sessions.answers import check_answer
from web.harness.sessions.folding import fold
from web.harness.sessions.identity import HarnessIdentity, can_be_kept, check_scope
from web.harness.sessions.journal import (
    Execution,
    ExecutionStatus,
    GivenAnswer,
    NumberedStep,
    Recorded,
    Step,
    Submission,
)
from web.harness.sessions.journal_form import submission_to_json
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql import answer_rows, event_rows, execution_rows
from web.harness.sessions.sql.batches import Fence
from web.harness.sessions.sql.database import Database, Row, Transaction, Work
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.execution_rows import Head
from web.harness.sessions.sql.lease import SqlLease
from web.harness.sessions.sql.rows import json_row
from web.harness.sessions.store import SessionLease
from web.harness.values.errors import DecisionRefused, HarnessError, LeaseLost, StoreError
from web.harness.values.json_form import json_copy

T = TypeVar("T")

INLINE_STEPS = 50
"""Up to so many are made of rows at once; more go to a thread."""

INLINE_RUNS = 10
"""The same of runs, whose rows have more in them."""


class SqlJournal:
    """The `RunJournal` of one run, under the fence that `SqlExecutions.begin` took.

    What is written goes with the events of all runs, in the batches of the event log.
    """

    def __init__(self, log: SqlEventLog, run_id: str, fence: Fence) -> None:
        self.run_id = run_id
        self._log = log
        self._fence = fence

    @property
    def fence(self) -> int:
        return self._fence.number

    def write(self, step: Step, state: RunState) -> None:
        """Raises NotSerialisable for what JSON cannot hold; nothing of the step is written then."""
        self._log.append_step(self.run_id, self._fence, step, state)

    async def settled(self) -> None:
        if not self._fence.lost:
            await self._log.flush(self.run_id)
        if self._fence.lost:
            raise run_lost()
        if self._fence.cut:
            raise StoreError("This store is closed.", code="store_closed")


class SqlExecutions:
    """The `Executions` of a database, which stays its owner's; `log` is its event log."""

    def __init__(self, database: Database, log: SqlEventLog) -> None:
        self._database = database
        self._log = log

    async def submit(self, submission: Submission) -> Execution:
        check_scope(submission.identity, submission.session_id)
        _check_ids(submission)
        pictures: dict[str, bytes] = {}
        form = submission_to_json(submission, pictures.__setitem__)
        body, digest = await asyncio.to_thread(
            lambda: (json_row(form), execution_rows.digest_of(form))
        )
        rows = [
            {"run": submission.run_id, "sha256": sha256, "data": data}
            for sha256, data in pictures.items()
        ]

        async def work(transaction: Transaction) -> tuple[Row | None, dict[str, bytes]]:
            await execution_rows.insert(transaction, self._database, submission, body, digest)
            taken = await execution_rows.by_request(transaction, submission)
            if taken is None:
                raise _reused("There is a run of this id already, for another request.")
            run_id, before = taken
            if before != digest:
                raise _reused("A request of this id was for another message.")
            if run_id == submission.run_id:
                await execution_rows.insert_pictures(transaction, rows)
            return await _with_pictures(transaction, run_id)

        row, found = await self._database.write_at_once(work)
        return execution_rows.execution_of(row or (), found)

    async def begin(self, run_id: str) -> tuple[Execution, SqlJournal]:
        # What was handed over before goes out under the fence of before.
        await self._log.flush(run_id)

        async def work(
            transaction: Transaction,
        ) -> tuple[Row | None, dict[str, bytes], event_rows.Run | None]:
            head = await execution_rows.locked_head(transaction, self._database, run_id)
            if head.status == "ended":
                raise run_ended()
            await execution_rows.set_status(
                transaction, self._database, run_id, "running", head.fence + 1
            )
            found = await _with_pictures(transaction, run_id)
            return *found, await event_rows.run_of(transaction, run_id)

        row, pictures, run = await self._database.write_at_once(work)
        execution = execution_rows.execution_of(row or (), pictures)
        ended = run is not None and run.ended
        fence = self._log.take(run_id, execution.fence, ended=ended)
        return execution, SqlJournal(self._log, run_id, fence)

    async def find(self, run_id: str) -> Execution | None:
        if not can_be_kept(run_id):
            return None
        row, pictures = await self._database.read(lambda each: _with_pictures(each, run_id))
        return None if row is None else execution_rows.execution_of(row, pictures)

    async def unfinished(
        self, identity: HarnessIdentity | None = None, session_id: str | None = None
    ) -> list[Execution]:
        values: dict[str, str] = {}
        where = ""
        if identity is not None:
            where += " AND tenant_id = :tenant AND user_id = :user"
            values |= {"tenant": identity.tenant_id, "user": identity.user_id}
        if session_id is not None:
            where += " AND session_id = :session"
            values["session"] = session_id

        rows = await self._database.read(
            lambda each: execution_rows.unfinished(each, where, values)
        )

        def made() -> list[Execution]:
            return [execution_rows.execution_of(row, None) for row in rows]

        return made() if len(rows) <= INLINE_RUNS else await asyncio.to_thread(made)

    async def recorded(self, run_id: str, *, newest: bool = False) -> Recorded | None:
        async def work(
            transaction: Transaction,
        ) -> tuple[Row, Sequence[Row], dict[str, bytes]] | None:
            row = await execution_rows.state_of(transaction, run_id)
            if row is None or row[0] is None:
                return None
            since = row[2] if newest else row[1]
            steps = await execution_rows.steps_to_go_on(transaction, run_id, since, row[2])
            texts = [text for step in steps for text in step[1:]]
            return row, steps, await execution_rows.pictures_in(transaction, [run_id], texts)

        found = await self._database.read(work)
        if found is None:
            return None
        row, steps, pictures = found

        def made() -> Recorded:
            state = execution_rows.run_state_of(row[0])
            return fold(state, [execution_rows.step_of(row, pictures) for row in steps])

        return made() if len(steps) <= INLINE_STEPS else await asyncio.to_thread(made)

    async def steps(self, run_id: str, after: int = 0, limit: int = 1000) -> Sequence[NumberedStep]:
        async def work(transaction: Transaction) -> tuple[Sequence[Row], dict[str, bytes]]:
            rows = await execution_rows.steps_after(transaction, run_id, after, limit)
            texts = [text for row in rows for text in row[3:]]
            return rows, await execution_rows.pictures_in(transaction, [run_id], texts)

        rows, pictures = await self._database.read(work)

        def made() -> list[NumberedStep]:
            return [execution_rows.numbered_step_of(row, pictures) for row in rows]

        return made() if len(rows) <= INLINE_STEPS else await asyncio.to_thread(made)

    async def set_status(self, run_id: str, status: ExecutionStatus, fence: int) -> None:
        async def work(transaction: Transaction) -> None:
            await self._fenced(transaction, run_id, fence)
            await execution_rows.set_status(transaction, self._database, run_id, status, fence)

        await self._database.write_at_once(work)

    async def answer(self, run_id: str, answer: GivenAnswer) -> None:
        check_answer(answer)
        body = json_row(json_copy(answer.body, "the body of an answer"))
        token = uuid.uuid4().hex

        async def work(transaction: Transaction) -> bool:
            head = await execution_rows.locked_head(transaction, self._database, run_id)
            if head.status == "ended":
                raise DecisionRefused("This run has ended.", hint="There is nothing to answer.")
            return await answer_rows.insert_answer(transaction, run_id, answer, body, token)

        if not await self._database.write_at_once(work):
            raise DecisionRefused(
                "This was answered already.", hint="The first answer counts; reload to see it."
            )

    async def answers(self, run_id: str) -> Sequence[GivenAnswer]:
        return await self._database.read(lambda each: answer_rows.answers_of(each, run_id))

    async def wait_for_answers(self, run_id: str, known: int) -> None:
        changed = asyncio.Event()

        def heard(key: str | None) -> None:
            if key is None or key == run_id:
                changed.set()

        async def no_more_to_wait_for(transaction: Transaction) -> bool:
            if not await answer_rows.takes_answers(transaction, run_id):
                return True
            return len(await answer_rows.answers_of(transaction, run_id)) > known

        stop = self._database.signals.listen(answer_rows.ANSWERS, heard)
        try:
            while True:
                changed.clear()
                if await self._database.read(no_more_to_wait_for):
                    return
                await changed.wait()
        finally:
            stop()

    async def end(self, run_id: str, fence: int, status: str) -> None:
        await self._log.flush(run_id)
        await self._database.write_at_once(self._ending(run_id, fence, status))
        self._log.let_go(run_id, fence)

    async def end_with(
        self, lease: SessionLease, snapshot: SessionSnapshot, run_id: str, fence: int, status: str
    ) -> SessionSnapshot:
        await self._log.flush(run_id)
        if isinstance(lease, SqlLease) and lease.database is self._database:
            committed = await lease.commit(snapshot, also=self._ending(run_id, fence, status))
            self._log.let_go(run_id, fence)
            return committed
        committed = await lease.commit(snapshot)
        await self.end(run_id, fence, status)
        return committed

    async def forget(self, run_id: str) -> None:
        await self._database.write(lambda each: execution_rows.forget(each, [run_id]))

    async def withdraw(self, run_id: str) -> bool:
        async def work(transaction: Transaction) -> bool:
            heads = await execution_rows.lock_heads(transaction, self._database, [run_id])
            head = heads.get(run_id)
            if head is None or head.fence or head.status != "submitted":
                return False
            await execution_rows.forget(transaction, [run_id])
            return True

        return await self._database.write(work)

    def _ending(self, run_id: str, fence: int, status: str) -> Work[None]:
        async def work(transaction: Transaction) -> None:
            head = await execution_rows.locked_head(transaction, self._database, run_id)
            if head.fence != fence:
                raise run_lost()
            # Ended under this very fence: the connection was lost after the commit.
            if head.status != "ended":
                await execution_rows.end(transaction, self._database, run_id, status)
            transaction.signal(answer_rows.ANSWERS, run_id)

        return work

    async def _fenced(self, transaction: Transaction, run_id: str, fence: int) -> Head:
        head = await execution_rows.locked_head(transaction, self._database, run_id)
        if head.fence != fence or head.status == "ended":
            raise run_lost()
        return head


async def _with_pictures(
    transaction: Transaction, run_id: str
) -> tuple[Row | None, dict[str, bytes]]:
    row = await execution_rows.row_of(transaction, run_id)
    texts = [row[1]] if row is not None else []
    return row, await execution_rows.pictures_in(transaction, [run_id], texts)


def _check_ids(submission: Submission) -> None:
    for what, value in (("run", submission.run_id), ("request", submission.request_id)):
        if not can_be_kept(value):
            raise HarnessError(f"The id of a {what} cannot be kept.", code="invalid_id")


def _reused(message: str) -> HarnessError:
    return HarnessError(
        message, hint="Nothing was started. Give each request an id of its own.",
        code="request_id_reused",
    )  # fmt: skip


def run_ended() -> HarnessError:
    return HarnessError(
        "This run has ended.", hint="Its answer is kept. Send a new message.", code="run_ended"
    )


def run_lost() -> LeaseLost:
    return LeaseLost(
        "This run was not written on: another process has gone on with it.",
        hint="What was written before is kept. Read the run again to see where it stands.",
    )
