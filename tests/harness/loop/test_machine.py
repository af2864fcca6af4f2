"""The loop alone: random outcomes are driven through it, and single rules are looked at."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from web.harness.loop.actions import (
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
    ProposedCall,
    Resolved,
    Resumed,
    RunTools,
)
from web.harness.loop.machine import apply, next_action
from web.harness.loop.recovery import OutcomeRefused
from web.harness.loop.state import Condensing, RunLimits, RunState, start_run
from web.harness.values.usage import Usage

LIMITS = RunLimits(
    max_iterations=4,
    max_cost_dollars=1.0,
    max_parallel_tools=2,
    max_repeats=3,
    attempts=3,
    backoff_seconds=0.5,
    max_backoff_seconds=8.0,
)


def begun(limits: RunLimits = LIMITS) -> RunState:
    return start_run("r", limits)


def answered(*calls: ProposedCall, size: int = 9, cost: float | None = None) -> ModelAnswered:
    return ModelAnswered(size, calls, "tool_use" if calls else "end_turn", Usage(1, 1), cost)


class Driver:
    """Does what the loop asks in any order that a real run could, as drawn by hypothesis."""

    def __init__(self, data: st.DataObject, limits: RunLimits) -> None:
        self.data = data
        self.state = begun(limits)
        self.results: dict[str, int] = {}
        self.proposed: list[str] = []
        self.roles: list[str] = [self.state.last_role]
        self.steps = 0

    def draw(self, *choices: object) -> object:
        return self.data.draw(st.sampled_from(choices))

    def run(self) -> Finish:
        while True:
            action = next_action(self.state)
            assert action == next_action(self.state), "asking twice gives the same answer"
            if isinstance(action, Finish):
                return action
            self.steps += 1
            assert self.steps < 400, "the run does not end"
            if self.state.resumes < 5 and self.draw(*[False] * 9, True):
                self.resume()
                continue
            if self.draw(*[False] * 9, True) and not self.state.cancelling:
                kept = self.draw(0, 7) if isinstance(action, CallModel) else 0
                self.apply(CancelRequested(kept))  # type: ignore[arg-type]
                continue
            self.perform(action)

    def perform(self, action: object) -> None:
        match action:
            case CallModel(message_id=message_id):
                self.model(message_id)
            case RunTools(start, running):
                if start:
                    self.apply(CallsStarted(start))
                    running = (*running, *start)
                asking = [call.key for call in self.state.calls if call.status == "asking"]
                if asking and self.draw(True, False):
                    self.decide(asking)
                else:
                    self.settle(self.draw(*running))
            case AwaitApproval(keys):
                assert keys
                self.decide(list(keys))
            case AwaitRecovery(call_ids) | AwaitInput(call_ids):
                assert not [call for call in self.state.calls if call.status == "running"]
                self.answer(call_ids)
            case CancelTools(call_ids):
                assert call_ids
                self.settle(self.draw(*call_ids))
            case CondenseContext(condensing=condensing):
                self.condense(condensing)

    def resume(self) -> None:
        """The process ends and another goes on; what becomes of a call is anything that may be."""
        running = [call.id for call in self.state.calls if call.status == "running"]
        fates = ("uncertain",) if self.state.cancelling else ("repeat", "uncertain", "waiting")
        found: dict[str, tuple[str, ...]] = dict.fromkeys(fates, ())
        for call_id in running:
            fate = str(self.draw(*fates))
            found[fate] = (*found[fate], call_id)
        self.apply(Resumed(**found))

    def answer(self, call_ids: tuple[str, ...]) -> None:
        asking = [call.key for call in self.state.calls if call.status == "asking"]
        if asking and self.draw(True, False):
            self.decide(asking)
            return
        call_id = str(self.draw(*call_ids))
        call = self.state.call(call_id)
        assert call is not None
        if call.status == "waiting":
            self.apply(InputGiven(call_id))
            return
        how = self.draw("result", "retry", "abort")
        self.apply(Resolved(call_id, how))  # type: ignore[arg-type]
        if how == "result":
            self.settle(call_id)

    def condense(self, condensing: Condensing) -> None:
        if condensing.step == "summarise" and self.draw(True, False):
            after = self.draw(None, 1.0, 100.0)
            self.apply(CondenseFailed("no", bool(self.draw(True, False)), after, cost=0.1))  # type: ignore[arg-type]
        else:
            self.apply(Condensed(self.data.draw(st.integers(0, condensing.tokens)), cost=0.1))

    def model(self, message_id: str) -> None:
        if self.draw(*[False] * 3, True):
            self.apply(ContextFull(self.data.draw(st.integers(0, 200)), 100, 60))
            return
        if self.draw(True, False):
            self.apply(
                ModelFailed(
                    "broken",
                    transient=bool(self.draw(True, False)),
                    kept=self.draw(0, 3),  # type: ignore[arg-type]
                    retry_after=self.draw(None, 1.0, 100.0),  # type: ignore[arg-type]
                    jitter=0.5,
                )
            )
            return
        count = self.data.draw(st.integers(0, 4))
        calls = []
        for index in range(count):
            call_id = f"{message_id}-{index}"
            self.proposed.append(call_id)
            key = self.draw("", f"key-{call_id}")
            calls.append(ProposedCall(call_id, "tool", self.draw("run", "refuse"), key))  # type: ignore[arg-type]
        cost = self.draw(None, 0.1, 0.6)
        self.apply(answered(*calls, size=9 if calls else self.draw(0, 9), cost=cost))  # type: ignore[arg-type]

    def decide(self, keys: list[str]) -> None:
        self.apply(Decided(self.draw(*keys), self.draw("allow", "allow_chat", "deny")))  # type: ignore[arg-type]

    def settle(self, call_id: object) -> None:
        assert isinstance(call_id, str)
        self.results[call_id] = self.results.get(call_id, 0) + 1
        digest, cost = self.draw("", "a", "b"), self.draw(None, 0.2)
        self.apply(CallSettled(call_id, 3, digest, Usage(2, 1), cost))  # type: ignore[arg-type]

    def apply(self, outcome: Outcome) -> None:
        before = self.state
        self.state = apply(before, outcome)
        written = json.loads(json.dumps(self.state.as_json()))
        assert RunState.from_json(written) == self.state
        added = self.state.message_count - before.message_count
        assert added in (0, 1)
        if added:
            assert self.state.last_message_id == before.next_message_id
            self.roles.append(self.state.last_role)
        assert len(json.dumps(written)) < 3_000, "a state stays small"


@settings(max_examples=250, deadline=None)
@given(st.data(), st.sampled_from([LIMITS, replace(LIMITS, max_cost_dollars=None)]))
def test_any_run_ends_and_gives_every_call_exactly_one_result(
    data: st.DataObject, limits: RunLimits
) -> None:
    driver = Driver(data, limits)
    end = driver.run()
    assert driver.results == dict.fromkeys(driver.proposed, 1)
    assert end.status in ("completed", "cancelled", "failed", "limit")
    assert driver.state.iterations <= limits.max_iterations
    with pytest.raises(OutcomeRefused):
        apply(driver.state, CancelRequested())


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_roles_alternate_so_that_a_call_is_never_apart_from_its_result(
    data: st.DataObject,
) -> None:
    driver = Driver(data, LIMITS)
    driver.run()
    roles = driver.roles
    assert roles[0] == "user"
    for earlier, later in itertools.pairwise(roles):
        assert (earlier, later) in {
            ("user", "assistant"),
            ("assistant", "tool"),
            ("tool", "assistant"),
        }


def test_a_run_begins_with_the_model() -> None:
    assert next_action(begun()) == CallModel("r-1", 1, 0.0)


def test_an_answer_without_calls_ends_the_run() -> None:
    state = apply(begun(), answered())
    assert next_action(state) == Finish("completed", "")


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ModelAnswered(0, (), "end_turn", Usage()), "empty_answer"),
        (ModelAnswered(5, (), "max_tokens", Usage()), "max_tokens"),
        (ModelAnswered(5, (), "refusal", Usage()), "refusal"),
        (ModelAnswered(0, (), "refusal", Usage()), "refusal"),
    ],
)
def test_a_completed_run_says_what_was_unusual(outcome: ModelAnswered, reason: str) -> None:
    assert next_action(apply(begun(), outcome)) == Finish("completed", reason)


def test_waits_double_and_a_provider_may_ask_for_longer_ones() -> None:
    state = begun()
    state = apply(state, ModelFailed("busy", True))
    assert next_action(state) == CallModel("r-1", 2, 0.5)
    assert next_action(apply(state, ModelFailed("busy", True))) == CallModel("r-1", 3, 1.0)
    assert next_action(apply(state, ModelFailed("busy", True, retry_after=4.0))) == CallModel(
        "r-1", 3, 4.0
    )


def test_a_wait_that_is_too_long_fails_the_run_at_once() -> None:
    state = apply(begun(), ModelFailed("busy", True, retry_after=60.0))
    assert next_action(state) == Finish("failed", "busy")


def test_attempts_run_out() -> None:
    state = begun()
    for _ in range(LIMITS.attempts):
        state = apply(state, ModelFailed("busy", True))
    assert next_action(state) == Finish("failed", "busy")


def test_a_failure_that_will_not_pass_is_not_repeated() -> None:
    assert next_action(apply(begun(), ModelFailed("key", False))) == Finish("failed", "key")


def test_an_answer_starts_its_attempts_anew() -> None:
    state = apply(begun(), ModelFailed("busy", True))
    state = apply(state, answered(ProposedCall("a", "t")))
    state = apply(apply(state, CallsStarted(("a",))), CallSettled("a", 1))
    assert next_action(state) == CallModel("r-3", 1, 0.0)


def test_calls_that_may_run_start_while_others_are_asked_about() -> None:
    state = apply(begun(), answered(ProposedCall("a", "t"), ProposedCall("b", "t", key="k")))
    assert next_action(state) == RunTools(("a",), ())
    state = apply(apply(state, CallsStarted(("a",))), CallSettled("a", 1))
    assert next_action(state) == AwaitApproval(("k",))
    state = apply(state, Decided("k", "allow"))
    assert next_action(state) == RunTools(("b",), ())


def test_a_denied_call_is_refused_when_it_starts() -> None:
    state = apply(begun(), answered(ProposedCall("a", "t", key="k")))
    state = apply(state, Decided("k", "deny"))
    call = state.call("a")
    assert call is not None
    assert (call.status, call.verdict) == ("ready", "refuse")


def test_an_answer_to_a_question_counts_once() -> None:
    state = apply(begun(), answered(ProposedCall("a", "t", key="k")))
    state = apply(state, Decided("k", "allow"))
    with pytest.raises(OutcomeRefused):
        apply(state, Decided("k", "deny"))


def test_no_more_tools_run_side_by_side_than_allowed() -> None:
    state = apply(begun(), answered(*(ProposedCall(name, "t") for name in "abc")))
    assert next_action(state) == RunTools(("a", "b"), ())
    state = apply(state, CallsStarted(("a", "b")))
    assert next_action(state) == RunTools((), ("a", "b"))
    state = apply(state, CallSettled("b", 1))
    assert next_action(state) == RunTools(("c",), ("a",))


def test_the_limit_of_model_calls_ends_a_run_after_its_tools() -> None:
    state = begun(replace(LIMITS, max_iterations=1))
    state = apply(state, answered(ProposedCall("a", "t")))
    state = apply(apply(state, CallsStarted(("a",))), CallSettled("a", 1))
    assert next_action(state) == Finish("limit", "max_iterations")


def test_the_cost_limit_ends_a_run_after_its_tools() -> None:
    state = apply(begun(), answered(ProposedCall("a", "t"), cost=1.2))
    state = apply(apply(state, CallsStarted(("a",))), CallSettled("a", 1))
    assert next_action(state) == Finish("limit", "max_cost_dollars")


def test_stopping_among_tools_settles_each_open_call_first() -> None:
    state = apply(begun(), answered(*(ProposedCall(name, "t") for name in "abc")))
    state = apply(state, CallsStarted(("a", "b")))
    state = apply(apply(state, CallSettled("a", 1)), CancelRequested())
    assert next_action(state) == CancelTools(("b", "c"))
    state = apply(apply(state, CallSettled("c", 1)), CallSettled("b", 1))
    assert next_action(state) == Finish("cancelled", "stopped")


def test_a_partial_answer_is_kept_when_the_run_is_stopped() -> None:
    state = apply(begun(), CancelRequested(kept=12))
    assert (state.message_count, state.last_role) == (2, "assistant")


@pytest.mark.parametrize(
    "outcome",
    [
        CallsStarted(("a",)),
        CallSettled("a", 1),
        Decided("k", "allow"),
        answered(ProposedCall("a", "t"), ProposedCall("a", "t")),
        answered(ProposedCall("a", "t"), size=0),
    ],
)
def test_what_cannot_have_happened_is_refused(outcome: Outcome) -> None:
    with pytest.raises(OutcomeRefused):
        apply(begun(), outcome)
