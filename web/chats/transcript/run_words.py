"""What is said of how a run went on after it had stood still, and of how it ended."""

from __future__ import annotations

from web.harness.values.events import ErrorReport

RESUMED = "The server was stopped here; the answer goes on below."
"""The note with which a run that was cut off goes on."""

UNPAUSED = "It was paused here; the answer goes on below."
"""And one that a person paused."""

NOT_RUN = "This call was not run in this chat. The chat begins before it."
"""What a model reads in place of the results of an answer whose calls come after a fork."""

LEFT = "left"
"""Why a run ended that was paused and then left."""

INTERRUPTED = ErrorReport(
    "interrupted",
    "The server was stopped while this answer was written, so it is incomplete.",
    "What came before it is kept. Try again, or send another message.",
)

INTERRUPTED_ASKING = ErrorReport(
    INTERRUPTED.code,
    "The server was stopped while it waited for your answer; nothing was run.",
    INTERRUPTED.hint,
)

_ENDINGS = {
    "max_iterations": "Stopped at the limit of model calls in one turn. Send a message to go on.",
    "max_cost_dollars": "Stopped at the cost limit of one turn.",
    "max_repeats": "Stopped: the same calls brought the same results several times in a row. "
    "Send a message to go on.",
    "max_tokens": "The answer reached its length limit and was cut. Ask to continue.",
    "refusal": "The model declined to answer.",
    "given_up": "Given up, as it is not known if a tool ran. What was done before is kept.",
    "empty_answer": "The model sent an empty answer. Try to ask again in other words.",
}


def ending(reason: str, *, written: bool, done: bool, taken_back: bool) -> str:
    """Why a run ended, and what is kept of it where a person ended it: whether something was
    `written`, whether tools were called, and whether what was written last was `taken_back`."""
    if reason not in ("stopped", LEFT):
        return _ENDINGS.get(reason, reason)
    how = "Left while it was paused." if reason == LEFT else "Stopped."
    if taken_back:
        return f"{how} What had finished is kept; what was half written is not."
    if written or done:
        return f"{how} What was {'written' if written else 'done'} so far is kept."
    return how if reason == LEFT else "Stopped before anything was written."
