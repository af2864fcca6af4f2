"""The tasks that outlive a request: each has an owner, and ends with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType

log = logging.getLogger(__name__)


class TaskOwner:
    """A task group for as long as the server lives. Leaving it cancels what still runs.

    A task that fails is logged and takes no other one with it.
    """

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def create_task(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Starts a task. Raises RuntimeError while the owner is not entered."""
        if self._group is None:
            work.close()
            raise RuntimeError("The server has not started or has ended.")
        task = self._group.create_task(_guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step has never taken up its work.
        task.add_done_callback(lambda _: work.close())
        return task

    async def __aenter__(self) -> TaskOwner:
        self._group = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        group, self._group = self._group, None
        for task in list(self._tasks):
            task.cancel()
        if group is not None:
            await group.__aexit__(kind, error, traceback)


async def _guarded(work: Coroutine[object, object, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("A background task failed")
