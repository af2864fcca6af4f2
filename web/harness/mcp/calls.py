"""A call under way: its own clock, its progress at a readable pace, its questions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

import anyio
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from web.harness.mcp.asking import Asker, Elicitation

PROGRESS_SECONDS = 0.1
"""The least time between two progress reports; what comes between is overtaken by the last."""

OnProgress = Callable[[float, float | None, str], None]
"""Takes how far it is, how far it goes (None: unknown), and the server's words."""

_current: ContextVar[Call | None] = ContextVar("mcp_call", default=None)


class Call:
    """One call. Silence for `seconds` ends it; progress, and an answered question, begin anew."""

    def __init__(self, seconds: float, on_progress: OnProgress | None, ask: Asker | None) -> None:
        self.ask = ask
        self._seconds = seconds
        self._on_progress = on_progress
        self._scope = anyio.CancelScope()
        self._questions = 0
        self._latest: tuple[float, float | None, str] | None = None
        self._next_report = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs the clock; the block is left without an error when it runs out."""
        token = _current.set(self)
        try:
            with self._scope:
                self._rearm()
                yield
        finally:
            _current.reset(token)
            self._flush()

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Takes one report of the server."""
        self._rearm()
        if self._on_progress is None:
            return
        self._latest = (progress, total, message or "")
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_report:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_at(self._next_report, self._flush)

    @contextmanager
    def waiting_for_the_person(self) -> Iterator[None]:
        """Stops the clock while a question is open."""
        self._questions += 1
        self._rearm()
        try:
            yield
        finally:
            self._questions -= 1
            self._rearm()

    def _rearm(self) -> None:
        now = anyio.current_time()
        self._scope.deadline = math.inf if self._questions else now + self._seconds

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        latest, self._latest = self._latest, None
        if latest is not None and self._on_progress is not None:
            self._next_report = asyncio.get_running_loop().time() + PROGRESS_SECONDS
            self._on_progress(*latest)


class Calls:
    """The calls of one connection that are under way, to know whom a question belongs to."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._running: list[Call] = []

    @contextmanager
    def entered(self, call: Call) -> Iterator[None]:
        """Runs the clock of a call that can be asked about."""
        self._running.append(call)
        try:
            with call.running():
                yield
        finally:
            self._running.remove(call)

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Answers a question of the server. Without anybody to ask it is declined.

        In the newer protocol the question comes in its own call. In the older ones it names no
        call: it is put with the last one that can ask, with another if that ends meanwhile, and
        the clocks of all stand still.
        """
        question, own = self._question(params), _current.get()
        if own is not None and own in self._running:
            return await self._put(question, own, [own])
        result = ElicitResult(action="decline")
        while call := next((each for each in reversed(self._running) if each.ask), None):
            result = await self._put(question, call, self._running)
            if result.action != "cancel" or call in self._running:
                break
        return result

    async def _put(
        self, question: Elicitation, call: Call, waiting: Sequence[Call]
    ) -> ElicitResult:
        if call.ask is None:
            return ElicitResult(action="decline")
        with ExitStack() as stopped:
            for each in waiting:
                stopped.enter_context(each.waiting_for_the_person())
            answer = await call.ask(question)
        return ElicitResult(
            action=answer.action,
            content=answer.content if answer.action == "accept" else None,
        )

    def _question(self, params: ElicitRequestParams) -> Elicitation:
        if isinstance(params, ElicitRequestURLParams):
            return Elicitation(self._server, params.message, "url", url=params.url)
        return Elicitation(self._server, params.message, schema=dict(params.requested_schema))
