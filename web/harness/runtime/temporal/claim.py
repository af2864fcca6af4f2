"""One run that a worker has: its own loop stands still until the workflow asks for an action."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import assert_never

from web.harness.agent.pausing import RunPaused
from web.harness.loop.actions import (
    Action,
    AwaitApproval,
    AwaitInput,
    AwaitRecovery,
    CallModel,
    CallSettled,
    CallsStarted,
    CancelTools,
    CondenseContext,
    Finish,
    Outcome,
    RunTools,
)
from web.harness.loop.machine import next_action
from web.harness.loop.state import RunState
from web.harness.runtime.answer_feed import AnswerFeed
from web.harness.runtime.backend import Turn, executions_of
from web.harness.runtime.given_answers import is_stopped
from web.harness.runtime.performing import Lines, ended, perform_here
from web.harness.runtime.taking_up import check_fit
from web.harness.runtime.temporal.payloads import News, Task, What, packed
from web.harness.sessions.journal import Execution, Recorded, Step
from web.harness.sessions.journal_form import outcome_to_json
from web.harness.sessions.opening import Stores
from web.harness.tools.finishing import see_through
from web.harness.values.errors import LeaseLost, NotFound, StoreError

TURNS = 5
"""Of the event loop, until a run has heard what was put into its inbox."""


class Claim:
    """Performs one run under a fence of its own; see `Steering` for what it decides.

    `outcomes` are what the loop was told here, in order; `fence` is known once it is open.
    """

    def __init__(
        self,
        stores: Stores,
        crew: Callable[[Execution], AbstractAsyncContextManager[Turn]],
        tell: Callable[[str], Awaitable[None]],
        run_id: str,
        before: int | None = None,
    ) -> None:
        self.run_id = run_id
        self.fence = 0
        self.outcomes: list[Outcome] = []
        self._stores = stores
        self._crew = crew
        self._tell = tell
        self._before = before
        self._turn: Turn | None = None
        self._state: RunState | None = None
        self._lines: Lines | None = None
        self._feed: AnswerFeed | None = None
        self._permits: set[What] = set()
        self._tools: set[str] = set()
        self._active: list[Task] = []
        self._is_open = False
        self._waiters: list[asyncio.Future[None]] = []
        self._running: asyncio.Future[None] | None = None
        self._telling: asyncio.Future[None] | None = None
        self._is_untold = False
        self._is_let_go = False
        self._hearing: asyncio.Future[None] | None = None

    @property
    def told(self) -> int:
        """How many outcomes there are."""
        return len(self.outcomes)

    @property
    def is_busy(self) -> bool:
        return bool(self._active)

    @property
    def is_over(self) -> bool:
        """Whether nothing of the run happens here any more."""
        return self._running is None or self._running.done()

    @property
    def goes_on(self) -> bool:
        """Whether calls alone are under way, or nothing, in a run that is not over."""
        return not self.is_over and all(task.what == "tool" for task in self._active)

    async def open(self) -> RunState:
        """Takes the run over and returns where it stands.

        Raises what making the agent raises, and HarnessError (`runtime_differs`) for one that does
        not fit the run."""
        self._running = asyncio.ensure_future(self._run())
        await self._until(lambda: self._is_open)
        if not self._is_open:
            self._raise()
        elif self._feed is not None:
            await self._feed.hand_new()
            self._hearing = asyncio.ensure_future(self._hear_stop(self._feed))
        return await self._settled_state()

    async def stand(self) -> RunState:
        """Where the run stands here. Raises LeaseLost where another has it."""
        if not await self._is_ours():
            raise LeaseLost("Another worker has the run.")
        if self._feed is not None:
            await self._feed.hand_new()
        return await self._settled_state()

    async def is_needed(self) -> bool:
        """Whether calls are under way here of which nobody else could tell what they did."""
        calls = self._state.calls if self._state is not None else ()
        if self.is_over or all(call.status != "running" for call in calls):
            return False
        try:
            return await self._is_ours()
        except StoreError:
            return True  # Nobody else can take it now.

    async def _is_ours(self) -> bool:
        execution = await executions_of(self._stores).find(self.run_id)
        return execution is not None and execution.fence == self.fence

    async def _settled_state(self) -> RunState:
        if self._lines is not None:
            await self._lines.settled()
        if self._state is None:
            raise RuntimeError("A run was taken up without a state.")
        return self._state

    async def perform(self, task: Task) -> News:
        """Does what it says, and returns what the loop was told since `task.known`.

        What was told is committed by then. Raises LeaseLost where another has the run.
        """
        self._active.append(task)
        try:
            await self._do(task)
            if self._lines is not None:
                await self._lines.settled()
            paused = self._raise()
        finally:
            self._active.remove(task)
        new = [outcome_to_json(outcome) for outcome in self.outcomes[task.known :]]
        return News(task.known, packed(new), paused)

    async def aclose(self) -> None:
        """Stops the run here, as if the process had ended; twice is fine."""
        self._is_let_go = True
        for task in (self._hearing, self._running, self._telling):
            if task is not None:
                task.cancel()
                await see_through(ended(task))

    # What follows is asked and told by the run: see `Steering`.

    def begun(
        self, execution: Execution, recorded: Recorded | None, lines: Lines, feed: AnswerFeed
    ) -> None:
        self.fence, self._lines, self._feed = execution.fence, lines, feed
        if recorded is not None:
            self._state = recorded.state

    def permit(self, action: Action) -> Action | None:
        if not self._is_open:
            self._is_open = True
            self._wake()
        match action:
            case RunTools(start, running):
                return RunTools(tuple(each for each in start if each in self._tools), running)
            case CallModel() | CondenseContext() | CancelTools() | Finish():
                what = _asked_by(action)
                if what not in self._permits:
                    return None
                if what != "cancel":
                    self._permits.discard(what)
                return action
            case AwaitApproval() | AwaitInput() | AwaitRecovery():
                return action
            case _:
                assert_never(action)

    def wrote(self, step: Step, state: RunState) -> None:
        self._state = state
        if step.outcome is not None:
            self.outcomes.append(step.outcome)
            self._wake()
            if self._is_open and not self._is_awaited(step.outcome):
                self.tell()

    async def _run(self) -> None:
        try:
            execution = await executions_of(self._stores).find(self.run_id)
            if execution is None:
                raise NotFound(f"There is no run {self.run_id}.")
            async with self._crew(execution) as turn:
                if turn.answers_before is None:
                    turn = replace(turn, answers_before=self._before)
                self._turn = turn
                await self._check_fit(execution, turn)
                await perform_here(self._stores, turn, self)
        finally:
            # Whoever waits has to look, once this has ended.
            asyncio.get_running_loop().call_soon(self._over)

    async def _check_fit(self, execution: Execution, turn: Turn) -> None:
        """Raises HarnessError (`runtime_differs`); one that a person stopped only ends, with any
        agent."""
        executions = executions_of(self._stores)
        given = await executions.answers(self.run_id)
        if not any(answer.kind == "cancel" for answer in given):
            await check_fit(executions, execution, turn.agent, turn.prepare)

    def _over(self) -> None:
        self._wake()
        if self._is_open and not self._active:
            self.tell()

    async def _do(self, task: Task) -> None:
        match task.what:
            case "model" | "condense" | "finish" | "cancel":
                await self._once(task.what)
            case "tool":
                self._tools.add(task.call_id)
                self._look()
                await self._until(lambda: self._is_settled(task.call_id))
            case "answers":
                if self._feed is not None:
                    await self._feed.hand_new()
                # The run takes them up in its next turns; of what comes later the workflow is told.
                for _ in range(TURNS):
                    await asyncio.sleep(0)
            case _:
                assert_never(task.what)

    async def _once(self, what: What) -> None:
        """Lets the run do what comes next, where it is this, and waits for what comes of it."""
        state = self._state
        if state is None or _asked_by(next_action(state)) != what:
            return
        before = self.told
        self._permits.add(what)
        self._look()
        match what:
            case "finish":
                await self._until(lambda: False)
            case "cancel":
                await self._until(self._has_ended)
            case _:
                await self._until(lambda: self.told > before)

    async def _hear_stop(self, feed: AnswerFeed) -> None:
        """A person who stops the run need not wait until the workflow is told, and asks for it."""
        if await is_stopped(executions_of(self._stores), self.run_id):
            self._permits.add("cancel")
            await feed.hand_new()
        elif self._running is not None:
            # Others have ended it: nothing of it is of any use, unless it ended here.
            self._running.cancel()

    def _has_ended(self) -> bool:
        return self._state is not None and self._state.ending is not None

    def _is_settled(self, call_id: str) -> bool:
        call = self._state.call(call_id) if self._state is not None else None
        return call is None or call.status == "settled"

    def _raise(self) -> bool:
        """Raises what the run ended with here; returns whether it was paused."""
        if self._running is None or not self._running.done():
            return False
        if self._running.cancelled():
            raise LeaseLost("The run was let go here.")
        error = self._running.exception()
        if error is None or isinstance(error, RunPaused):
            return error is not None
        raise error

    def _look(self) -> None:
        """Has the run ask again what it may do."""
        if self._turn is not None:
            self._turn.agent.wake()

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Returns when that holds, or the run goes on here no more."""
        while not holds() and not self.is_over:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _is_awaited(self, outcome: Outcome) -> bool:
        """Whether an action that is under way tells the workflow of it."""
        if any(task.what != "tool" for task in self._active):
            return True
        if isinstance(outcome, CallSettled):
            return any(task.call_id == outcome.call_id for task in self._active)
        return isinstance(outcome, CallsStarted)

    def tell(self) -> None:
        """Has the workflow ask what was written; of a run that is let go it asks with the next
        answer."""
        self._is_untold = not self._is_let_go
        if self._is_untold and (self._telling is None or self._telling.done()):
            self._telling = asyncio.ensure_future(self._told())

    async def _told(self) -> None:
        # What happens meanwhile may come too late for what the workflow asks then.
        while self._is_untold:
            self._is_untold = False
            await self._tell(self.run_id)


def _asked_by(action: Action) -> What | None:
    match action:
        case CallModel():
            return "model"
        case CondenseContext():
            return "condense"
        case CancelTools():
            return "cancel"
        case Finish():
            return "finish"
        case RunTools():
            return "tool"
        case AwaitApproval() | AwaitInput() | AwaitRecovery():
            return None
        case _:
            assert_never(action)
