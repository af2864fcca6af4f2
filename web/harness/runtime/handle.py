"""`RunHandle`: a run that was begun somewhere; its result and its events, as often as one likes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from web.harness.runtime.backend import executions_of
from web.harness.runtime.performing import last_cursor
from web.harness.sessions.event_log import MOST, EventPage
from web.harness.sessions.journal import Execution
from web.harness.sessions.opening import Stores
from web.harness.values.errors import AgentClosed, NotFound
from web.harness.values.events import Event, RunResult

EVENTS_AT_ONCE = 1_000

Performing = asyncio.Task[RunResult]
"""The run as it goes on in this process."""


class RunHandle:
    """Follows one run, whichever process performs it; one that is dropped stops nothing.

    Where this process performs it, its errors are raised here: RunPaused once it was paused,
    LeaseLost where another process has gone on with it, StoreError, and AgentClosed once the
    runtime was closed. In all these cases the run can be resumed.
    """

    def __init__(
        self, stores: Stores, execution: Execution, performing: Performing | None = None
    ) -> None:
        self._stores = stores
        self._execution = execution
        self._performing = performing
        self._taking = asyncio.Lock()
        self.instead: Callable[[], Awaitable[RunHandle | None]] | None = None
        """Goes on with the run here once nobody else has it; None where it has ended."""

    @property
    def run_id(self) -> str:
        return self._execution.submission.run_id

    @property
    def session_id(self) -> str:
        return self._execution.submission.session_id

    @property
    def request_id(self) -> str:
        return self._execution.submission.request_id

    @property
    def is_here(self) -> bool:
        """Whether this process performs the run now."""
        return self._performing is not None and not self._performing.done()

    async def result(self) -> RunResult:
        """Waits for the end of the run, and is the same each time. Raises NotFound for a run that
        was forgotten."""
        if self._performing is not None:
            return await _outcome_of(self._performing)
        executions = executions_of(self._stores)
        execution = await executions.find(self.run_id)
        if execution is not None:
            cursor = await last_cursor(executions, execution)
            async for event in self.stream(cursor):
                if isinstance(event.body, RunResult):
                    return event.body
        raise _forgotten()

    async def events(self, after: int = 0, limit: int = EVENTS_AT_ONCE) -> EventPage:
        """The events after a cursor that are there now, at most `limit`; see `EventLog.read`."""
        return await self._stores.events.read(self.run_id, after, limit)

    async def stream(self, after: int = 0) -> AsyncGenerator[Event, None]:
        """The events after a cursor, to the result: those of before, then as they come.

        A reader that comes again with the number of the last one it has seen sees each event once.
        Raises NotFound once the run is forgotten.
        """
        while True:
            page = await self._stores.events.read(self.run_id, after, EVENTS_AT_ONCE)
            for event in page.events:
                after = event.number
                is_last = isinstance(event.body, RunResult)
                if is_last and self._performing is not None:
                    # Whoever has the result may rely on the history, and send the next message.
                    await _outcome_of(self._performing)
                yield event
                if is_last:
                    return
            if not page.events and not await self._more(after):
                return

    async def _more(self, after: int) -> bool:
        """Waits for an event after the cursor; False where none will come.

        Raises what the run ended with where that is no result.
        """
        if self._performing is None:
            return await self._more_elsewhere(after)
        waiting = asyncio.ensure_future(self._stores.events.wait(self.run_id, after))
        try:
            await asyncio.wait({waiting, self._performing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            await asyncio.wait({waiting})
        if self._performing.done() and not (await self.events(after, 1)).events:
            await _outcome_of(self._performing)
            return False
        return True

    async def _more_elsewhere(self, after: int) -> bool:
        """The same of a run that others perform. Raises NotFound once it is forgotten, and what
        `instead` raises."""
        executions = executions_of(self._stores)
        waiting = {
            asyncio.ensure_future(self._stores.events.wait(self.run_id, after)),
            # It returns when no more can come.
            asyncio.ensure_future(executions.wait_for_answers(self.run_id, MOST)),
        }
        if self.instead is not None:
            waiting.add(asyncio.ensure_future(self._take(self.instead)))
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
        for task in done:
            task.result()
        if self._performing is not None or (await self.events(after, 1)).events:
            return True
        if await executions.find(self.run_id) is None:
            raise _forgotten()
        return False

    async def _take(self, instead: Callable[[], Awaitable[RunHandle | None]]) -> None:
        async with self._taking:
            here = await instead() if self._performing is None else None
            if here is not None:
                self._performing = here._performing


def _forgotten() -> NotFound:
    return NotFound("There is no result of this run.", hint="It was forgotten.")


async def _outcome_of(performing: Performing) -> RunResult:
    await asyncio.wait({performing})
    if performing.cancelled():
        raise AgentClosed(
            "The runtime was closed before the run had ended.",
            hint="What it did is kept. Resume the session to go on.",
        )
    return performing.result()
