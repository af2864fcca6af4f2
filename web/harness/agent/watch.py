"""The one place that sees all events of a run: it counts usage and tells the hooks."""

from __future__ import annotations

from web.harness.agent.answer import Emit
from web.harness.agent.totals import Totals
from web.harness.tools.hooks import Happening, HookEvent, Hooks
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    ErrorReport,
    EventBody,
    InputRequired,
    NestedEvent,
    RunResult,
    ToolCallStart,
    ToolResult,
    UsageReport,
)
from web.harness.values.usage import Usage

_HOOKS: dict[type, HookEvent] = {
    RunResult: HookEvent.RUN_ENDED,
    ToolCallStart: HookEvent.TOOL_STARTED,
    ToolResult: HookEvent.TOOL_ENDED,
    ApprovalRequired: HookEvent.APPROVAL_REQUIRED,
    InputRequired: HookEvent.INPUT_REQUIRED,
    ContextCondensed: HookEvent.CONTEXT_CONDENSED,
    ErrorReport: HookEvent.ERROR,
}
"""What of the events is told to hooks; the deltas are not."""

_ENDS_CALL = (UsageReport, AttemptReset, ErrorReport, RunResult)
"""What follows a model call, however it ended."""


class Watch:
    """Stands before `emit` of one run. `outer` is the watch of the run that this one is inside."""

    def __init__(
        self,
        run_id: str,
        emit: Emit,
        hooks: Hooks,
        totals: Totals,
        outer: Watch | None = None,
        call_id: str = "",
    ) -> None:
        self.run_id = run_id
        self._emit = emit
        self._hooks = hooks
        self._totals = totals
        self._outer = outer
        self._call_id = call_id
        self.spent = Totals()
        """What this run has used up so far."""
        self._calling: set[tuple[str, ...]] = set()
        """Where a model call is under way."""
        self._is_silent = False

    def emit(self, bodies: list[EventBody]) -> None:
        """Hands a batch on, then tells of it."""
        if self._is_silent:
            return
        for body in bodies:
            self._totals.take(body)
            self.spent.take(body)
        self._emit(bodies)
        for body in bodies:
            self._tell_of(body)

    def silence(self) -> None:
        """Tells nothing any more: the run is left as it is, for another process to go on with."""
        self._is_silent = True

    def went_before(self, usage: Usage, cost: float | None) -> None:
        """Counts what the run had used up before this process went on with it."""
        self._totals.add(usage, cost)
        self.spent.add(usage, cost)

    def started(self, event: HookEvent, path: tuple[str, ...] = ()) -> None:
        """Tells that a run, or a model call, starts: no event says so.

        `path` are the calls of sub-agents that it happens in, the outermost first.
        """
        if event is HookEvent.MODEL_CALL_STARTED:
            self._end_call(path, None)
            self._calling.add(path)
        self._fire(event, path, None)
        if self._outer is not None:
            self._outer.started(event, (self._call_id, *path))

    def _tell_of(self, body: EventBody) -> None:
        path: tuple[str, ...] = ()
        while isinstance(body, NestedEvent):
            path, body = (*path, body.call_id), body.body
        if isinstance(body, _ENDS_CALL):
            self._end_call(path, body)
        hook = _HOOKS.get(type(body))
        if hook is not None:
            self._fire(hook, path, body)

    def _end_call(self, path: tuple[str, ...], body: EventBody | None) -> None:
        """Tells that a model call has ended, once for each that has started."""
        if path in self._calling:
            self._calling.discard(path)
            self._fire(HookEvent.MODEL_CALL_ENDED, path, body)

    def _fire(self, event: HookEvent, path: tuple[str, ...], body: EventBody | None) -> None:
        self._hooks.fire(Happening(event, self.run_id, body, path[0] if path else ""))
