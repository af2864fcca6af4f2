"""Workers: processes, or parts of one, that do what workflows ask for."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from web.harness.runtime.temporal.activities import Activities
from web.harness.runtime.temporal.claims import Claims
from web.harness.runtime.temporal.workflow import RunWorkflow

MAX_ACTIVITIES = 2_000
"""At a time. A call that waits for a person is one, so this is no limit of the work."""

POLLS = 2
"""Open requests for tasks of one kind, at Temporal."""


STICKY = timedelta(seconds=2)
"""In which a worker takes up what its workflows decide next; then another does, from the history.
Workers that were killed are found out by this."""

THROTTLE = timedelta(seconds=2)
"""What a worker tells is passed on at this pace; a cancelled activity hears of it then."""


def own_queue(queue: str) -> str:
    """The name of a task queue that one worker alone serves, different each time."""
    return f"{queue}.{secrets.token_hex(8)}"


@asynccontextmanager
async def working(
    client: Client, queue: str, own: str, claims: Claims, *, grace: float = 0.0
) -> AsyncIterator[None]:
    """Decides for workflows of a queue, claims their runs and performs them on the queue `own`,
    where it is asked for a run too that it may still have.

    At the end no run is claimed any more; with `grace`, each is given back within so many seconds,
    once what is under way has ended. What is left then is stopped, as if the process had ended.
    """
    activities = Activities(claims)
    deciding = Worker(
        client,
        task_queue=queue,
        workflows=[RunWorkflow],
        max_concurrent_workflow_task_polls=POLLS,
        sticky_queue_schedule_to_start_timeout=STICKY,
    )
    claiming = Worker(
        client,
        task_queue=queue,
        activities=[activities.claim],
        max_concurrent_activity_task_polls=POLLS,
        max_heartbeat_throttle_interval=THROTTLE,
    )
    performing = Worker(
        client,
        task_queue=own,
        activities=[activities.perform, activities.claim],
        max_concurrent_activities=MAX_ACTIVITIES,
        max_concurrent_activity_task_polls=POLLS,
        max_heartbeat_throttle_interval=THROTTLE,
    )
    try:
        async with performing, deciding:
            try:
                async with claiming:
                    yield
                if grace:
                    await claims.leave(grace)
            finally:
                # At once: workers that cannot reach Temporal take a while to end.
                await claims.aclose()
    finally:
        await claims.aclose()
