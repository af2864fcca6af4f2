"""One run: what the loop decides is done here, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar, assert_never

from web.harness.agent.calls import Calls
from web.harness.agent.condenser import Condenser
from web.harness.agent.control import Control
from web.harness.agent.model_call import WITHOUT_PICTURES, ModelCalls, Prepare
from web.harness.agent.pausing import RunPaused, unwritten
from web.harness.agent.questions import Answer
from web.harness.agent.watch import Watch
from web.harness.loop.actions import (
    Action,
    AwaitApproval,
    AwaitInput,
    AwaitRecovery,
    CallModel,
    CallSettled,
    CallsStarted,
    CancelRequested,
    CancelTools,
    CondenseContext,
    ContextFull,
    Decided,
    Finish,
    InputGiven,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Resolved,
    RunTools,
)
from web.harness.loop.condensing import TOO_LONG
from web.harness.loop.machine import apply, next_action
from web.harness.loop.state import RunState
from web.harness.sessions.journal import Recorded
from web.harness.tools.hooks import HookEvent
from web.harness.tools.tool import InputAnswer
from web.harness.values.errors import HarnessError, first_error
from web.harness.values.events import ErrorReport, Note, Resolution, RunResult, Waiting
from web.harness.values.messages import Message
from web.harness.values.text import sayable

__all__ = ["WITHOUT_PICTURES", "Prepare", "Run"]

T = TypeVar("T")

Permit = Callable[[Action], Action | None]
"""Asked before each action, by whoever else decides when things are done. What it gives back is
done, of a `RunTools` maybe fewer calls; with None the run stands still until it is woken, or
something happens."""

_AWAITED = RunTools | AwaitApproval | AwaitRecovery | AwaitInput | CancelTools
"""After these something has to happen before it is clear what is next."""

INTERRUPTED = "The program was interrupted while this was written."
PAUSED = "The run was paused while this was written."


def at_once(action: Action) -> Action | None:
    """The `Permit` of a run that does everything as soon as it can be done."""
    return action


class Run:
    """Performs one run, from the person's message, or from where it was written down, to its
    `RunResult`.

    `watch` gets each batch of events, in order. Messages are appended to the conversation as they
    become complete. With `recorded` the run goes on; see `Recorded`.
    """

    _tasks: asyncio.TaskGroup

    def __init__(
        self,
        *,
        control: Control,
        models: ModelCalls,
        calls: Calls,
        condenser: Condenser,
        watch: Watch,
        recorded: Recorded | None = None,
        permit: Permit = at_once,
    ) -> None:
        self._control = control
        self._models = models
        self._calls = calls
        self._condenser = condenser
        self._watch = watch
        self._emit = watch.emit
        self._is_resumed = recorded is not None
        self._lacks_tools = self._is_resumed
        self._permit = permit
        self._model_task: asyncio.Task[Any] | None = None
        self._stopping = False
        self._pausing = False
        if recorded is not None:
            calls.recall(recorded.calls)
            watch.went_before(recorded.state.usage, recorded.state.cost)

    @property
    def run_id(self) -> str:
        return self.state.run_id

    @property
    def has_ended(self) -> bool:
        """Whether it has its result, and writes nothing any more."""
        return self._control.has_ended

    @property
    def state(self) -> RunState:
        return self._control.state

    async def execute(self) -> RunResult:
        """Runs to the end.

        Cancelling it stops model and tools and leaves a whole conversation. A run that is written
        down is left as it is instead, and goes on when it is resumed. Raises RunPaused, LeaseLost
        and StoreError.
        """
        async with self._opened():
            while True:
                await self._heed()
                action = self._permit(next_action(self.state))
                result = await self._perform(action) if action is not None else None
                if result is not None:
                    return result
                if action is None or isinstance(action, _AWAITED):
                    await self._next_outcome()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        """The run under way; leaving the block with an error stops it, see `execute`."""
        self._watch.started(HookEvent.RUN_STARTED)
        try:
            async with asyncio.TaskGroup() as self._tasks:
                try:
                    self._take_up()
                    yield
                except BaseException as error:
                    self._leave(error)
                    raise
        except BaseExceptionGroup as group:
            self._watch.silence()
            # Whoever runs an agent need not know that it has tasks.
            raise first_error(group) from group

    async def _next_outcome(self) -> None:
        """Waits for the next thing to happen among the calls, or for a person; it may be nothing
        that the loop has to be told."""
        outcome = await self._calls.inbox.get()
        too_late = isinstance(outcome, Decided | Resolved | InputGiven) and self.state.cancelling
        if outcome is not None and too_late:
            self._calls.tell(outcome, dropped=True)
        elif outcome is not None:
            self._apply(outcome)

    def tell(self, notes: Iterable[str]) -> None:
        """Remarks of the harness for the person, before anything happens."""
        for words in notes:
            self._emit([Note(words)])

    def cancel(self) -> None:
        """Stops model and tools; `execute` then returns a cancelled result. Twice is fine."""
        self._stopping = True
        self._interrupt()

    def pause(self) -> None:
        """Starts nothing more; `execute` raises RunPaused when the tools under way have ended.

        Raises RuntimeError for a run that is not written down: nothing could go on with it.
        """
        if not self._control.is_durable:
            raise unwritten()
        self._pausing = True
        self._interrupt()

    def decide(self, key: str, answer: Answer) -> None:
        """Answers a question. Raises DecisionRefused where it cannot be answered (so)."""
        self._calls.decide(key, answer)

    def answer_input(self, key: str, answer: InputAnswer) -> None:
        """Answers what a tool asks for. Raises DecisionRefused where it cannot be answered (so)."""
        self._calls.answer_input(key, answer)

    def resolve(self, key: str, how: Resolution, text: str = "") -> None:
        """Says what became of a call. Raises DecisionRefused where that cannot be said (so)."""
        self._calls.resolve(key, how, text)

    def wake(self) -> None:
        """Asks again what is permitted now."""
        self._calls.wake()

    def _interrupt(self) -> None:
        if self._model_task is not None:
            self._model_task.cancel()
        self._calls.wake()

    def _take_up(self) -> None:
        """Goes on where another process left the run."""
        if not self._is_resumed or self.has_ended:
            return
        action = next_action(self.state)
        if isinstance(action, CallModel):
            # Something may have been shown of an answer that nobody wrote down.
            self._models.take_back(action, INTERRUPTED)
        resumed = self._calls.take_up(self._tasks)
        self._control.apply(resumed, calls=self._calls.records())

    async def _heed(self) -> None:
        """Stops or pauses, where somebody said so. Raises RunPaused."""
        if self.has_ended:
            return
        if self._pausing and not (self._stopping or self.state.cancelling) and self._can_rest():
            self._control.note("paused")
            await self._control.settled()
            if not self._stopping:
                raise RunPaused
        if self._stopping and not self.state.cancelling:
            self._apply(CancelRequested())

    def _can_rest(self) -> bool:
        """Whether nothing is under way that would be lost."""
        if self.state.phase != "tools":
            return True
        running = (call.id for call in self.state.calls if call.status == "running")
        return self._calls.inbox.empty() and all(map(self._calls.can_rest, running))

    async def _perform(self, action: Action) -> RunResult | None:
        match action:
            case CallModel():
                await self._call_model(action)
            case CondenseContext():
                await self._condense(action)
            case RunTools(start, _):
                if start and not self._pausing:
                    await self._start(start)
            case AwaitApproval() | AwaitRecovery() | AwaitInput():
                await self._control.settled()
            case CancelTools(call_ids):
                self._calls.cancel(call_ids)
            case Finish():
                result = self._finish(action)
                await self._control.settled()
                return result
            case _:
                assert_never(action)
        return None

    async def _start(self, call_ids: tuple[str, ...]) -> None:
        """Starts calls; what may not be repeated runs only once it is sure to be known of it."""
        if self._lacks_tools:
            # Another process has prepared the tools for the model call that these come from.
            done = await self._interruptible(self._models.prepare())
            if done is None and (self._stopping or self._pausing):
                return
            self._lacks_tools = False
        self._calls.start(call_ids)
        self._apply(CallsStarted(call_ids))
        safe = tuple(filter(self._calls.is_safe, call_ids))
        self._calls.perform(safe, self._tasks)
        others = tuple(call_id for call_id in call_ids if call_id not in safe)
        if others:
            await self._control.settled()
            if not self._stopping:
                self._calls.perform(others, self._tasks)

    def _apply(self, outcome: Outcome) -> None:
        """Moves the state on by an outcome that is of no model call."""
        self._calls.tell(outcome)
        calls = self._calls.changed(outcome)
        about = {"seconds": calls[0].seconds} if isinstance(outcome, CallSettled) else None
        self._control.apply(outcome, message=self._results, calls=calls, about=about)

    def _results(self) -> Message:
        parent = self._control.conversation.last_id
        return Message(self.state.last_message_id, "tool", self._calls.results(), parent)

    async def _call_model(self, action: CallModel) -> None:
        models = self._models
        outcome = await self._interruptible(models.perform(action, self._tasks))
        if outcome is None and self._pausing and not self._stopping:
            if models.shown:
                models.take_back(action, PAUSED)
        elif outcome is None:
            outcome = CancelRequested(models.keep_partial())
            self._control.apply(outcome, message=lambda: models.draft)
        elif isinstance(outcome, ModelFailed):
            self._failed(action, replace(outcome, kept=models.keep_partial()))
        else:
            if isinstance(outcome, ContextFull) and models.shown:
                models.take_back(action, "The conversation is too long for the model.")
            records = self._calls.records() if isinstance(outcome, ModelAnswered) else ()
            self._control.apply(
                outcome, message=lambda: models.draft, calls=records, about=models.about
            )
        models.forget()

    def _failed(self, action: CallModel, outcome: ModelFailed) -> None:
        models, then = self._models, apply(self.state, outcome)
        if then.ending is None:
            models.take_back(action, outcome.message)
            self._emit([Waiting(outcome.message, then.delay)])
        self._control.apply(outcome, message=lambda: models.draft, about=models.about)

    async def _condense(self, action: CondenseContext) -> None:
        outcome = await self._interruptible(self._condenser.perform(action))
        if outcome is None and self._pausing and not self._stopping:
            return
        told = outcome if outcome is not None else CancelRequested()
        if apply(self.state, told).condensing is None:
            self._condenser.tell()
        about = {"step": action.condensing.step}
        self._control.apply(told, replaced=self._condenser.take_replaced(), about=about)

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What it gives; None where it was cut off by a stop or a pause."""
        self._model_task = task = self._tasks.create_task(work)
        await asyncio.wait({task})
        self._model_task = None
        return None if task.cancelled() else task.result()

    def _finish(self, action: Finish) -> RunResult:
        self._calls.close()
        state, ending = self.state, self.state.ending
        last = self._control.conversation.newest
        text = last.text if last is not None and state.last_role == "assistant" else ""
        result = RunResult(
            action.status, text, state.usage, state.cost, state.iterations, action.reason
        )
        if action.status == "failed" and ending is not None:
            error = HarnessError(ending.message or "The run failed.", hint=ending.hint)
            if action.reason == TOO_LONG:
                error = self._condenser.gauge.too_long()
            report = ErrorReport(action.reason, sayable(error.message), sayable(error.hint))
            self._emit([report, result])
        else:
            self._emit([result])
        return result

    def _leave(self, error: BaseException) -> None:
        """The run ends here without a result."""
        if self._control.is_durable:
            # Another process goes on with it: what now still happens must not be told or known.
            self._watch.silence()
            self._control.let_go()
        elif isinstance(error, asyncio.CancelledError):
            self._abandon()

    def _abandon(self) -> None:
        """Settles everything at once, without waiting, when the run's own task is cancelled."""
        if self.has_ended:
            return
        if not self.state.cancelling:
            kept = CancelRequested(self._models.keep_partial())
            self._control.apply(kept, message=lambda: self._models.draft)
        while isinstance(action := next_action(self.state), CancelTools):
            self._calls.cancel(action.call_ids)
            while not self._calls.inbox.empty():
                outcome = self._calls.inbox.get_nowait()
                if outcome is not None and not isinstance(outcome, Decided):
                    self._apply(outcome)
        if isinstance(action, Finish):
            self._finish(action)
