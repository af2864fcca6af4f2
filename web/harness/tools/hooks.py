"""Hooks: an application watches what an agent does, and cannot make its runs fail."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar, overload

from web.harness.values.events import EventBody

log = logging.getLogger(__name__)

HANDLER_SECONDS = 5.0
"""A handler that takes longer is cancelled."""

SETTLE_SECONDS = 1.0
"""The end of a run waits so long for handlers that are still busy; they go on after it."""

MAX_WAITING = 1_000
"""Happenings that wait for slow handlers; further ones are dropped, and that is logged."""


class HookEvent(StrEnum):
    """What can be watched. `body` says which event a happening carries, where it carries one."""

    RUN_STARTED = "run_started"
    """Also of a run that goes on after its process had ended: each process tells it once."""
    RUN_ENDED = "run_ended"
    """`body`: RunResult."""
    MODEL_CALL_STARTED = "model_call_started"
    MODEL_CALL_ENDED = "model_call_ended"
    """`body`: UsageReport. For one that broke: AttemptReset where it is tried again, ErrorReport or
    RunResult where it ended the run, None where nothing else tells of it."""
    TOOL_STARTED = "tool_started"
    """`body`: ToolCallStart."""
    TOOL_ENDED = "tool_ended"
    """`body`: ToolResult; also of a call that was refused and never started."""
    APPROVAL_REQUIRED = "approval_required"
    """`body`: ApprovalRequired."""
    INPUT_REQUIRED = "input_required"
    """`body`: InputRequired."""
    CONTEXT_CONDENSED = "context_condensed"
    """`body`: ContextCondensed, with the tokens before and after."""
    ERROR = "error"
    """`body`: ErrorReport."""
    SESSION_SAVED = "session_saved"
    SESSION_LOADED = "session_loaded"
    AGENT_CLOSED = "agent_closed"


@dataclass(frozen=True, slots=True)
class Happening:
    """What a handler is told.

    `body` is the event it was derived from, None where there is none. `call_id` is the call whose
    sub-agent it happened in, '' for the agent itself. `data` are further facts, such as the
    `session_id` of a session that was saved. It is a copy: a change in it changes nothing.
    """

    event: HookEvent
    run_id: str = ""
    body: EventBody | None = None
    call_id: str = ""
    data: dict[str, Any] = field(default_factory=dict)


HookHandler = Callable[[Happening], Awaitable[None] | None]

H = TypeVar("H", bound=Callable[[Happening], Any])


class Hooks:
    """The handlers of one agent.

    Each is called with the happenings in their order, one after another; those of one happening
    in the order they were added. A plain function runs in the event loop, which it holds as long as
    it takes; a coroutine function is awaited for at most `handler_seconds`. What a handler raises
    is logged, `SystemExit` too; KeyboardInterrupt alone is passed on.
    A run never waits for a handler but at its end, for at most `SETTLE_SECONDS`.
    """

    def __init__(self, *, handler_seconds: float = HANDLER_SECONDS) -> None:
        self._handlers: dict[HookEvent, list[HookHandler]] = {}
        self._handler_seconds = handler_seconds
        self._waiting: deque[Happening] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._late: set[asyncio.Future[Any]] = set()
        self._dropped = 0

    @overload
    def on(self, event: HookEvent, handler: H) -> H: ...

    @overload
    def on(self, event: HookEvent) -> Callable[[H], H]: ...

    def on(self, event: HookEvent, handler: Any = None) -> Any:
        """Adds a handler: `hooks.on(event, handler)`, or `@hooks.on(event)`. Gives it back."""
        event = HookEvent(event)

        def add(function: H) -> H:
            if not callable(function):
                raise TypeError(f"A hook is a function, not {type(function).__name__}.")
            self._handlers.setdefault(event, []).append(function)
            return function

        return add if handler is None else add(handler)

    def off(self, event: HookEvent, handler: HookHandler) -> None:
        """Takes a handler away; one that is not there is fine."""
        handlers = self._handlers.get(event, [])
        if handler in handlers:
            handlers.remove(handler)

    def handlers(self) -> list[tuple[HookEvent, HookHandler]]:
        """All handlers with what they watch."""
        return [(event, each) for event, found in self._handlers.items() for each in found]

    def fire(self, happening: Happening) -> None:
        """Has the handlers told, soon, of a copy; nothing waits. Called in the event loop."""
        if not self._handlers.get(happening.event):
            return
        if len(self._waiting) >= MAX_WAITING:
            self._dropped += 1
            return
        self._waiting.append(deepcopy(happening))
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._deliver())

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Waits until all was told, but no longer than `seconds`."""
        pump = self._pump
        # A handler that ends a run, or closes the agent, does not wait for itself.
        if pump is not None and not self.is_inside():
            await asyncio.wait({pump}, timeout=seconds)

    async def aclose(self) -> None:
        """Waits for the handlers as long as one may take; then they are stopped. Twice is fine."""
        if self.is_inside():
            return
        await self.settle(self._handler_seconds)
        pump = self._pump
        self._waiting.clear()
        if pump is not None:
            pump.cancel()
            await asyncio.wait({pump}, timeout=self._handler_seconds)
        if self._late:
            await asyncio.wait(self._late, timeout=SETTLE_SECONDS)

    def is_inside(self) -> bool:
        """Whether a handler is what calls."""
        task = asyncio.current_task()
        return task is not None and (task is self._pump or task in self._late)

    async def _deliver(self) -> None:
        try:
            while self._waiting:
                happening = self._waiting.popleft()
                for handler in tuple(self._handlers.get(happening.event, ())):
                    await self._call(handler, happening)
        finally:
            self._pump = None
            if self._dropped:
                log.warning("Hooks were too slow: %d happenings were not told.", self._dropped)
                self._dropped = 0

    async def _call(self, handler: HookHandler, happening: Happening) -> None:
        try:
            answer = handler(happening)
            if not inspect.isawaitable(answer):
                return
            task = asyncio.ensure_future(_outcome(answer))
        except KeyboardInterrupt:
            raise
        except BaseException:
            log.exception("A hook of %s failed; the run goes on", happening.event)
            return
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        try:
            # Not `asyncio.timeout`: it would wait for a handler that does not let itself be ended.
            await asyncio.wait({task}, timeout=self._handler_seconds)
        finally:
            if not task.done():
                task.cancel()
        if not task.done():
            log.error(
                "A hook of %s took longer than %g seconds and was stopped; the run goes on",
                *(happening.event, self._handler_seconds),
            )
        elif not task.cancelled() and (error := task.result()) is not None:
            log.error("A hook of %s failed; the run goes on", happening.event, exc_info=error)


async def _outcome(answer: Awaitable[None]) -> BaseException | None:
    """What a handler raises. A task that raised SystemExit itself would end the event loop."""
    try:
        await answer
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return error
    return None
