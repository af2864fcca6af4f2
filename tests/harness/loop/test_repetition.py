"""The repetition guard of the loop, and what sub-agents add to a run's usage."""

from __future__ import annotations

from dataclasses import replace

from web.harness.loop.actions import CallSettled, CallsStarted, ModelAnswered, ProposedCall
from web.harness.loop.machine import apply
from web.harness.loop.state import Ending, RunLimits, RunState, start_run
from web.harness.values.config import AgentConfig
from web.harness.values.usage import Usage

LIMITS = replace(RunLimits.of(AgentConfig()), max_repeats=3)


def begun(limits: RunLimits = LIMITS) -> RunState:
    return start_run("r", limits)


def calls(state: RunState, *digests: str) -> RunState:
    """One answer whose calls settle with these digests."""
    ids = [f"{state.next_message_id}-{number}" for number in range(len(digests))]
    asked = tuple(ProposedCall(id, "tool") for id in ids)
    state = apply(state, ModelAnswered(9, asked, "tool_use", Usage(1, 1)))
    state = apply(state, CallsStarted(tuple(ids)))
    for id, digest in zip(ids, digests, strict=True):
        state = apply(state, CallSettled(id, 3, digest))
    return state


def test_the_same_call_with_the_same_result_in_a_row_ends_the_run_at_the_limit() -> None:
    state = begun()
    for _ in range(2):
        state = calls(state, "a")
        assert state.ending is None
    assert calls(state, "a").ending == Ending("limit", "max_repeats")


def test_another_result_in_between_begins_the_count_anew() -> None:
    state = begun()
    for digest in ("a", "a", "b", "a", "a"):
        state = calls(state, digest)
        assert state.ending is None
    assert calls(state, "a").ending == Ending("limit", "max_repeats")


def test_the_same_set_of_calls_counts_whatever_their_order() -> None:
    state = calls(calls(begun(), "a", "b"), "b", "a")
    assert state.ending is None
    assert calls(state, "a", "b").ending == Ending("limit", "max_repeats")


def test_a_call_that_stands_several_times_in_one_answer_counts_as_often() -> None:
    assert calls(begun(), "a", "a").repeats == 2
    assert calls(begun(), "a", "a", "a").ending == Ending("limit", "max_repeats")


def test_calls_beside_others_that_differ_are_no_repetition() -> None:
    state = begun()
    for number in range(10):
        state = calls(state, "a", f"b{number}")
    assert state.ending is None


def test_without_a_limit_or_a_digest_nothing_is_counted() -> None:
    state = begun(replace(LIMITS, max_repeats=None))
    for _ in range(10):
        state = calls(state, "a")
    assert state.ending is None
    state = begun()
    for _ in range(10):
        state = calls(state, "")
    assert state.ending is None


def test_the_count_survives_being_written_down() -> None:
    state = calls(calls(begun(), "a"), "a")
    assert calls(RunState.from_json(state.as_json()), "a").ending == Ending("limit", "max_repeats")


def test_what_a_call_cost_counts_for_the_run_and_its_limit() -> None:
    state = begun(replace(LIMITS, max_cost_dollars=1.0))
    state = apply(state, ModelAnswered(9, (ProposedCall("c", "tool"),), "tool_use", Usage(1, 1)))
    state = apply(state, CallsStarted(("c",)))
    state = apply(state, CallSettled("c", 3, "a", Usage(100, 50), 1.5))
    assert (state.usage, state.cost) == (Usage(101, 51), 1.5)
    assert state.ending == Ending("limit", "max_cost_dollars")
