"""`next_action(state)` and `apply(state, outcome)`: the whole of what a run decides."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import assert_never

from web.harness.loop.actions import (
    Action,
    AwaitApproval,
    AwaitInput,
    AwaitRecovery,
    CallModel,
    CallSettled,
    CallsStarted,
    CancelRequested,
    CancelTools,
    CondenseContext,
    Condensed,
    CondenseFailed,
    ContextFull,
    Decided,
    Finish,
    InputGiven,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Resolved,
    Resumed,
    RunTools,
)
from web.harness.loop.condensing import condense_failed, condensed, context_full
from web.harness.loop.recovery import OutcomeRefused, input_given, open_call, resolved, resumed
from web.harness.loop.retries import next_delay
from web.harness.loop.state import CallState, Condensing, Ending, RunState
from web.harness.values.usage import add_cost

_YES = ("allow", "allow_chat")
"""What lets a call run; anything else refuses it."""


def next_action(state: RunState) -> Action:
    """What has to be done now. Asking twice gives the same answer."""
    if state.ending is not None:
        return Finish(state.ending.status, state.ending.reason)
    if state.phase == "model":
        # What has just been shortened is sent as soon as it fits.
        early = not state.squeezes and not state.summaries_off
        return CallModel(state.next_message_id, state.attempt, state.delay, early)
    if state.condensing is not None:
        return CondenseContext(state.condensing, state.attempt, state.delay)
    running = _ids(state, "running")
    if state.cancelling:
        return CancelTools(tuple(call.id for call in state.calls if call.status != "settled"))
    free = state.limits.max_parallel_tools - len(running)
    start = _ids(state, "ready")[: max(free, 0)]
    if start or running:
        return RunTools(start, running)
    if uncertain := _ids(state, "uncertain"):
        return AwaitRecovery(uncertain)
    if waiting := _ids(state, "waiting"):
        return AwaitInput(waiting)
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
        case ContextFull():
            return context_full(_in_phase(state, "model"), outcome)
        case Condensed():
            return condensed(state, _condensing(state), outcome)
        case CondenseFailed():
            return condense_failed(state, _condensing(state, "summarise"), outcome)
        case CallsStarted():
            return _started(_in_phase(state, "tools"), outcome)
        case CallSettled():
            return _settled(_in_phase(state, "tools"), outcome)
        case Decided():
            return _decided(_in_phase(state, "tools"), outcome)
        case CancelRequested():
            return _cancelled(state, outcome)
        case Resumed():
            return resumed(state, outcome)
        case Resolved():
            return resolved(_in_phase(state, "tools"), outcome)
        case InputGiven():
            return input_given(_in_phase(state, "tools"), outcome)
        case _:
            assert_never(outcome)


def _answered(state: RunState, outcome: ModelAnswered) -> RunState:
    state = replace(
        state,
        iterations=state.iterations + 1,
        squeezes=0,
        attempt=1,
        delay=0.0,
        usage=state.usage + outcome.usage,
        cost=add_cost(state.cost, outcome.cost),
    )
    if outcome.size:
        state = state.with_message("assistant")
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
        delay = next_delay(limits, state.attempt, outcome.retry_after, outcome.jitter)
        if delay is not None:
            return replace(state, attempt=state.attempt + 1, delay=delay)
    if outcome.kept:
        state = state.with_message("assistant")
    return _end(state, Ending("failed", outcome.code, outcome.message, outcome.hint))


def _started(state: RunState, outcome: CallsStarted) -> RunState:
    for call_id in outcome.call_ids:
        call = open_call(state, call_id)
        if call.status != "ready" or state.cancelling:
            raise OutcomeRefused(f"Call {call_id} is {call.status} and cannot start.")
        state = state.with_call(replace(call, status="running", starts=call.starts + 1))
    return state


def _settled(state: RunState, outcome: CallSettled) -> RunState:
    call = open_call(state, outcome.call_id)
    if call.status != "running" and not state.cancelling:
        raise OutcomeRefused(f"Call {call.id} has not started.")
    state = replace(
        state.with_call(replace(call, status="settled", size=outcome.size, digest=outcome.digest)),
        usage=state.usage + outcome.usage,
        cost=add_cost(state.cost, outcome.cost),
    )
    if any(call.status != "settled" for call in state.calls):
        return state
    state = state.with_message("tool")
    if state.cancelling:
        return _end(state, Ending("cancelled", state.cancelling))
    state = _counted(state)
    if state.iterations >= state.limits.max_iterations:
        return _end(state, Ending("limit", "max_iterations"))
    most = state.limits.max_cost_dollars
    if most is not None and state.cost is not None and state.cost >= most:
        return _end(state, Ending("limit", "max_cost_dollars"))
    most_repeats = state.limits.max_repeats
    if most_repeats is not None and state.repeats >= max(most_repeats, 2):
        return _end(state, Ending("limit", "max_repeats"))
    return replace(state, phase="model", calls=())


def _counted(state: RunState) -> RunState:
    """Counts whether the calls that have just ended did the same as those before them.

    The same call several times in one answer counts as often as it is there.
    """
    digests = Counter(call.digest for call in state.calls)
    if "" in digests:
        return replace(state, last_round="", repeats=0)
    this_round = " ".join(sorted(digests))
    times = min(digests.values())
    before = state.repeats if this_round == state.last_round else 0
    return replace(state, last_round=this_round, repeats=before + times)


def _decided(state: RunState, outcome: Decided) -> RunState:
    for call in state.calls:
        if call.status == "asking" and call.key == outcome.key:
            verdict = call.verdict if outcome.decision in _YES else "refuse"
            if outcome.decision == "allow_chat":
                granted = dict(state.grants) | {call.name: call.key}
                state = replace(state, grants=tuple(granted.items()))
            return state.with_call(replace(call, status="ready", verdict=verdict))
    raise OutcomeRefused("This question is not open.")


def _cancelled(state: RunState, outcome: CancelRequested) -> RunState:
    if state.phase == "tools":
        return replace(state, cancelling="stopped")
    if outcome.kept:
        state = state.with_message("assistant")
    return _end(state, Ending("cancelled", "stopped"))


def _end(state: RunState, ending: Ending) -> RunState:
    return replace(state, phase="finished", ending=ending, condensing=None, delay=0.0)


def _in_phase(state: RunState, phase: str) -> RunState:
    if state.phase != phase:
        raise OutcomeRefused(f"The run is in phase {state.phase}, not {phase}.")
    return state


def _condensing(state: RunState, step: str = "") -> Condensing:
    if state.condensing is None or step not in ("", state.condensing.step):
        raise OutcomeRefused(f"The run is in phase {state.phase}; no such step is under way.")
    return state.condensing


def _ids(state: RunState, status: str) -> tuple[str, ...]:
    return tuple(call.id for call in state.calls if call.status == status)
