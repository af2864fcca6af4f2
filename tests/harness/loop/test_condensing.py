"""What the loop decides when a conversation gets too long: which step, when to go on, when not."""

from __future__ import annotations

import pytest

from web.harness.loop.actions import (
    CallModel,
    CancelRequested,
    CondenseContext,
    Condensed,
    CondenseFailed,
    ContextFull,
    Finish,
    ModelAnswered,
    ModelFailed,
    Outcome,
)
from web.harness.loop.condensing import MAX_SQUEEZES
from web.harness.loop.machine import apply, next_action
from web.harness.loop.recovery import OutcomeRefused
from web.harness.loop.state import RunLimits, RunState, start_run
from web.harness.values.usage import Usage

LIMITS = RunLimits(
    max_iterations=4,
    max_cost_dollars=1.0,
    max_parallel_tools=2,
    max_repeats=5,
    attempts=3,
    backoff_seconds=0.5,
    max_backoff_seconds=8.0,
)
NEAR = ContextFull(tokens=950, room=1000, goal=600)
OVER = ContextFull(tokens=1500, room=1000, goal=600)


def after(*outcomes: Outcome, limits: RunLimits = LIMITS) -> RunState:
    state = start_run("r", limits)
    for outcome in outcomes:
        state = apply(state, outcome)
    return state


def step_of(state: RunState) -> str:
    action = next_action(state)
    return action.condensing.step if isinstance(action, CondenseContext) else type(action).__name__


def test_old_results_are_cleared_first_and_that_may_be_enough() -> None:
    assert step_of(after(NEAR)) == "clear"
    assert next_action(after(NEAR, Condensed(600))) == CallModel("r-1", 1, 0.0, early=False)


def test_a_summary_follows_where_clearing_did_too_little() -> None:
    assert step_of(after(NEAR, Condensed(601))) == "summarise"
    assert step_of(after(NEAR, Condensed(601), Condensed(1000))) == "CallModel"


def test_what_does_not_fit_with_its_summary_is_dropped_then_cut_then_an_error() -> None:
    state = after(OVER, Condensed(1400), Condensed(1300))
    assert step_of(state) == "drop"
    assert step_of(apply(state, Condensed(1000))) == "CallModel"
    state = apply(state, Condensed(1200))
    assert step_of(state) == "shorten"
    assert step_of(apply(state, Condensed(1000))) == "CallModel"
    assert next_action(apply(state, Condensed(1001))) == Finish("failed", "context_too_long")


def test_a_summary_that_fails_costs_nothing_while_all_still_fits() -> None:
    state = after(NEAR, Condensed(950), CondenseFailed("no_summary"))
    assert next_action(state) == CallModel("r-1", 1, 0.0, early=False)


def test_a_summary_that_fails_where_it_is_needed_makes_the_oldest_go() -> None:
    state = after(OVER, Condensed(1500), CondenseFailed("no_summary"))
    assert step_of(state) == "drop"
    # No model is asked a second time in this run.
    state = apply(apply(state, Condensed(900)), ContextFull(1100, 1000, 600))
    assert step_of(apply(state, Condensed(1050))) == "drop"
    assert step_of(apply(state, Condensed(990))) == "CallModel"


def test_a_summary_that_may_come_later_is_tried_once_more_after_a_wait() -> None:
    state = after(NEAR, Condensed(950), CondenseFailed("busy", transient=True))
    action = next_action(state)
    assert isinstance(action, CondenseContext)
    assert (action.condensing.step, action.attempt, action.delay) == ("summarise", 2, 0.5)
    state = apply(state, CondenseFailed("busy", transient=True))
    assert next_action(state) == CallModel("r-1", 1, 0.0, early=False)


def test_a_wait_that_is_too_long_ends_the_summary_at_once() -> None:
    failed = CondenseFailed("busy", transient=True, retry_after=60.0)
    assert step_of(after(NEAR, Condensed(950), failed)) == "CallModel"


def test_a_retry_of_the_model_is_forgotten_when_the_context_is_full() -> None:
    action = next_action(after(ModelFailed("busy", True), NEAR))
    assert isinstance(action, CondenseContext)
    assert (action.attempt, action.delay) == (1, 0.0)


def test_after_an_answer_the_context_may_be_shortened_early_again() -> None:
    state = after(NEAR, Condensed(500), ModelAnswered(5, (), "end_turn", Usage()))
    assert (state.squeezes, next_action(state)) == (0, Finish("completed", ""))


def test_where_what_must_stay_is_too_long_the_run_fails_at_once() -> None:
    state = after(ContextFull(tokens=5000, room=1000, goal=600, least=1001))
    assert next_action(state) == Finish("failed", "context_too_long")
    assert step_of(after(ContextFull(tokens=5000, room=1000, goal=600, least=1000))) == "clear"


def test_a_model_that_refuses_again_and_again_ends_the_run() -> None:
    state = after()
    for _ in range(MAX_SQUEEZES):
        state = apply(apply(state, OVER), Condensed(500))
    assert next_action(apply(state, OVER)) == Finish("failed", "context_too_long")


def test_a_summary_counts_for_usage_and_cost_and_not_as_an_iteration() -> None:
    state = after(NEAR, Condensed(700), Condensed(500, Usage(90, 9), 0.25))
    assert (state.usage, state.cost, state.iterations) == (Usage(90, 9), 0.25, 0)
    failed = CondenseFailed("no_summary", usage=Usage(90, 9), cost=0.25)
    state = after(NEAR, Condensed(700), failed)
    assert (state.usage, state.cost) == (Usage(90, 9), 0.25)


@pytest.mark.parametrize(
    "outcome", [Condensed(500, Usage(90, 9), 1.5), CondenseFailed("no", cost=1.5)]
)
def test_a_summary_may_reach_the_cost_limit(outcome: Outcome) -> None:
    state = after(NEAR, Condensed(700), outcome)
    assert next_action(state) == Finish("limit", "max_cost_dollars")


@pytest.mark.parametrize("before", [(NEAR,), (NEAR, Condensed(700))])
def test_a_run_can_be_stopped_while_it_condenses(before: tuple[Outcome, ...]) -> None:
    state = after(*before, CancelRequested())
    assert next_action(state) == Finish("cancelled", "stopped")
    assert state.condensing is None


@pytest.mark.parametrize(
    ("before", "outcome"),
    [
        ((), Condensed(5)),
        ((), CondenseFailed("no")),
        ((NEAR,), CondenseFailed("no")),
        ((NEAR,), NEAR),
        ((NEAR,), ModelAnswered(5, (), "end_turn", Usage())),
    ],
)
def test_what_cannot_have_happened_is_refused(
    before: tuple[Outcome, ...], outcome: Outcome
) -> None:
    with pytest.raises(OutcomeRefused):
        apply(after(*before), outcome)
