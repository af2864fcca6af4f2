"""What a run puts out: its events go to the log, and its end is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from web.chats.chat import Chat
from web.chats.transcript.run_words import INTERRUPTED
from web.harness.sessions.event_log import EventLog
from web.harness.values.errors import HarnessError
from web.harness.values.events import ErrorReport, EventBody, RunResult

log = logging.getLogger(__name__)

UNFINISHED = ("failed", "cancelled")

INTERNAL = HarnessError(
    "Something went wrong inside the server.",
    hint="Your message is kept. The server's log says more.",
    code="internal_error",
)


class RunOutput:
    """Takes the events of one run.

    With `hold`, the result is held back until `finish`: whoever reads it may rely on the session
    being kept. `ended` is called when the run has a result.
    """

    def __init__(
        self,
        chat: Chat,
        run_id: str,
        events: EventLog,
        *,
        hold: bool,
        ended: Callable[[], None],
    ) -> None:
        self._chat = chat
        self._run_id = run_id
        self._events = events
        self._hold = hold
        self._ended = ended
        self._held: RunResult | None = None
        self.result: RunResult | None = None

    @property
    def is_unfinished(self) -> bool:
        """Whether the turn can be tried again."""
        return self.result is None or self.result.status in UNFINISHED

    @property
    def is_held(self) -> bool:
        """Whether there is a result that nobody was told."""
        return self._held is not None

    def emit(self, bodies: list[EventBody]) -> None:
        if self._chat.spending.take(bodies):
            self._chat.spending.show(self._chat.channel)
        last = bodies[-1]
        if isinstance(last, RunResult):
            self.result = last
            if self._hold:
                self._held = last
                bodies = bodies[:-1]
        if bodies:
            self._events.append(self._run_id, bodies)
        if self.result is last:
            self._ended()

    def fail(self, error: Exception) -> None:
        """The same for anything that was raised."""
        if isinstance(error, HarnessError):
            self.report(error)
        else:
            log.error("A turn broke in an unexpected way", exc_info=error)
            self.report(INTERNAL)

    def report(self, error: HarnessError) -> None:
        """Ends the run with an error, unless its result is out."""
        report = ErrorReport(error.code, error.message, error.hint)
        if self.result is None:
            self.emit([report, RunResult("failed", "", reason=error.code)])
        elif self._held is not None:
            self._held = self.result = RunResult(
                "failed", self._held.text, self._held.usage, self._held.cost, reason=error.code
            )
            self._events.append(self._run_id, [report])
        else:
            log.error("A run had ended when this went wrong: %s", error.message)

    def interrupt(self) -> None:
        """The server ends before the run does. In memory there is nobody to be told."""
        if self._hold and (self.result is None or self._held is not None):
            held = self._held or RunResult("failed", "")
            self._held = None
            self.result = replace(held, status="failed", reason=INTERRUPTED.code)
            self._events.append(self._run_id, [INTERRUPTED, self.result])

    def finish(self) -> None:
        """Lets the result out that was held back."""
        held, self._held = self._held, None
        if held is not None:
            self._events.append(self._run_id, [held])
