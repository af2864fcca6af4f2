"""Thousands of turns in one process: a late one costs no more, and only the conversation grows."""

from __future__ import annotations

import pytest

from tests.bench.turns import late_against_early, left_after

pytestmark = pytest.mark.anyio

MORE_COST = 1.5
"""How much dearer a late turn may be than an early one, on a machine that does other things too: a
cost that grew with the turns would be several times as large."""

LEFT_BYTES = 100_000
"""What may be left of thousands of turns once the conversation is emptied: caches, at most."""


async def at_best(turns: int) -> float:
    """The best of three: another program on this machine may cost either side something."""
    ratio = await late_against_early(turns)
    for _ in range(2):
        if ratio > MORE_COST:
            ratio = min(ratio, await late_against_early(turns))
    return ratio


async def test_a_late_turn_costs_about_what_an_early_one_does() -> None:
    assert await at_best(1_500) <= MORE_COST


@pytest.mark.full
async def test_only_the_conversation_grows() -> None:
    assert await left_after(500) < LEFT_BYTES


@pytest.mark.full
async def test_the_last_of_ten_thousand_turns_costs_about_what_an_early_one_does() -> None:
    assert await at_best(10_000) <= MORE_COST


@pytest.mark.full
async def test_only_the_conversation_grows_over_ten_thousand_turns() -> None:
    assert await left_after(10_000) < LEFT_BYTES
