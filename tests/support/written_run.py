"""A journal and an event log of one run in memory, that a test cuts off where it likes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TypeVar

from web.harness.loop.state import RunState
from web.harness.sessions.folding import fold
from web.harness.sessions.journal import Recorded, Step
from web.harness.sessions.journal_form import step_from_json, step_to_json
from web.harness.values.event_codec import body_from_json, body_to_json
from web.harness.values.events import EventBody, RunResult
from web.harness.values.messages import JsonObject

T = TypeVar("T")

Entry = JsonObject
"""`{"event": ...}` or `{"step": ..., "state": ...}`, as JSON."""


class WrittenRun:
    """What was written of a run, in order.

    With `ends_at` the process "ends" when there are so many entries: `over` is set, nothing more is
    written, and whoever waits for a commit waits for ever.
    """

    def __init__(self, entries: list[Entry] | None = None, *, ends_at: int | None = None) -> None:
        self.entries: list[Entry] = list(entries or [])
        self.committed = len(self.entries)
        self.over = asyncio.Event()
        self.wrote: Callable[[EventBody | Step], None] = lambda entry: None
        self._ends_at = ends_at
        self._end_if_due()

    @property
    def is_over(self) -> bool:
        return self.over.is_set()

    def emit(self, bodies: list[EventBody]) -> None:
        for body in bodies:
            if not any(isinstance(each, RunResult) for each in self.events[-1:]):
                self._append({"event": body_to_json(body)}, body)

    def write(self, step: Step, state: RunState) -> None:
        self._append({"step": step_to_json(step), "state": state.as_json()}, step)

    async def settled(self) -> None:
        if self.is_over:
            await asyncio.Event().wait()
        self.committed = len(self.entries)

    def after_the_end(self, *, lossy: bool = False) -> WrittenRun:
        """What the next process finds; `lossy`: what nobody waited for was not committed."""
        return WrittenRun(self.entries[: self.committed] if lossy else self.entries)

    @property
    def events(self) -> list[EventBody]:
        return [body_from_json(each["event"]) for each in self.entries if "event" in each]

    @property
    def steps(self) -> list[Step]:
        return [step_from_json(each["step"]) for each in self.entries if "step" in each]

    @property
    def kinds(self) -> list[str]:
        return [step.kind for step in self.steps]

    def of(self, kind: type[T]) -> list[T]:
        return [body for body in self.events if isinstance(body, kind)]

    @property
    def state(self) -> RunState | None:
        states = [each["state"] for each in self.entries if "state" in each]
        return RunState.from_json(states[-1]) if states else None

    @property
    def recorded(self) -> Recorded | None:
        state = self.state
        return fold(state, self.steps) if state is not None else None

    def _append(self, entry: Entry, what: EventBody | Step) -> None:
        if self.is_over:
            return
        self.entries.append(json.loads(json.dumps(entry)))
        self._end_if_due()
        self.wrote(what)

    def _end_if_due(self) -> None:
        if self._ends_at is not None and len(self.entries) >= self._ends_at:
            self.over.set()
