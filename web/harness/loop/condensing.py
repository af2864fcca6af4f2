"""What the loop decides when a conversation gets too long for the model.

Step by step, each only if those before it did not do: old results of tools are cleared, the oldest
messages are summarised, they are dropped, what is left is cut. A summary that fails leaves all as
it was; only a request that could not be sent otherwise makes the loop drop anything.
"""

from __future__ import annotations

from dataclasses import replace

from web.harness.loop.actions import Condensed, CondenseFailed, ContextFull
from web.harness.loop.retries import next_delay
from web.harness.loop.state import CondenseStep, Condensing, Ending, RunState
from web.harness.values.usage import add_cost

MAX_SQUEEZES = 8
"""How often in a row a request may be found too long, before the run fails."""

SUMMARY_ATTEMPTS = 2
"""Tries of a summary: the run waits for it, and can go on without."""

TOO_LONG = "context_too_long"
"""The reason of a run that failed because nothing more could be left out."""


def context_full(state: RunState, outcome: ContextFull) -> RunState:
    """The next request nears, or exceeds, what the model takes."""
    state = replace(state, squeezes=state.squeezes + 1, attempt=1, delay=0.0)
    # Where nothing would help, nothing is taken out and no summary is paid for.
    if state.squeezes > MAX_SQUEEZES or outcome.least > outcome.room:
        return _fails(state)
    return _step(state, Condensing("clear", outcome.tokens, outcome.room, outcome.goal))


def condensed(state: RunState, before: Condensing, outcome: Condensed) -> RunState:
    """A step was done: the model is called if it did enough, else the next step follows."""
    state = replace(
        state,
        usage=state.usage + outcome.usage,
        cost=add_cost(state.cost, outcome.cost),
        attempt=1,
        delay=0.0,
    )
    most = state.limits.max_cost_dollars
    if outcome.cost is not None and most is not None and (state.cost or 0.0) >= most:
        return _end(state, Ending("limit", "max_cost_dollars"))
    now = replace(before, tokens=outcome.tokens)
    if now.step == "clear":
        if now.tokens <= now.goal or (state.summaries_off and now.tokens <= now.room):
            return _on(state)
        return _step(state, now, "drop" if state.summaries_off else "summarise")
    if now.tokens <= now.room:
        return _on(state)
    if now.step == "shorten":
        return _fails(state)
    return _step(state, now, "drop" if now.step == "summarise" else "shorten")


def condense_failed(state: RunState, before: Condensing, outcome: CondenseFailed) -> RunState:
    """A summary failed: it is tried once more, or the run goes on without, as long as it can."""
    state = replace(
        state, usage=state.usage + outcome.usage, cost=add_cost(state.cost, outcome.cost)
    )
    if outcome.transient and state.attempt < min(state.limits.attempts, SUMMARY_ATTEMPTS):
        delay = next_delay(state.limits, state.attempt, outcome.retry_after, outcome.jitter)
        if delay is not None:
            return replace(state, attempt=state.attempt + 1, delay=delay)
    state = replace(state, attempt=1, delay=0.0, summaries_off=True)
    most = state.limits.max_cost_dollars
    if outcome.cost is not None and most is not None and (state.cost or 0.0) >= most:
        return _end(state, Ending("limit", "max_cost_dollars"))
    return _on(state) if before.tokens <= before.room else _step(state, before, "drop")


def _step(state: RunState, now: Condensing, step: CondenseStep = "clear") -> RunState:
    return replace(state, phase="condense", condensing=replace(now, step=step))


def _on(state: RunState) -> RunState:
    return replace(state, phase="model", condensing=None)


def _fails(state: RunState) -> RunState:
    return _end(state, Ending("failed", TOO_LONG))


def _end(state: RunState, ending: Ending) -> RunState:
    return replace(state, phase="finished", condensing=None, ending=ending)
