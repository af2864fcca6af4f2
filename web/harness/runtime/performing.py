"""Performs a run in this process: its agent writes each step down, and is handed the answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Protocol

from web.harness.agent.pausing import RunPaused
from web.harness.agent.run import Permit
from web.harness.loop.actions import Action
from web.harness.loop.state import RunState
from web.harness.runtime.answer_feed import AnswerFeed
from web.harness.runtime.backend import Performed, Turn, executions_of
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.journal import Execution, Executions, Recorded, RunJournal, Step
from web.harness.sessions.opening import Stores
from web.harness.tools.finishing import see_through
from web.harness.values.errors import HarnessError
from web.harness.values.events import ErrorReport, EventBody, RunResult
from web.harness.values.json_form import NotSerialisable
from web.harness.values.text import sayable

log = logging.getLogger(__name__)

EVENTS_AT_ONCE = 1_000

FAILED_HINT = "The run was ended. What it did until then is kept."


class Steering(Protocol):
    """Decides when a run does what comes next, and hears what becomes of it."""

    def begun(
        self, execution: Execution, recorded: Recorded | None, lines: Lines, feed: AnswerFeed
    ) -> None:
        """The run was taken over; from now on `feed.hand_new` hands answers to it."""
        ...

    def permit(self, action: Action) -> Action | None:
        """See `Permit`."""
        ...

    def wrote(self, step: Step, state: RunState) -> None:
        """A step was handed to the journal, with the state after it."""
        ...


async def perform_here(stores: Stores, turn: Turn, steering: Steering | None = None) -> Performed:
    """Takes a run over and brings it to its end; see `Backend.perform`.

    Without `steering` it does all as soon as it can, and hears of answers by itself.
    """
    executions = executions_of(stores)
    execution, journal = await executions.begin(turn.run_id)
    recorded = await executions.recorded(turn.run_id) if execution.steps else None
    lines = Lines(turn.run_id, stores.events, journal, steering)
    feed = AnswerFeed(executions, turn.run_id, turn.agent, turn.answers_before)
    lines.feed = feed
    if steering is not None:
        steering.begun(execution, recorded, lines, feed)
    if recorded is not None and recorded.state.ending is not None:
        # It was cut off between its result and what is committed with it.
        told = await told_result(executions, stores.events, execution)
        if told is not None:
            return Performed(told, execution.fence, recorded)
    permit = steering.permit if steering is not None else feed.permit
    performing = asyncio.ensure_future(_performed(turn, lines, recorded, permit))
    feeding = asyncio.ensure_future(feed.hand_all() if steering is None else _nothing())
    try:
        await asyncio.wait({performing})
    except asyncio.CancelledError:
        # What the agent says of its end must not end the run: it is only cut off here.
        lines.cut()
        performing.cancel()
        await see_through(ended(performing))
        raise
    finally:
        feeding.cancel()
        await see_through(ended(feeding))
    try:
        return Performed(performing.result(), execution.fence)
    except RunPaused:
        if feed.pause_asked:
            await executions.set_status(turn.run_id, "paused", execution.fence)
        raise
    except NotSerialisable as error:
        result = await _ended_unwritten(executions, turn, lines, error)
        return Performed(result, execution.fence)


def _performed(
    turn: Turn, lines: Lines, recorded: Recorded | None, permit: Permit
) -> Coroutine[Any, Any, RunResult]:
    return turn.agent.perform(
        turn.submission.text,
        run_id=turn.run_id,
        emit=lines.emit,
        attachments=turn.submission.attachments,
        approver=turn.agent.approver,
        answerer=turn.agent.answerer,
        prepare=turn.prepare,
        keep_question=turn.keep_question,
        journal=lines,
        recorded=recorded,
        permit=permit,
    )


async def _ended_unwritten(
    executions: Executions, turn: Turn, lines: Lines, error: NotSerialisable
) -> RunResult:
    """Ends a run of which something cannot be written down: going on would only come to it again.

    It goes on from what was written, to its end alone, so that each call has its result. Raises the
    error where nothing was.
    """
    log.error("A run has something that cannot be written down: %s", error.message)
    await lines.settled()
    recorded = await executions.recorded(turn.run_id)
    if recorded is None:
        raise error
    stopped = False

    def stop_first(action: Action) -> Action | None:
        nonlocal stopped
        if not stopped:
            stopped = True
            turn.agent.cancel()
            return None
        return action

    lines.failure = error
    return lines.failed(await _performed(turn, lines, recorded, stop_first))


async def told_result(
    executions: Executions, events: EventLog, execution: Execution
) -> RunResult | None:
    """The result of a run as its events tell it; None where they do not have it."""
    run_id, cursor = execution.submission.run_id, await last_cursor(executions, execution)
    while page := (await events.read(run_id, cursor, EVENTS_AT_ONCE)).events:
        if isinstance(page[-1].body, RunResult):
            return page[-1].body
        cursor = page[-1].number
    return None


async def last_cursor(executions: Executions, execution: Execution) -> int:
    """The number of the last event before the newest step of a run."""
    start = max(execution.steps - 1, 0)
    for step in await executions.steps(execution.submission.run_id, start, 1):
        return step.cursor
    return 0


class Lines:
    """What a run writes, events and steps in their order; nothing more once it is cut.

    `feed` hears of the events, to answer questions that are put once more. With a `failure` the run
    is told to end with it.
    """

    def __init__(
        self, run_id: str, events: EventLog, journal: RunJournal, steering: Steering | None = None
    ) -> None:
        self.feed: AnswerFeed | None = None
        self.failure: HarnessError | None = None
        self._run_id = run_id
        self._events = events
        self._journal = journal
        self._steering = steering
        self._is_cut = False

    def cut(self) -> None:
        self._is_cut = True

    def emit(self, bodies: list[EventBody]) -> None:
        if self._is_cut:
            return
        if (error := self.failure) is not None:
            report = ErrorReport(error.code, sayable(error.message), FAILED_HINT)
            told: list[EventBody] = []
            for body in bodies:
                told += (report, self.failed(body)) if isinstance(body, RunResult) else (body,)
            bodies = told
        self._events.append(self._run_id, bodies)
        if self.feed is not None:
            self.feed.heard(bodies)

    def failed(self, result: RunResult) -> RunResult:
        """The result of a run that was only brought to its end."""
        code = self.failure.code if self.failure is not None else result.reason
        return replace(result, status="failed", reason=code)

    def write(self, step: Step, state: RunState) -> None:
        if not self._is_cut:
            self._journal.write(step, state)
            if self._steering is not None:
                self._steering.wrote(step, state)

    async def settled(self) -> None:
        if not self._is_cut:
            await self._journal.settled()


async def _nothing() -> None:
    """Whoever steers hears of answers."""


async def ended(task: asyncio.Future[Any]) -> None:
    """Waits for a task whatever comes of it."""
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
