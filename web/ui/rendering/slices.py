"""Long work in slices, so that others have the event loop in between."""

from __future__ import annotations

import asyncio
import time

SLICE_SECONDS = 0.003


class Slices:
    """Made when the work begins; `pause` is called between its steps."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def pause(self) -> None:
        """Lets others have the event loop if the slice is used up."""
        if time.perf_counter() - self._began > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
