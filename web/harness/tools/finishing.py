"""Work that is finished once it is begun, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

log = logging.getLogger(__name__)

T = TypeVar("T")


async def see_through(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which goes on to its end however often the caller is cancelled.

    Cancellation is passed on when the work has ended. What it raised is logged then; otherwise it
    is raised here. For work that ends by itself, such as writing down what would be lost.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    # Without the shield a scope of anyio that is cancelled would cancel at each turn of the loop.
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                # Unlike awaiting the task, this leaves it alone when the caller is cancelled.
                await asyncio.wait((task,))
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled() and task.exception() is not None:
        log.error("This went wrong while its caller was stopped", exc_info=task.exception())
    raise cancelled
