"""The workflow of one run: the loop decides, activities on a worker perform and write down.

It is replayed from its history: nothing here reads a clock or draws a number, and every change of
what it schedules needs `workflow.patched`. See `tests/harness/runtime/temporal` for the recorded
histories that have to go on replaying.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, assert_never

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutError as TimedOut,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from web.harness.loop.actions import (
        AwaitApproval,
        AwaitInput,
        AwaitRecovery,
        CallModel,
        CancelTools,
        CondenseContext,
        Finish,
        RunTools,
    )
    from web.harness.loop.machine import apply, next_action
    from web.harness.loop.state import RunState
    from web.harness.runtime.temporal.payloads import (
        Claimed,
        News,
        Start,
        Task,
        What,
        packed,
        unpacked,
    )
    from web.harness.sessions.journal_form import outcome_from_json

WORKFLOW = "harness-run"
CLAIM = "claim"
PERFORM = "perform"
ANSWERED = "answered"

TAKEN = "taken"

PAUSED = "paused"

LOST = "lost"
"""The type of a failure that another claim may mend."""

REFUSED = "refused"
"""The type of a failure that no other worker would be spared."""

LOSSES = 20
"""In a row, without anything done between them: then no worker is asked any more."""

NOBODY = (
    "No worker could go on with this run: each one failed or was gone before anything was done.",
    "run_interrupted",
    "The logs of the workers say why. Resume the run when that is mended.",
)

FORMER_FIRST = "former-first"
"""The patch since which a worker that was lost with a call under way is asked for it first."""

ONCE = RetryPolicy(maximum_attempts=1)
"""Whether something is done again is the loop's to decide."""

LONGEST = timedelta(days=3_650)
"""Of an activity: a tool may wait for a person. A dead worker is known by its heartbeats."""


