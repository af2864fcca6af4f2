from __future__ import annotations

import secrets

import pytest

from web.harness.loop.state import CallState, RunLimits, RunState
from web.harness.runtime.temporal.payloads import MAX_BYTES, packed, unpacked
from web.harness.values.config import AgentConfig
from web.harness.values.errors import LimitExceeded


def test_what_is_packed_comes_out_the_same() -> None:
    for value in ({"a": [1, None, "ä"]}, ["long " * 10_000, {}]):
        assert unpacked(packed(value)) == value


def test_the_state_of_a_run_with_a_thousand_calls_fits_a_payload() -> None:
    calls = tuple(
        CallState(f"call_{secrets.token_hex(12)}", "look", "settled", digest=secrets.token_hex(8))
        for _ in range(1_000)
    )
    state = RunState("run", RunLimits.of(AgentConfig()), calls=calls)
    assert len(packed(state.as_json())) < MAX_BYTES


def test_what_is_too_large_for_a_workflow_does_not_get_into_one() -> None:
    with pytest.raises(LimitExceeded, match="90,000"):
        packed(secrets.token_hex(MAX_BYTES))
