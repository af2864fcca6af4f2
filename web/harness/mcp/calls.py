"""A call under way: its own clock, its progress at a readable pace, its questions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeVar

import anyio
from mcp.client import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    URL_ELICITATION_REQUIRED,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationRequiredErrorData,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    TextContent,
)
from pydantic import ValidationError

from web.harness.mcp.asking import Asker, Elicitation
from web.harness.mcp.callers import caller
from web.harness.mcp.mending import Report
from web.harness.mcp.sampling import Sampler, SamplingAnswer
from web.harness.mcp.sampling_forms import SamplingRefused, Wish, read_wish, sampled
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

PROGRESS_SECONDS = 0.1
"""The least time between two progress reports; what comes between is overtaken by the last."""

OnProgress = Callable[[float, float | None, str], None]
"""Takes how far it is, how far it goes (None: unknown), and the server's words."""

MAX_VISITS = 5
"""Pages that one call may want to have visited first."""

_T = TypeVar("_T")

_WHOSE = "Several people were calling it, and it did not say for whom."

_current: ContextVar[Call | None] = ContextVar("mcp_call", default=None)


class Call:
    """One call. Silence for `seconds` ends it; progress, and an answered question, begin anew.

    `ask` puts questions of the server to a person, `sample` has the model answer others. It is made
    for whom `calling_for` says.
    """

    def __init__(
        self,
        seconds: float,
        on_progress: OnProgress | None = None,
        ask: Asker | None = None,
        sample: Sampler | None = None,
    ) -> None:
        self.ask = ask
        self.sample = sample
        self.whose = caller()
        self._seconds = seconds
        self._on_progress = on_progress
        self._scope = anyio.CancelScope()
        self._questions = 0
        self._lasting: set[anyio.CancelScope] = set()
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

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """Cancels the block when the call ends; then it is left without an error."""
        scope = anyio.CancelScope()
        self._lasting.add(scope)
        try:
            with scope:
                yield
        finally:
            self._lasting.discard(scope)

    def end(self) -> None:
        """Nothing is done for it any more."""
        for scope in list(self._lasting):
            scope.cancel()

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

    def __init__(self, server: str, report: Report) -> None:
        self._server = server
        self._report = report
        self._running: list[Call] = []
        self._visits: dict[str, anyio.CancelScope] = {}

    @contextmanager
    def entered(self, call: Call) -> Iterator[None]:
        """Runs the clock of a call that can be asked about."""
        self._running.append(call)
        try:
            with call.running():
                yield
        finally:
            self._running.remove(call)
            call.end()

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Answers a question of the server. Without anybody to ask it is declined.

        In the newer protocol the question comes in its own call. In the older ones it names no
        call: it is put with the last one that can ask, with another if that ends meanwhile, and
        the clocks of all stand still. If several people call at that time it is declined, as it
        could tell one of them what another one does.
        """
        if own := self._own():
            return await self._put(params, own, [own])
        result = ElicitResult(action="decline")
        people = {each.whose for each in self._running}
        if len(people) > 1:
            self._report("warning", f"The server asked a question. {_WHOSE}")
            return result
        while call := next(
            (each for each in reversed(self._running) if each.ask and each.whose in people), None
        ):
            result = await self._put(params, call, self._running)
            if result.action != "cancel" or call in self._running:
                break
        return result

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """Has the model of a call's chat answer, if the person agrees.

        Whose call it is is found as for a question; with that call it ends.
        """
        try:
            answer = await self._sampled(read_wish(params))
        except SamplingRefused as refused:
            self._report("warning", f"The server asked for the model's words. {refused}")
            return ErrorData(code=refused.code, message=str(refused))
        return CreateMessageResult(
            role="assistant",
            content=TextContent(text=answer.text),
            model=answer.model,
            stop_reason=answer.stop_reason,
        )

    def completed(self, elicitation_id: str) -> None:
        """Takes the server's word that what a person was sent away for is done."""
        visit = self._visits.pop(elicitation_id, None)
        if visit is not None:
            visit.cancel()

    async def after_visits(self, call: Call, send: Callable[[], Awaitable[_T]]) -> _T:
        """What `send` gives, tried again once if the server first wants a person to visit pages.

        Raises ToolError where the person does not.
        """
        try:
            return await send()
        except MCPError as error:
            visits = _visits_of(error)
            if not visits or call.ask is None:
                raise
        for each in visits:
            result = await self._put(each, call, [call])
            if result.action != "accept":
                raise ToolError("A page has to be visited for this first, and the person did not.")
        return await send()

    async def put(
        self, params: ElicitRequestParams, call: Call, state: JsonObject | None
    ) -> ElicitResult:
        """Puts a question of a call that goes on from `state` once it is answered."""
        return await self._put(params, call, [call], state)

    async def _sampled(self, wish: Wish) -> SamplingAnswer:
        own = self._own()
        if own is None and len({each.whose for each in self._running}) > 1:
            raise SamplingRefused(_WHOSE)
        able = [own] if own else reversed(self._running)
        call = next((each for each in able if each.ask and each.sample), None)
        if call is None or call.ask is None or call.sample is None:
            raise SamplingRefused("Nobody is here who could agree to it.")
        with ExitStack() as stopped:
            for each in [own] if own else self._running:
                stopped.enter_context(each.waiting_for_the_person())
            with call.lasting():
                return await sampled(self._server, wish, call.ask, call.sample)
        raise SamplingRefused("The call that it was for has ended.")

    def _own(self) -> Call | None:
        """The call in whose task a question came."""
        own = _current.get()
        return own if own in self._running else None

    async def _put(
        self,
        params: ElicitRequestParams,
        call: Call,
        waiting: Sequence[Call],
        state: JsonObject | None = None,
    ) -> ElicitResult:
        if call.ask is None:
            return ElicitResult(action="decline")
        with ExitStack() as stopped:
            for each in waiting:
                stopped.enter_context(each.waiting_for_the_person())
            with self._visit(params) as visit:
                answer = await call.ask(replace(self._question(params), state=state))
                return ElicitResult(
                    action=answer.action,
                    content=answer.content if answer.action == "accept" else None,
                )
        if visit.cancelled_caught:
            self._report("info", "The server says that what the page was visited for is done.")
        return ElicitResult(action="accept")

    @contextmanager
    def _visit(self, params: ElicitRequestParams) -> Iterator[anyio.CancelScope]:
        """Ends the block when the server says that the visit it asks for is over."""
        id = params.elicitation_id if isinstance(params, ElicitRequestURLParams) else None
        with anyio.CancelScope() as scope:
            if id:
                self._visits[id] = scope
            try:
                yield scope
            finally:
                if id:
                    self._visits.pop(id, None)

    def _question(self, params: ElicitRequestParams) -> Elicitation:
        if isinstance(params, ElicitRequestURLParams):
            return Elicitation(self._server, params.message, "url", url=params.url)
        return Elicitation(self._server, params.message, schema=dict(params.requested_schema))


def _visits_of(error: MCPError) -> list[ElicitRequestURLParams]:
    """The pages that have to be visited before a call can be served; none for other errors."""
    if error.code != URL_ELICITATION_REQUIRED:
        return []
    try:
        return ElicitationRequiredErrorData.model_validate(error.data).elicitations[:MAX_VISITS]
    except ValidationError:
        return []
