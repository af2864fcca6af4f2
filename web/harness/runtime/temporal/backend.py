"""`TemporalBackend`: runs are workflows, and everything they say is in a database."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Literal

from temporalio.client import Client
from temporalio.converter import DataConverter

from web.harness.runtime.backend import Alone, Missing, Performed, Turn, executions_of
from web.harness.runtime.performing import ended, last_cursor, told_result
from web.harness.runtime.sql import AddressedBackend
from web.harness.runtime.temporal.address import read_address
from web.harness.runtime.temporal.claims import Claims, Crew
from web.harness.runtime.temporal.connection import UNREACHABLE, Workflows, connect, patiently
from web.harness.runtime.temporal.payloads import HERE, Bounds, Start, Times
from web.harness.runtime.temporal.worker import own_queue, working
from web.harness.sessions.event_log import Listener
from web.harness.sessions.journal import Execution, Executions, GivenAnswer
from web.harness.sessions.opening import Stores
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.tools.finishing import see_through
from web.harness.values.errors import LeaseLost, StoreError

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""After the database failed."""

LOOK_SECONDS = 5.0
"""Between two looks whether Temporal answers, and whether workers are there for a run that is left
to them."""

BACK_SECONDS = 2.0
"""The same while something is missing."""

GRACE_SECONDS = 30.0
"""For what is under way when a worker ends: long enough for most answers of a model."""

PATIENCE_SECONDS = 20.0
"""In which a server of Temporal should have started."""

Where = Literal["here", "elsewhere", "any"]


class TemporalBackend(AddressedBackend):
    """The `Backend` that has Temporal keep the runs under way; see `read_address`.

    With `workers="here"` a run is performed by its own agent in this process, on a task queue of
    its own: what only this process has, such as a connection that a person opened by hand, is
    there. With `"elsewhere"` it is left to the workers of the address's queue, which make the agent
    themselves, and with `"any"` to these if there are any. A turn that is `only_here` is performed
    here. While Temporal cannot be reached, a run waits `patience` seconds to be given to it; one
    that was given to it waits as long as it takes. `now` returns seconds since the epoch,
    `listener` is that of the event log.
    """

    def __init__(
        self,
        address: str,
        *,
        workers: Where = "here",
        times: Times | None = None,
        bounds: Bounds | None = None,
        patience: float = PATIENCE_SECONDS,
        converter: DataConverter = DataConverter.default,
        now: Callable[[], float] = time.time,
        listener: Listener | None = None,
    ) -> None:
        """Raises ConfigurationError for an address that is none."""
        self._read = read_address(address)
        super().__init__(self._read.events, now=now, listener=listener)
        self._workers: Where = workers
        self._times = times
        self._bounds = bounds if bounds is not None else Bounds()
        self._patience = patience
        self._converter = converter
        self._listens = listener is not None
        self._client: Client | None = None

    async def perform(self, turn: Turn) -> Performed:
        """See `Backend.perform`. Raises HarnessError with a worker's words where none can, and
        StoreError (`temporal_unreachable`) where the run could not be given to Temporal."""
        stores, run_id = await self.open(), turn.run_id
        executions = executions_of(stores)
        workflows, queue = await self._taken(turn)
        is_here = queue != self._read.queue
        times = self._times or (HERE if is_here else Times())
        start = Start(run_id, queue, times, self._bounds)
        async with AsyncExitStack() as stack:
            if turn.alone is not None:
                await stack.enter_async_context(_minded(workflows, turn.alone, is_here=is_here))
            if is_here:
                await stack.enter_async_context(self._serving(stores, turn, queue))
            elif self._listens:
                await _follow(stores, run_id)
            await stack.enter_async_context(_passed_on(executions, workflows, run_id))
            tell = bool(await executions.answers(run_id))
            await workflows.run(start, tell=tell, patience=self._patience)
        execution = await executions.find(run_id)
        recorded = await executions.recorded(run_id)
        if execution is None or recorded is None:
            raise LeaseLost("The run is not there any more.", hint="It was deleted meanwhile.")
        result = await told_result(executions, stores.events, execution)
        if result is None:
            raise StoreError("The run has ended, and its result was not written down.")
        for name, key in recorded.state.grants:
            # Whoever allowed it for the chat meant the turns after this one too.
            turn.agent.permissions.grant(name, key)
        return Performed(result, execution.fence, recorded)

    async def answered(self, run_id: str, answer: GivenAnswer) -> None:
        """Tells the workflow; without one nobody waits, and whoever resumes the run looks.

        Where Temporal cannot be reached the answer is kept: whoever waits for the run passes it on.
        """
        try:
            await (await self._workflows()).tell(run_id, answer.key)
        except StoreError as error:
            log.warning("A workflow is told of an answer later: %s", error.message)

    @asynccontextmanager
    async def working(self, crew: Crew, *, grace: float = GRACE_SECONDS) -> AsyncIterator[None]:
        """Performs the runs that are left to the workers of the address's queue, in this process.

        At the end, what is under way has `grace` seconds to finish; another worker goes on with the
        rest. Raises as `open` and `perform`.
        """
        queue = self._read.queue
        async with self._claiming(await self.open(), crew, queue, grace=grace):
            yield

    @asynccontextmanager
    async def _claiming(
        self, stores: Stores, crew: Crew, queue: str, *, grace: float = 0.0
    ) -> AsyncIterator[None]:
        client, workflows = await self._connected(), await self._workflows()
        own = own_queue(queue)
        claims = Claims(stores, crew, workflows.tell, own)
        async with working(client, queue, own, claims, grace=grace):
            yield

    async def _taken(self, turn: Turn) -> tuple[Workflows, str]:
        """See `_given_to`; while Temporal cannot be reached, `turn.alone` is told so."""
        try:
            given = await self._given_to(turn)
        except StoreError as error:
            if error.code != UNREACHABLE or not error.transient:
                raise
            if turn.alone is not None:
                turn.alone("temporal")
            given = await patiently(lambda: self._given_to(turn), self._patience)
        if turn.alone is not None:
            turn.alone("")
        return given

    async def _given_to(self, turn: Turn) -> tuple[Workflows, str]:
        """The queue of the workers that perform a run: a workflow that is there keeps its own."""
        workflows = await self._workflows()
        shared, own = self._read.queue, workflows.id_of(turn.run_id)
        if known := await workflows.queue_of(turn.run_id):
            if known == own:
                # Its session is held here: whoever performed it is dead, or does so no more.
                await workflows.take(turn.run_id)
            return workflows, known
        if turn.only_here or self._workers == "here":
            return workflows, own
        left = self._workers == "elsewhere" or await workflows.has_workers()
        return workflows, shared if left else own

    def _serving(self, stores: Stores, turn: Turn, queue: str) -> AbstractAsyncContextManager[None]:
        """Performs this run here, with its own agent."""

        @asynccontextmanager
        async def crew(execution: Execution) -> AsyncIterator[Turn]:
            yield turn

        return self._claiming(stores, crew, queue)

    async def _workflows(self) -> Workflows:
        return Workflows(await self._connected(), self._read.queue)

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await connect(self._read, self._converter)
        return self._client


