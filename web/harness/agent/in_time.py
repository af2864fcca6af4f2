"""Waits for others' work, which may hang, be cancelled from inside or raise what ends programs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

GRACE_SECONDS = 1.0
"""What is stopped has so long to end; then it is left behind."""


async def in_time(work: Any, seconds: float) -> Any:
    """What `work` gives, or `work` itself where there is nothing to wait for.

    Raises TimeoutError after so many seconds, and RuntimeError for what is no Exception: others'
    work neither cancels whoever waits nor ends the program. KeyboardInterrupt is passed on.
    """
    if not isinstance(work, Awaitable):
        return work
    task = asyncio.ensure_future(_outcome(work))
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
    if not task.done():
        await asyncio.wait({task}, timeout=min(GRACE_SECONDS, seconds))
        raise TimeoutError(f"It took longer than {seconds:g} seconds and was stopped.")
    given, error = task.result()
    if error is not None:
        raise error if isinstance(error, Exception) else RuntimeError(repr(error)) from error
    return given


async def _outcome(work: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """What it gave and what it raised. A task that raised SystemExit itself would end the loop."""
    try:
        return await work, None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error
