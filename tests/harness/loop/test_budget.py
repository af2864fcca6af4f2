"""A context is divided so that there is room for messages and an answer, whatever its size."""

from __future__ import annotations

from hypothesis import given, strategies as st

from web.harness.loop.budget import ContextBudget


@given(st.integers(256, 2_000_000), st.integers(0, 100_000), st.integers(1, 200_000))
def test_the_parts_never_exceed_the_context(limit: int, fixed: int, max_tokens: int) -> None:
    budget = ContextBudget.of(limit, fixed, max_tokens)
    assert budget.room <= limit
    if budget.for_messages:
        assert fixed <= budget.goal <= budget.near <= budget.room
        answer = budget.answer_tokens(budget.room, max_tokens)
        assert 1 <= answer <= max_tokens
        assert budget.room + answer <= limit


def test_a_small_model_keeps_a_part_for_its_answer_though_it_may_be_longer() -> None:
    budget = ContextBudget.of(8_192, 1_000, 8_192)
    assert 5_000 < budget.room < 6_200
    assert budget.answer_tokens(2_000, 8_192) > 5_500


def test_a_large_model_keeps_as_much_as_an_answer_may_have() -> None:
    budget = ContextBudget.of(200_000, 5_000, 8_192)
    assert budget.room == 200_000 - 8_192 - 4_000
    assert budget.answer_tokens(1_000, 8_192) == 8_192


def test_system_prompt_and_tools_that_are_too_long_leave_nothing() -> None:
    assert ContextBudget.of(4_096, 5_000, 1_000).for_messages == 0
