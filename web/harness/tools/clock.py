"""The time limit of a call, which stands still while a person is asked."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from web.harness.tools.tool import Ask, InputAnswer
from web.harness.values.messages import JsonObject


class CallClock:
    """Stops `limit` while one or more requests to the person are open."""

    def __init__(self, limit: asyncio.Timeout, ask: Ask) -> None:
        self._limit = limit
        self._ask = ask
        self._open = 0
        self._left: float | None = None

    async def ask(self, request: JsonObject, /, *, state: JsonObject | None = None) -> InputAnswer:
        """Asks off the clock."""
        self._open += 1
        if self._open == 1:
            self._stop()
        try:
            # Those who ask for a tool that is tried alone may know of no state.
            return await (self._ask(request) if state is None else self._ask(request, state=state))
        finally:
            self._open -= 1
            if self._open == 0:
                self._go_on()

    def _stop(self) -> None:
        end = self._limit.when()
        self._left = None if end is None else end - asyncio.get_running_loop().time()
        self._set(None)

    def _go_on(self) -> None:
        if self._left is not None:
            self._set(asyncio.get_running_loop().time() + self._left)

    def _set(self, end: float | None) -> None:
        # A tool may have left a task behind that asks after its call has ended.
        with suppress(RuntimeError):
            self._limit.reschedule(end)
