"""What the loop decides when another process goes on with a run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from web.harness.loop.actions import (
    AwaitApproval,
    AwaitInput,
    AwaitRecovery,
    CallModel,
    CallSettled,
    CallsStarted,
    CancelRequested,
    CancelTools,
    ContextFull,
    Decided,
    Finish,
    InputGiven,
    ModelAnswered,
    ModelFailed,
    Outcome,
    ProposedCall,
    Resolved,
    Resumed,
    RunTools,
)
from web.harness.loop.machine import apply, next_action
from web.harness.loop.recovery import OutcomeRefused
from web.harness.loop.state import CallState, RunLimits, RunState, start_run
from web.harness.values.usage import Usage

LIMITS = RunLimits(
    max_iterations=20_000,
    max_cost_dollars=None,
    max_parallel_tools=4,
    attempts=3,
    backoff_seconds=0.5,
    max_backoff_seconds=8.0,
)


def after(*outcomes: Outcome) -> RunState:
    state = start_run("r", LIMITS)
    for outcome in outcomes:
        state = apply(state, outcome)
    return state


def answered(*names: str, keys: dict[str, str] | None = None) -> ModelAnswered:
    calls = tuple(ProposedCall(name, "t", key=(keys or {}).get(name, "")) for name in names)
    return ModelAnswered(9, calls, "tool_use" if calls else "end_turn", Usage(1, 1))


def running(*names: str) -> RunState:
    return after(answered(*names), CallsStarted(names))


def call_of(state: RunState, name: str) -> CallState:
    call = state.call(name)
    assert call is not None
    return call


def test_a_dropped_model_call_is_made_again_at_once() -> None:
    state = after(ModelFailed("busy", True), Resumed())
    assert next_action(state) == CallModel("r-1", 2, 0.0)
    assert state.resumes == 1


def test_a_context_that_was_being_shortened_is_measured_anew_and_counts_once() -> None:
    state = after(ContextFull(200, 100, 60), Resumed())
    assert next_action(state) == CallModel("r-1", 1, 0.0, early=True)


def test_what_may_be_repeated_starts_again_and_what_is_uncertain_waits_for_a_person() -> None:
    state = apply(running("a", "b"), Resumed(repeat=("a",), uncertain=("b",)))
    assert next_action(state) == RunTools(("a",), ())
    state = apply(apply(state, CallsStarted(("a",))), CallSettled("a", 1))
    assert next_action(state) == AwaitRecovery(("b",))
    assert call_of(state, "b").recovery_key == "b-recovery-1"


def test_a_call_that_is_run_again_has_another_question_the_next_time() -> None:
    state = apply(running("a"), Resumed(uncertain=("a",)))
    state = apply(apply(state, Resolved("a", "retry")), CallsStarted(("a",)))
    state = apply(state, Resumed(uncertain=("a",)))
    assert call_of(state, "a").recovery_key == "a-recovery-2"
    # Nobody has answered yet, so it is the same question.
    assert call_of(apply(state, Resumed()), "a").recovery_key == "a-recovery-2"


def test_the_result_that_a_person_gives_is_the_result_of_the_call() -> None:
    state = apply(running("a"), Resumed(uncertain=("a",)))
    state = apply(apply(state, Resolved("a", "result")), CallSettled("a", 3))
    assert next_action(state) == CallModel("r-3", 1, 0.0)


def test_giving_up_ends_the_run_when_each_call_has_a_result() -> None:
    state = apply(running("a", "b"), Resumed(uncertain=("a", "b")))
    state = apply(state, Resolved("b", "abort"))
    assert next_action(state) == CancelTools(("a", "b"))
    state = apply(apply(state, CallSettled("a", 1)), CallSettled("b", 1))
    assert next_action(state) == Finish("cancelled", "given_up")


def test_a_call_that_waits_for_input_goes_on_when_it_is_given() -> None:
    state = apply(running("a"), Resumed(waiting=("a",)))
    assert next_action(state) == AwaitInput(("a",))
    assert next_action(apply(state, InputGiven("a"))) == RunTools(("a",), ())


def test_a_run_waits_for_approvals_and_for_recovery_in_any_order() -> None:
    state = after(answered("a", "b", keys={"b": "k"}), CallsStarted(("a",)))
    state = apply(state, Resumed(uncertain=("a",)))
    assert next_action(state) == AwaitRecovery(("a",))
    decided = apply(state, Decided("k", "allow"))
    assert next_action(decided) == RunTools(("b",), ())
    given = apply(apply(state, Resolved("a", "result")), CallSettled("a", 1))
    assert next_action(given) == AwaitApproval(("k",))


def test_a_run_that_has_to_stop_repeats_nothing() -> None:
    state = apply(running("a"), CancelRequested())
    with pytest.raises(OutcomeRefused):
        apply(state, Resumed(repeat=("a",)))
    state = apply(state, Resumed(uncertain=("a",)))
    assert next_action(state) == CancelTools(("a",))
    for late in (Resolved("a", "retry"), InputGiven("a")):
        with pytest.raises(OutcomeRefused):
            apply(state, late)
    assert next_action(apply(state, CallSettled("a", 1))) == Finish("cancelled", "stopped")


@pytest.mark.parametrize(
    "outcome",
    [
        Resumed(repeat=("b",)),
        Resumed(uncertain=("x",)),
        Resolved("a", "retry"),
        InputGiven("a"),
    ],
)
def test_what_cannot_have_happened_is_refused(outcome: Outcome) -> None:
    state = after(answered("a", "b"), CallsStarted(("a",)))
    with pytest.raises(OutcomeRefused):
        apply(state, outcome)


def test_a_grant_for_the_whole_chat_is_part_of_the_state() -> None:
    state = after(answered("a", keys={"a": "k"}), Decided("k", "allow_chat"))
    assert dict(RunState.from_json(json.loads(json.dumps(state.as_json()))).grants) == {"t": "k"}


def test_the_state_of_a_run_of_many_steps_is_as_small_as_that_of_a_short_one() -> None:
    state = start_run("r", LIMITS)
    for number in range(1_000):
        call_id = f"r-{2 * number + 1}-0"
        state = apply(state, answered(call_id))
        state = apply(apply(state, CallsStarted((call_id,))), CallSettled(call_id, 9))
    assert state.next_message_id == "r-2001"
    assert len(json.dumps(state.as_json())) < 1_000


def test_a_state_of_the_earlier_form_goes_on() -> None:
    state = apply(running("a"), CancelRequested())
    form = state.as_json()
    for new in ("message_count", "last_role", "grants", "resumes"):
        del form[new]
    for call in form["calls"]:
        del call["starts"]
    form["messages"] = [
        {"id": "r-0", "role": "user", "size": 5},
        {"id": "r-1", "role": "assistant", "size": 9},
    ]
    form["cancelling"] = True
    old = RunState.from_json(json.loads(json.dumps(form)))
    assert old == replace(state, calls=(replace(state.calls[0], starts=0),))
