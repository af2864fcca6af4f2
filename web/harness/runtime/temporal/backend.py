"""`TemporalBackend`: runs are workflows, and everything they say is in a database."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    suppress,
)
from typing import Any, Literal, TypeVar

from temporalio.client import Client
from temporalio.converter import DataConverter

from web.harness.runtime.backend import Alone, Missing, Performed, Turn, executions_of
from web.harness.runtime.given_answers import all_given, is_stopped
from web.harness.runtime.performing import ended, last_cursor, perform_here, told_result
from web.harness.runtime.sql import AddressedBackend
from web.harness.runtime.temporal.address import read_address
from web.harness.runtime.temporal.claims import Claims, Crew
from web.harness.runtime.temporal.connection import Workflows, connect, missing_of, patiently
from web.harness.runtime.temporal.payloads import HERE, Bounds, Start, Times
from web.harness.runtime.temporal.worker import own_queue, working
from web.harness.sessions.event_log import Listener
from web.harness.sessions.journal import Execution, Executions, GivenAnswer
from web.harness.sessions.opening import Stores
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.tools.finishing import see_through
from web.harness.values.errors import LeaseLost, StoreError

T = TypeVar("T")

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Between two looks whether Temporal answers, and whether workers are there for a run that is left
to them."""

BACK_SECONDS = 2.0
"""The same while something is missing."""