def server_backend(
    address: str, *, now: Callable[[], float], listener: Listener | None = None
) -> TemporalBackend:
    """The backend of a server of chats: it leaves what it can to workers, if there are any."""
    return TemporalBackend(address, workers="any", now=now, listener=listener)


async def _follow(stores: Stores, run_id: str) -> None:
    """Has the listener of this process told what a worker writes from now on, to the result."""
    events, executions = stores.events, executions_of(stores)
    if not isinstance(events, SqlEventLog):
        raise TypeError("The events of a backend are in a database.")
    if events.is_followed(run_id):
        return  # As from before it was paused.
    execution = await executions.find(run_id)
    after = await last_cursor(executions, execution) if execution is not None else 0
    while page := (await events.read(run_id, after)).events:
        after = page[-1].number
    await events.follow(run_id, after)


@asynccontextmanager
async def _minded(workflows: Workflows, alone: Alone, *, is_here: bool) -> AsyncIterator[None]:
    """Says at each look what is missing; a worker counts as there for a while."""
    minding = asyncio.ensure_future(_mind(workflows, alone, is_here))
    try:
        yield
    finally:
        minding.cancel()
        await see_through(ended(minding))


async def _mind(workflows: Workflows, alone: Alone, is_here: bool) -> None:
    while True:
        missing: Missing = ""
        try:
            if is_here:
                await workflows.check()
            elif not await workflows.has_workers():
                missing = "worker"
        except StoreError as error:
            missing = "temporal"
            log.warning("A run goes on once Temporal answers: %s", error.message)
        alone(missing)
        await asyncio.sleep(BACK_SECONDS if missing else LOOK_SECONDS)


@asynccontextmanager
async def _passed_on(
    executions: Executions, workflows: Workflows, run_id: str
) -> AsyncIterator[None]:
    """Tells the workflow of answers that were written by those who know no Temporal."""
    passing = asyncio.ensure_future(_pass_answers(executions, workflows, run_id))
    try:
        yield
    finally:
        passing.cancel()
        await see_through(ended(passing))


async def _pass_answers(executions: Executions, workflows: Workflows, run_id: str) -> None:
    known, first = 0, True
    while True:
        try:
            given = await executions.answers(run_id)
            for answer in given[known:]:
                if not first:
                    await workflows.tell(run_id, answer.key)
            if not first and len(given) == known:
                return
            known, first = len(given), False
            await executions.wait_for_answers(run_id, known)
        except StoreError as error:
            log.warning("The answers to a run cannot be passed on now: %s", error.message)
            await asyncio.sleep(AGAIN_SECONDS)
