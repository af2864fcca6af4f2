"""The runs that a worker has. Each goes on by one action at a time, as its workflow says."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

from web.harness.runtime.backend import Turn
from web.harness.runtime.temporal.claim import Claim
from web.harness.runtime.temporal.payloads import Claimed, News, Task, packed
from web.harness.sessions.journal import Execution
from web.harness.sessions.opening import Stores
from web.harness.tools.finishing import see_through
from web.harness.values.errors import LeaseLost

IDLE_SECONDS = 600.0
"""A run that waits for a person so long is let go: with the answer, whoever is free claims it."""

KEPT_SECONDS = 60.0
"""So often it is looked whether anybody else has a run whose worker was given up. A call of it goes
on until then: only this worker could tell what it did, and may be asked for the run again."""

Crew = Callable[[Execution], AbstractAsyncContextManager[Turn]]
"""Makes what a run is performed with, and closes it.

Raises HarnessError where this worker cannot: the run then stays as it is, and those who wait for it
are told so in these words.
"""

Tell = Callable[[str], Awaitable[None]]
"""Tells the workflow of a run, by the run's id, that more was written than it asked for; returns
when it was told."""


class Claims:
    """All runs of a worker. `queue` is the task queue that it alone serves."""

    def __init__(
        self,
        stores: Stores,
        crew: Crew,
        tell: Tell,
        queue: str,
        *,
        idle: float = IDLE_SECONDS,
        kept: float = KEPT_SECONDS,
    ) -> None:
        self._stores = stores
        self._crew = crew
        self._tell = tell
        self._queue = queue
        self._idle = idle
        self._kept_seconds = kept
        self._claims: dict[str, Claim] = {}
        self._rests: dict[str, asyncio.TimerHandle] = {}
        self._resting: set[asyncio.Future[None]] = set()
        self._leaves = False
        self._empty = asyncio.Event()

    async def claim(self, run_id: str, before: int | None = None) -> Claimed:
        """Takes a run over from whoever had it; one that goes on here is taken up where it stands.

        `before` is `Turn.answers_before`: a pause is heard that came while no worker had the run.
        Raises what the crew and the stores raise.
        """
        if (kept := await self._kept(run_id)) is not None:
            return kept
        if self._leaves:
            raise LeaseLost("This worker ends.")
        await self.let_go(run_id)
        claim = Claim(self._stores, self._crew, self._tell, run_id, before)
        self._claims[run_id] = claim
        try:
            state = await claim.open()
            claimed = Claimed(self._queue, claim.fence, packed(state.as_json()), claim.told)
        except BaseException:
            await self._drop(claim)
            raise
        self._let_rest(claim, self._idle)
        return claimed

    async def perform(self, task: Task) -> News:
        """One action of a run. Raises LeaseLost where this worker does not have it."""
        claim = self._claims.get(task.run_id)
        if claim is None or claim.fence != task.fence:
            raise LeaseLost("This worker does not have the run.")
        self._stop_rest(claim)
        try:
            news = await claim.perform(task)
        except asyncio.CancelledError:
            if task.what != "tool":
                await self._drop(claim)
            # Temporal was gone, perhaps, and gave this worker up. Nobody could say of a call that
            # is cut off now what it did.
            self._let_rest(claim, min(self._idle, self._kept_seconds))
            raise
        except BaseException:
            # What this process believes of the run counts no more; the journal is asked anew.
            await self._drop(claim)
            raise
        # One that has its result is still asked to finish, perhaps after its answers were read.
        is_done = claim.is_over and (task.what == "finish" or news.paused)
        if is_done or (self._leaves and not claim.is_busy):
            await self._drop(claim)
        else:
            self._let_rest(claim, self._idle)
        return dataclasses.replace(news, leaving=self._leaves)

    async def _kept(self, run_id: str) -> Claimed | None:
        """A claim that is given out once more, where nobody else has taken the run since."""
        claim = self._claims.get(run_id)
        if claim is None or not claim.goes_on:
            return None
        self._stop_rest(claim)
        try:
            state = await claim.stand()
        except LeaseLost:
            return None
        finally:
            self._let_rest(claim, self._idle)
        return Claimed(self._queue, claim.fence, packed(state.as_json()), claim.told, kept=True)

    async def let_go(self, run_id: str) -> None:
        """Stops a run here, as it is; somebody may claim it again."""
        claim = self._claims.get(run_id)
        if claim is not None:
            await self._drop(claim)

    async def leave(self, seconds: float) -> None:
        """Gives each run back to its workflow, once what is under way of it has ended.

        Returns when there is none any more, or after so many seconds.
        """
        self._leaves = True
        for claim in tuple(self._claims.values()):
            if not claim.is_busy:
                claim.tell()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._claims:
                    self._empty.clear()
                    await self._empty.wait()

    async def aclose(self) -> None:
        """Lets all runs go."""
        await asyncio.gather(*map(self._drop, tuple(self._claims.values())), *self._resting)

    async def _drop(self, claim: Claim) -> None:
        self._stop_rest(claim)
        if self._claims.get(claim.run_id) is claim:
            del self._claims[claim.run_id]
            self._empty.set()
        await see_through(claim.aclose())

    def _let_rest(self, claim: Claim, seconds: float) -> None:
        if not claim.is_busy and self._claims.get(claim.run_id) is claim:
            self._stop_rest(claim)
            loop = asyncio.get_running_loop()
            self._rests[claim.run_id] = loop.call_later(seconds, self._rest_over, claim)

    def _stop_rest(self, claim: Claim) -> None:
        if self._claims.get(claim.run_id) is claim:
            rest = self._rests.pop(claim.run_id, None)
            if rest is not None:
                rest.cancel()

    def _rest_over(self, claim: Claim) -> None:
        resting = asyncio.ensure_future(self._drop_unless_needed(claim))
        self._resting.add(resting)
        resting.add_done_callback(self._resting.discard)

    async def _drop_unless_needed(self, claim: Claim) -> None:
        if await claim.is_needed():
            self._let_rest(claim, self._kept_seconds)
        elif not claim.is_busy:
            await self._drop(claim)
