"""The answers to one run as people give them, for as long as the run goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from web.harness.sessions.journal import Executions, GivenAnswer
from web.harness.values.errors import StoreError

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""After the database failed."""


async def all_given(
    executions: Executions, run_id: str, *, again_seconds: float = AGAIN_SECONDS
) -> AsyncGenerator[Sequence[GivenAnswer], None]:
    """All answers that there are, at once and each time there are more; ends with the run.

    A database that fails is waited for.
    """
    known, no_more = -1, False
    while True:
        try:
            given = await executions.answers(run_id)
            if len(given) > known:
                known, no_more = len(given), False
                yield given
            elif no_more:
                return
            await executions.wait_for_answers(run_id, known)
            # It came back without an error: there are more by now, or never will be.
            no_more = True
        except StoreError as error:
            log.warning("The answers to a run cannot be read now: %s", error.message)
            await asyncio.sleep(again_seconds)


async def is_stopped(executions: Executions, run_id: str) -> bool:
    """Waits until a person stops a run; False once it has ended otherwise, or was forgotten."""
    async with aclosing(all_given(executions, run_id)) as answers:
        async for given in answers:
            if any(answer.kind == "cancel" for answer in given):
                return True
    return False
