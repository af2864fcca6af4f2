"""What the loop decides when another process goes on with a run, and of calls that nobody knows of.

A call that had started when its process ended is started again where it may be, and else left to a
person.
"""

from __future__ import annotations

from dataclasses import replace

from web.harness.loop.actions import InputGiven, Resolved, Resumed
from web.harness.loop.state import CallState, CallStatus, RunState

GIVEN_UP = "given_up"
"""The reason of a run that a person gave up as nobody knew if a call had run."""


class OutcomeRefused(ValueError):
    """An outcome does not fit the state: a programming error of whoever drives the loop."""


def resumed(state: RunState, outcome: Resumed) -> RunState:
    """Another process goes on: no model call and no tool is under way any more."""
    state = replace(state, resumes=state.resumes + 1, delay=0.0)
    if state.condensing is not None:
        # The request is measured anew; what was made shorter so far stays so.
        squeezes = max(state.squeezes - 1, 0)
        state = replace(state, phase="model", condensing=None, squeezes=squeezes)
    if state.cancelling and outcome.repeat:
        raise OutcomeRefused("Nothing is started in a run that has to stop.")
    moves: tuple[tuple[tuple[str, ...], CallStatus], ...] = (
        (outcome.repeat, "ready"),
        (outcome.uncertain, "uncertain"),
        (outcome.waiting, "waiting"),
    )
    for call_ids, status in moves:
        for call_id in call_ids:
            state = state.with_call(replace(_call_in(state, call_id, "running"), status=status))
    return state


def resolved(state: RunState, outcome: Resolved) -> RunState:
    """A person said what is done about an uncertain call."""
    call = _call_in(state, outcome.call_id, "uncertain")
    if state.cancelling:
        raise OutcomeRefused("The run has to stop.")
    if outcome.how == "abort":
        return replace(state, cancelling=GIVEN_UP)
    status: CallStatus = "ready" if outcome.how == "retry" else "running"
    return state.with_call(replace(call, status=status))


def input_given(state: RunState, outcome: InputGiven) -> RunState:
    """A waiting call can go on."""
    call = _call_in(state, outcome.call_id, "waiting")
    if state.cancelling:
        raise OutcomeRefused("The run has to stop.")
    return state.with_call(replace(call, status="ready"))


def open_call(state: RunState, call_id: str) -> CallState:
    """A call that has no result yet. Raises OutcomeRefused."""
    call = state.call(call_id)
    if call is None or call.status == "settled":
        raise OutcomeRefused(f"Call {call_id} is not open.")
    return call


def _call_in(state: RunState, call_id: str, status: CallStatus) -> CallState:
    call = open_call(state, call_id)
    if call.status != status:
        raise OutcomeRefused(f"Call {call_id} is {call.status}, not {status}.")
    return call
