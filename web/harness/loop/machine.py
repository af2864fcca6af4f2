"""`next_action(state)` and `apply(state, outcome)`: the whole of what a run decides."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from web.harness.loop.actions import (
    Action,
    AwaitApproval,
    CallModel,
    CallSettled,
    CallsStarted,
    CancelRequested,
    CancelTools,
    Decided,
    Finish,
    ModelAnswered,
    ModelFailed,
    Outcome,
    RunTools,
)
from web.harness.loop.state import CallState, Ending, RunState


class OutcomeRefused(ValueError):
    """An outcome does not fit the state: a programming error of whoever drives the loop."""


def next_action(state: RunState) -> Action:
    """What has to be done now. Asking twice gives the same answer."""
    if state.ending is not None:
        return Finish(state.ending.status, state.ending.reason)
    if state.phase == "model":
        return CallModel(state.next_message_id, state.attempt, state.delay)
    running = _ids(state, "running")
    if state.cancelling:
        return CancelTools(tuple(call.id for call in state.calls if call.status != "settled"))
    free = state.limits.max_parallel_tools - len(running)
    start = _ids(state, "ready")[: max(free, 0)]
    if start or running:
        return RunTools(start, running)
    return AwaitApproval(tuple(call.key for call in state.calls if call.status == "asking"))


def apply(state: RunState, outcome: Outcome) -> RunState:
    """The state after something happened. Raises OutcomeRefused where it cannot have happened."""
    if state.ending is not None:
        raise OutcomeRefused("The run has ended.")
    match outcome:
        case ModelAnswered():
            return _answered(_in_phase(state, "model"), outcome)
        case ModelFailed():
            return _failed(_in_phase(state, "model"), outcome)
        case CallsStarted():
            return _started(_in_phase(state, "tools"), outcome)
        case CallSettled():
            return _settled(_in_phase(state, "tools"), outcome)
        case Decided():
            return _decided(_in_phase(state, "tools"), outcome)
        case CancelRequested():
            return _cancelled(state, outcome)
        case _:
            assert_never(outcome)


def _answered(state: RunState, outcome: ModelAnswered) -> RunState:
    state = replace(
        state,
        iterations=state.iterations + 1,
        attempt=1,
        delay=0.0,
        usage=state.usage + outcome.usage,
        cost=_total(state.cost, outcome.cost),
    )
    if outcome.size:
        state = state.with_message("assistant", outcome.size)
    if not outcome.calls:
        reason = "" if outcome.stop_reason in ("end_turn", "tool_use") else outcome.stop_reason
        return _end(
            state, Ending("completed", reason if outcome.size or reason else "empty_answer")
        )
    if not outcome.size:
        raise OutcomeRefused("An answer with calls has a size.")
    calls = tuple(
        CallState(call.id, call.name, "asking" if call.key else "ready", call.verdict, call.key)
        for call in outcome.calls
    )
    if len({call.id for call in calls}) < len(calls):
        raise OutcomeRefused("Two calls of one answer have the same id.")
    return replace(state, phase="tools", calls=calls)


def _failed(state: RunState, outcome: ModelFailed) -> RunState:
    limits = state.limits
    if outcome.transient and state.attempt < limits.attempts:
        backoff = limits.backoff_seconds * 2 ** (state.attempt - 1) * (1 + outcome.jitter / 2)
        delay = max(min(backoff, limits.max_backoff_seconds), outcome.retry_after or 0.0)
        if delay <= limits.max_backoff_seconds:
            return replace(state, attempt=state.attempt + 1, delay=delay)
    if outcome.kept:
        state = state.with_message("assistant", outcome.kept)
    return _end(state, Ending("failed", outcome.code))


def _started(state: RunState, outcome: CallsStarted) -> RunState:
    for call_id in outcome.call_ids:
        call = _open_call(state, call_id)
        if call.status != "ready" or state.cancelling:
            raise OutcomeRefused(f"Call {call_id} is {call.status} and cannot start.")
        state = state.with_call(replace(call, status="running"))
    return state


def _settled(state: RunState, outcome: CallSettled) -> RunState:
    call = _open_call(state, outcome.call_id)
    if call.status != "running" and not state.cancelling:
        raise OutcomeRefused(f"Call {call.id} has not started.")
    state = state.with_call(replace(call, status="settled", size=outcome.size))
    if any(call.status != "settled" for call in state.calls):
        return state
    state = state.with_message("tool", sum(call.size for call in state.calls))
    if state.cancelling:
        return _end(state, Ending("cancelled", "stopped"))
    if state.iterations >= state.limits.max_iterations:
        return _end(state, Ending("limit", "max_iterations"))
    most = state.limits.max_cost_dollars
    if most is not None and state.cost is not None and state.cost >= most:
        return _end(state, Ending("limit", "max_cost_dollars"))
    return replace(state, phase="model", calls=())


def _decided(state: RunState, outcome: Decided) -> RunState:
    for call in state.calls:
        if call.status == "asking" and call.key == outcome.key:
            verdict = "refuse" if outcome.decision == "deny" else call.verdict
            return state.with_call(replace(call, status="ready", verdict=verdict))
    raise OutcomeRefused("This question is not open.")


def _cancelled(state: RunState, outcome: CancelRequested) -> RunState:
    if state.phase == "tools":
        return replace(state, cancelling=True)
    if outcome.kept:
        state = state.with_message("assistant", outcome.kept)
    return _end(state, Ending("cancelled", "stopped"))


def _end(state: RunState, ending: Ending) -> RunState:
    return replace(state, phase="finished", ending=ending, delay=0.0)


def _in_phase(state: RunState, phase: str) -> RunState:
    if state.phase != phase:
        raise OutcomeRefused(f"The run is in phase {state.phase}, not {phase}.")
    return state


def _open_call(state: RunState, call_id: str) -> CallState:
    call = state.call(call_id)
    if call is None or call.status == "settled":
        raise OutcomeRefused(f"Call {call_id} is not open.")
    return call


def _ids(state: RunState, status: str) -> tuple[str, ...]:
    return tuple(call.id for call in state.calls if call.status == status)


def _total(sofar: float | None, more: float | None) -> float | None:
    return sofar if more is None else (sofar or 0.0) + more