@workflow.defn(name=WORKFLOW)
class RunWorkflow:
    """Ends with the run's status, or with `paused`; the journal has everything else."""

    @workflow.init
    def __init__(self, start: Start) -> None:
        self._start = start
        self._claimed = start.claimed
        self._state = _state_of(start.claimed) if start.claimed is not None else None
        self._known = start.claimed.known if start.claimed is not None else 0
        self._told = list(start.told)
        self._heard: set[str] = set()
        self._flight: dict[str, workflow.ActivityHandle[News]] = {}
        self._losses = 0
        self._former = ""
        self._paused = False
        self._is_taken = False

    @workflow.signal(name=ANSWERED)
    def answered(self, key: str) -> None:
        """A person's answer of this key is written in the journal; '' for whatever is there."""
        if not key or key not in self._heard:
            self._heard.add(key)
            self._told.append(key)

    @workflow.signal(name=TAKEN)
    def taken(self) -> None:
        """The process that alone performs this run is a new one: whoever claimed it is gone."""
        self._is_taken = True

    @workflow.run
    async def run(self, start: Start) -> str:
        while True:
            if self._is_taken:
                self._be_taken()
            state = self._state if self._state is not None else await self._claim()
            if self._paused and not self._flight:
                return PAUSED
            if not self._flight and self._is_long():
                workflow.continue_as_new(self._rest(state))
            self._schedule(state)
            await workflow.wait_condition(self._has_news)
            for name in [name for name, each in self._flight.items() if each.done()]:
                # One that was lost takes all others with it.
                if name in self._flight and self._take(name) and name == "finish":
                    return state.ending.status if state.ending is not None else ""

    def _schedule(self, state: RunState) -> None:
        """Has the worker do what is to be done now and is not under way."""
        if self._told and "answers" not in self._flight:
            self._told.clear()
            self._perform("answers")
        if self._paused:
            return
        action = next_action(state)
        match action:
            case CallModel():
                self._perform("model")
            case CondenseContext():
                self._perform("condense")
            case RunTools(start, running):
                is_kept = self._claimed is not None and self._claimed.kept
                for call_id in (*start, *running) if is_kept else start:
                    self._perform("tool", call_id)
            case CancelTools():
                self._perform("cancel")
            case Finish():
                # What came too late is looked at all the same, so that nobody waits for it.
                if not self._flight:
                    self._perform("finish")
            case AwaitApproval() | AwaitInput() | AwaitRecovery():
                pass
            case _:
                assert_never(action)

    def _perform(self, what: What, call_id: str = "") -> None:
        name = f"{what} {call_id}" if call_id else what
        if name in self._flight or self._claimed is None:
            return
        times, claimed = self._start.times, self._claimed
        task = Task(self._start.run_id, claimed.fence, what, call_id, self._known)
        self._flight[name] = workflow.start_activity(
            PERFORM,
            task,
            result_type=News,
            task_queue=claimed.queue,
            schedule_to_start_timeout=timedelta(seconds=times.start),
            start_to_close_timeout=LONGEST,
            heartbeat_timeout=timedelta(seconds=times.heartbeat),
            retry_policy=ONCE,
        )

    def _has_news(self) -> bool:
        return (
            self._is_taken
            or any(each.done() for each in self._flight.values())
            or (bool(self._told) and "answers" not in self._flight)
        )

    def _take(self, name: str) -> bool:
        """Hears what an activity tells; False where the worker is lost with the run."""
        try:
            news = self._flight.pop(name).result()
        except ActivityError as error:
            had_tools = any(each.startswith("tool ") for each in (name, *self._flight))
            if self._claimed is not None and had_tools and isinstance(error.cause, TimedOut):
                # It may only have been cut off from Temporal: the call goes on there, and nobody
                # else could tell what becomes of it.
                self._former = self._claimed.queue
            self._lose()
            return False
        self._losses = 0
        self._paused = self._paused or news.paused
        leaves = news.leaving and not self._flight
        for form in unpacked(news.outcomes)[self._known - news.first :]:
            if self._state is not None:
                self._state = apply(self._state, outcome_from_json(form))
                self._known += 1
        if leaves and name != "finish" and not self._paused:
            self._claimed = self._state = None
        return True

    def _lose(self) -> None:
        """The journal knows how far the worker came: whoever claims the run says so."""
        for each in self._flight.values():
            _give_up(each)
        self._flight.clear()
        self._claimed = self._state = None
        self._paused = False
        self._losses += 1

    def _be_taken(self) -> None:
        self._is_taken, self._former = False, ""
        self._lose()
        self._losses = 0

    async def _claim(self) -> RunState:
        """Offers the run to all workers, until one has it; first to a former one that may live."""
        times = self._start.times
        while True:
            if self._is_taken:
                self._be_taken()
            if self._losses > LOSSES:
                raise ApplicationError(*NOBODY, type=REFUSED, non_retryable=True)
            if self._losses > 1 and not self._former:
                pause = min(2.0 ** (self._losses - 2), times.patience)
                with suppress(TimeoutError):
                    await workflow.wait_condition(lambda: self._is_taken, timeout=pause)
                    continue
            former, self._former = self._former, ""
            if former and not workflow.patched(FORMER_FIRST):
                former = ""
            try:
                claimed = await self._offer(former)
            except ActivityError as error:
                if isinstance(error.cause, ApplicationError) and error.cause.type == REFUSED:
                    raise _refused(error.cause) from None
                if is_cancelled_exception(error):
                    raise
                if not former:
                    self._losses += 1
                continue
            if claimed is not None:
                self._claimed = claimed
                self._state, self._known = _state_of(claimed), claimed.known
                return self._state

    async def _offer(self, former: str) -> Claimed | None:
        """To the worker of a queue of its own, or to all. None where whoever was claiming the run
        is gone, too."""
        start = timedelta(seconds=self._start.times.start)
        claiming: workflow.ActivityHandle[Claimed] = workflow.start_activity(
            CLAIM,
            args=[self._start.run_id, self._start.before],
            result_type=Claimed,
            task_queue=former or self._start.queue,
            schedule_to_start_timeout=start if former else None,
            start_to_close_timeout=LONGEST,
            heartbeat_timeout=timedelta(seconds=self._start.times.heartbeat),
            retry_policy=ONCE,
        )
        await workflow.wait_condition(lambda: claiming.done() or self._is_taken)
        if not self._is_taken:
            return claiming.result()
        _give_up(claiming)
        self._be_taken()
        return None

    def _is_long(self) -> bool:
        info, bounds = workflow.info(), self._start.bounds
        return (
            info.get_current_history_length() > bounds.events
            or info.get_current_history_size() > bounds.bytes
        )

    def _rest(self, state: RunState) -> Start:
        claimed = self._claimed
        if claimed is not None:
            claimed = replace(claimed, state=packed(state.as_json()), known=self._known)
        return replace(self._start, claimed=claimed, told=tuple(self._told))


def _give_up(activity: asyncio.Task[Any]) -> None:
    activity.add_done_callback(_overlook)
    activity.cancel()


def _overlook(given_up: asyncio.Future[Any]) -> None:
    """What becomes of it does not count."""
    if not given_up.cancelled():
        given_up.exception()


def _refused(cause: ApplicationError) -> ApplicationError:
    return ApplicationError(cause.message, *cause.details, type=REFUSED, non_retryable=True)


def _state_of(claimed: Claimed) -> RunState:
    return RunState.from_json(unpacked(claimed.state))
