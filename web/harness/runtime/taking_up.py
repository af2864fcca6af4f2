"""What has to be right before a run is performed, and how one ends that nobody can go on with."""

from __future__ import annotations

from web.harness.agent.agent import Agent
from web.harness.agent.run import Prepare
from web.harness.runtime.backend import Performed, executions_of
from web.harness.runtime.fitting import check_fitting, needed_tools
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import Execution, Executions
from web.harness.sessions.opening import Stores
from web.harness.values.errors import HarnessError, NotFound, SessionConflict, StoreError
from web.harness.values.events import ErrorReport, RunResult
from web.harness.values.usage import Usage

UNREADABLE = ("store_corrupt", "from_the_future")
"""Errors of what is written down of a run; trying again does not help."""

HAS_BEGUN = "This session has another run that was cut off or paused."


async def to_perform(executions: Executions, run_id: str) -> Execution:
    """The run as it is now. Raises NotFound, and HarnessError (`run_ended`)."""
    current = await executions.find(run_id)
    if current is None:
        raise NotFound("There is no such run.", hint="It was forgotten.")
    if current.status == "ended":
        raise HarnessError(
            "This run has ended.", hint="Its result and its events are there.", code="run_ended"
        )
    return current


async def check_alone(
    executions: Executions, identity: HarnessIdentity, session_id: str, run_id: str
) -> None:
    """Raises SessionConflict (`run_unfinished`) where another run of the session has begun."""
    others = await executions.unfinished(identity, session_id)
    if any(each.submission.run_id != run_id and each.steps for each in others):
        raise SessionConflict(
            HAS_BEGUN,
            hint="Resume that one or cancel it. Nothing was begun.",
            code="run_unfinished",
        )


async def check_fit(
    executions: Executions, execution: Execution, agent: Agent, prepare: Prepare | None = None
) -> None:
    """Raises HarnessError (`runtime_differs`) for an agent that cannot go on with a run, and
    StoreError for a run that cannot be read."""
    if execution.unreadable is not None:
        raise execution.unreadable
    needed: tuple[str, ...] = ()
    if execution.state is not None and execution.state.calls:
        recorded = await executions.recorded(execution.submission.run_id, newest=True)
        if recorded is not None:
            needed = needed_tools(recorded.state, recorded.calls)
    if needed and prepare is not None:
        await prepare()
    check_fitting(execution.submission.fitting, agent, needed)


async def began_after(executions: Executions, execution: Execution) -> str | None:
    """The message that a run which has begun came after, '' for the first of its session; None for
    one that has not begun."""
    if not execution.steps:
        return None
    for step in await executions.steps(execution.submission.run_id, 0, 1):
        for message in step.step.messages:
            return message.parent_id or ""
    return None


async def unreadable(executions: Executions, execution: Execution) -> StoreError | None:
    """Why a run can never be gone on with: what was written of it cannot be read here."""
    if execution.unreadable is not None:
        return execution.unreadable
    try:
        await executions.recorded(execution.submission.run_id)
        await began_after(executions, execution)
    except StoreError as error:
        if error.code in UNREADABLE:
            return error
        raise
    return None


async def end_unread(stores: Stores, run_id: str, error: StoreError) -> Performed:
    """Ends a run as failed without reading what it did. Its events and its steps are kept."""
    execution, journal = await executions_of(stores).begin(run_id)
    result = RunResult("failed", "", Usage(), None, 0, error.code)
    hint = "The run was ended. The conversation is as it was before it; what it showed is kept."
    stores.events.append(run_id, [ErrorReport(error.code, error.message, hint), result])
    await journal.settled()
    return Performed(result, execution.fence)