UNTAKEN_SECONDS = 3.0
"""What no worker takes up for so long is left alone: those that live take longer in no case."""

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
    that was given to it waits as long as it takes. What a person stops while there is nobody who
    could stop it is ended here, without Temporal. `now` returns seconds since the epoch, `listener`
    is that of the event log.

    It looks whether Temporal answers, as long as it is open, and `failure` says why it does not:
    from the first run on, with a listener at once.
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
        self.failure: StoreError | None = None
        self._client: Client | None = None
        self._looking: asyncio.Future[None] | None = None
        self._look_now = asyncio.Event()
        self._ended_here: set[str] = set()

    async def open(self) -> Stores:
        stores = await super().open()
        if self._listens:
            self._begin_to_look()
        return stores

    def _begin_to_look(self) -> None:
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())

    async def aclose(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await see_through(ended(self._looking))
        await super().aclose()

    async def perform(self, turn: Turn) -> Performed:
        """See `Backend.perform`. Raises HarnessError with a worker's words where none can, and
        StoreError (`temporal_unreachable`) where the run could not be given to Temporal."""
        stores, run_id = await self.open(), turn.run_id
        self._begin_to_look()
        executions = executions_of(stores)
        given = await self._unless_stopped(executions, run_id, self._taken(turn), is_here=True)
        if given is None:
            return await self._end_here(stores, turn)
        workflows, queue = given
        is_here = queue != self._read.queue
        bringing = self._brought_to_its_end(stores, turn, workflows, queue)
        if not await self._unless_stopped(executions, run_id, bringing, is_here=is_here):
            return await self._end_here(stores, turn)
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

    async def _brought_to_its_end(
        self, stores: Stores, turn: Turn, workflows: Workflows, queue: str
    ) -> bool:
        executions, run_id = executions_of(stores), turn.run_id
        is_here = queue != self._read.queue
        times = self._times or (HERE if is_here else Times())
        start = Start(run_id, queue, times, self._bounds, before=turn.answers_before)
        async with AsyncExitStack() as stack:
            if turn.alone is not None:
                minding = self._mind(turn.alone, run_id, is_here=is_here)
                await stack.enter_async_context(_beside(minding))
            if is_here:
                await stack.enter_async_context(self._serving(stores, turn, queue))
            elif self._listens:
                await _follow(stores, run_id)
            # What comes from here on is passed on; whoever claims the run reads all before.
            known = len(await executions.answers(run_id))
            passing = _pass_answers(executions, workflows, run_id, known)
            await stack.enter_async_context(_beside(passing))
            await workflows.run(start, tell=bool(known), patience=self._patience)
        return True

    async def _unless_stopped(
        self,
        executions: Executions,
        run_id: str,
        work: Coroutine[Any, Any, T],
        *,
        is_here: bool,
    ) -> T | None:
        """What it gives; None once a person stopped the run and there is nobody who would."""
        working = asyncio.ensure_future(work)
        async with _beside(self._nobody_stops(executions, run_id, is_here)) as leaving:
            try:
                either: set[asyncio.Future[Any]] = {working, leaving}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                return working.result() if working.done() else leaving.result()
            finally:
                working.cancel()
                await see_through(ended(working))

    async def _nobody_stops(self, executions: Executions, run_id: str, is_here: bool) -> None:
        """Returns once a run is to stop, and Temporal or a worker is missing for that."""
        stopped = await is_stopped(executions, run_id)
        while True:
            # Whoever performs it hears of it too, and keeps what was written until then; where it
            # can end it, this is cancelled.
            await asyncio.sleep(BACK_SECONDS)
            if stopped and await self._missing(run_id, is_here=is_here):
                return

    async def _end_here(self, stores: Stores, turn: Turn) -> Performed:
        """Ends a stopped run as everything that is written down says that it stands.

        Whoever had it writes nothing any more. Its workflow is ended once that can be done.
        """
        performed = await perform_here(stores, turn)
        self._ended_here.add(turn.run_id)
        self._look_now.set()
        return performed

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
        rest. Raises as `open`, and StoreError where Temporal cannot be reached or has not the
        namespace.
        """
        stores, queue = await self.open(), self._read.queue
        await (await self._workflows()).check()
        async with self._claiming(stores, crew, queue, grace=grace):
            yield

    @asynccontextmanager
    async def _claiming(
        self, stores: Stores, crew: Crew, queue: str, *, grace: float = 0.0
    ) -> AsyncIterator[None]:
        client, workflows = await self._connected(), await self._workflows()
        self._begin_to_look()
        own = own_queue(queue)
        claims = Claims(stores, crew, workflows.tell_at_last, own)
        async with working(client, queue, own, claims, grace=grace):
            yield

    async def _taken(self, turn: Turn) -> tuple[Workflows, str]:
        """See `_given_to`; while Temporal cannot be reached, `turn.alone` is told so."""
        try:
            given = await self._given_to(turn)
        except StoreError as error:
            if not (missing := missing_of(error)):
                raise
            async with AsyncExitStack() as stack:
                if turn.alone is not None:
                    turn.alone(missing)
                    minding = self._mind(turn.alone, turn.run_id, is_here=True)
                    await stack.enter_async_context(_beside(minding))
                given = await patiently(lambda: self._given_to(turn), self._patience)
        if turn.alone is not None:
            turn.alone("")
        return given

    async def _given_to(self, turn: Turn) -> tuple[Workflows, str]:
        """The queue of the workers that perform a run: a workflow that is there keeps its own."""
        workflows = await self._workflows()
        await workflows.check()
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

    async def _look(self) -> None:
        """Keeps `failure` true, and says so in the log."""
        while True:
            before, self.failure = self.failure, await self._unusable()
            if self.failure is not None and before is None:
                log.warning("Runs wait: %s %s", self.failure.message, self.failure.hint)
            elif self.failure is None and before is not None:
                log.warning("Temporal answers again.")
            with suppress(TimeoutError):
                async with asyncio.timeout(BACK_SECONDS if self.failure else LOOK_SECONDS):
                    await self._look_now.wait()
            self._look_now.clear()

    async def _unusable(self) -> StoreError | None:
        try:
            workflows = await self._workflows()
            await workflows.check()
            for run_id in tuple(self._ended_here):
                await workflows.end(run_id, "The run was stopped while nobody could tell this.")
                self._ended_here.discard(run_id)
        except StoreError as error:
            return error
        return None

    async def _mind(self, alone: Alone, run_id: str, *, is_here: bool) -> None:
        """Says at each look what is missing."""
        while True:
            missing = await self._missing(run_id, is_here=is_here)
            alone(missing)
            await asyncio.sleep(BACK_SECONDS if missing else LOOK_SECONDS)

    async def _missing(self, run_id: str, *, is_here: bool) -> Missing:
        """What a run that is performed here, or by others, waits for."""
        try:
            workflows = await self._workflows()
            if not is_here and await _is_left_alone(workflows, run_id):
                return "worker"
            await workflows.check()
        except StoreError as error:
            return missing_of(error) or "temporal"
        return ""

    async def _workflows(self) -> Workflows:
        return Workflows(await self._connected(), self._read.queue)

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await connect(self._read, self._converter)
        return self._client


async def _is_left_alone(workflows: Workflows, run_id: str) -> bool:
    """Whether nobody performs a run that is left to workers. One that was killed counts as there
    for a minute more, but takes nothing up."""
    if not await workflows.has_workers():
        return True
    untaken = await workflows.untaken(run_id)
    if untaken:
        await asyncio.sleep(UNTAKEN_SECONDS)
        untaken &= await workflows.untaken(run_id)
    return bool(untaken)


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
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Future[None]]:
    """Does something until the end of the block."""
    doing = asyncio.ensure_future(work)
    try:
        yield doing
    finally:
        doing.cancel()
        await see_through(ended(doing))


async def _pass_answers(
    executions: Executions, workflows: Workflows, run_id: str, known: int
) -> None:
    async with aclosing(all_given(executions, run_id)) as answers:
        async for given in answers:
            for answer in given[known:]:
                await workflows.tell_at_last(run_id, answer.key)
            known = len(given)
