"""How a run stands, whoever performs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from web.harness.loop.state import RunState
from web.harness.runtime.backend import executions_of
from web.harness.runtime.performing import told_result
from web.harness.runtime.questions import Question, open_questions
from web.harness.runtime.taking_up import UNREADABLE
from web.harness.sessions.journal import Execution, ExecutionStatus
from web.harness.sessions.opening import Stores
from web.harness.values.errors import StoreError
from web.harness.values.events import RunResult
from web.harness.values.usage import Usage

RunStatus = ExecutionStatus | Literal["waiting"]
"""How a run is written down, or that it goes on only once a person has answered."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """How a run stands. `pending` is what it waits for a person for. `is_here` says that this
    runtime performs it; where it is False and the status "running", another process does, or the
    run was cut off. `unreadable` says why it can only be cancelled, where what is written of it
    cannot be read. Times are seconds since the epoch, `cost` is dollars."""

    run_id: str
    session_id: str
    request_id: str
    status: RunStatus
    pending: tuple[Question, ...]
    is_here: bool
    iterations: int
    usage: Usage
    cost: float | None
    created_at: float
    changed_at: float
    unreadable: str = ""


async def info_of(stores: Stores, execution: Execution, *, is_here: bool) -> RunInfo:
    """Of one that has ended, what its result says. Raises StoreError where the database fails."""
    executions, submission = executions_of(stores), execution.submission
    told: RunState | RunResult | None = execution.state
    pending: tuple[Question, ...] = ()
    unreadable = execution.unreadable
    try:
        if execution.status == "ended":
            told = await told_result(executions, stores.events, execution)
        else:
            pending = await open_questions(executions, stores.events, submission.run_id)
    except StoreError as error:
        if error.code not in UNREADABLE:
            raise
        unreadable = unreadable or error
    return RunInfo(
        submission.run_id,
        submission.session_id,
        submission.request_id,
        "waiting" if _waits(execution, pending) else execution.status,
        pending,
        is_here,
        told.iterations if told is not None else 0,
        told.usage if told is not None else Usage(),
        told.cost if told is not None else None,
        execution.created_at,
        execution.changed_at,
        unreadable.message if unreadable is not None else "",
    )


def _waits(execution: Execution, pending: tuple[Question, ...]) -> bool:
    """Whether a person alone can make a run go on: all that runs has asked for something."""
    if execution.status != "running" or not pending or execution.state is None:
        return False
    asking = {question.call_id for question in pending}
    calls = execution.state.calls
    return all(call.status != "running" or call.id in asking for call in calls)
