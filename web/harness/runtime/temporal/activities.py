"""What workers do for workflows: a run is claimed, and one action of it is performed.

Each is tried once and tells every few seconds that it goes on, and so hears when it was given up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from web.harness.runtime.temporal.claims import Claims
from web.harness.runtime.temporal.payloads import Claimed, News, Task
from web.harness.runtime.temporal.workflow import CLAIM, LOST, PERFORM, REFUSED
from web.harness.tools.finishing import see_through
from web.harness.values.errors import HarnessError, LeaseLost, SessionConflict, StoreError

log = logging.getLogger(__name__)

BEATS = 5
"""In the time after which a worker that tells nothing is given up; see `BEAT_SECONDS`."""

BEAT_SECONDS = 2.0
"""At most between two: a worker hears so that it was given up."""

MAX_WORDS = 2_000
"""Characters of an error that a workflow is told."""


class Activities:
    """The activities of one worker."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims

    @activity.defn(name=CLAIM)
    async def claim(self, run_id: str, before: int | None = None) -> Claimed:
        async with _alive(), _told():
            return await self._claims.claim(run_id, before)

    @activity.defn(name=PERFORM)
    async def perform(self, task: Task) -> News:
        async with _alive(), _told():
            return await self._claims.perform(task)


@asynccontextmanager
async def _alive() -> AsyncIterator[None]:
    """Tells that the activity goes on, until the end of the block."""
    limit = activity.info().heartbeat_timeout

    async def beat() -> None:
        while limit is not None:
            activity.heartbeat()
            await asyncio.sleep(min(BEAT_SECONDS, limit.total_seconds() / BEATS))

    beating = asyncio.ensure_future(beat())
    try:
        yield
    finally:
        beating.cancel()
        await see_through(asyncio.wait({beating}))


@asynccontextmanager
async def _told() -> AsyncIterator[None]:
    """Errors as the workflow has to see them: does another worker help, or nobody.

    Nothing of what went wrong goes along but its words: a history is read by others.
    """
    try:
        yield
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details is None or details.cancel_requested:
            raise
        # Temporal's own line would have a traceback, of nothing that is wrong here.
        given_up = LeaseLost("Temporal gave this worker up, or the worker ends.")
        raise _failure(given_up, LOST) from None
    except (SessionConflict, StoreError) as error:
        raise _failure(error, LOST) from None
    except HarnessError as error:
        raise _failure(error, REFUSED) from None
    except Exception:
        log.exception("A run could not be performed here")
        words = HarnessError("A worker failed.", hint="Its log says more.", code="internal_error")
        raise _failure(words, LOST) from None


def _failure(error: HarnessError, kind: str) -> ApplicationError:
    message, hint = error.message[:MAX_WORDS], error.hint[:MAX_WORDS]
    log.warning("A run does not go on here: %s", message)
    return ApplicationError(
        *(message, error.code, hint),
        type=kind,
        non_retryable=True,
        # The line above says it; Temporal's would have a traceback of what is usual.
        category=ApplicationErrorCategory.BENIGN,
    )
