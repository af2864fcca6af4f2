"""One try of a model call may take only so long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from web.harness.values.errors import ProviderError

T = TypeVar("T")


async def within(seconds: float | None, call: Awaitable[T]) -> T:
    """What the call gives. After so many seconds (None: however long) it is ended.

    Raises ProviderError then, a transient one: the next try may be quicker.
    """
    try:
        async with asyncio.timeout(seconds) as deadline:
            return await call
    except TimeoutError:
        if not deadline.expired():
            raise
        raise ProviderError(
            f"The model had not ended its answer after {seconds:g} seconds.",
            hint="Try again, or allow more time for a call.",
            code="provider_timeout",
            transient=True,
        ) from None
