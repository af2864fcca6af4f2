"""How long a run worked, and how long it stood still: while its person had to answer, while it was
paused, and while no process performed it."""

from __future__ import annotations

from dataclasses import dataclass

from web.chats.transcript.run_words import INTERRUPTED, LEFT, RESUMED, UNPAUSED
from web.harness.agent.run import INTERRUPTED as CUT_OFF
from web.harness.values.events import (
    AttemptReset,
    ErrorReport,
    EventBody,
    Note,
    RecoveryRequired,
    RunResult,
)


@dataclass(slots=True)
class WorkTime:
    """Told by the events of a run, so that it is the same whenever they are read.

    `last` is when the newest of them happened, in seconds since the epoch; `waits` says that
    nothing happens before the person answers; `still` are the seconds in which nothing was done.
    """

    last: float
    still: float = 0.0
    waits: bool = False

    def take(self, body: EventBody, at: float) -> None:
        # Clocks of several servers may differ.
        since = max(0.0, at - self.last)
        self.last += since
        if self.waits or _ends_standstill(body):
            self.still += since


def _ends_standstill(body: EventBody) -> bool:
    """Whether this is what comes first after a time in which nobody performed the run."""
    match body:
        case Note(text):
            return text in (RESUMED, UNPAUSED)
        case AttemptReset(reason=reason):
            return reason == CUT_OFF
        case ErrorReport(code):
            return code == INTERRUPTED.code
        case RunResult(reason=reason):
            return reason == LEFT
        case RecoveryRequired():
            return True
    return False
