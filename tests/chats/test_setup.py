"""Instructions and limits of one chat, over those of the server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from web.chats.setup import (
    BOUNDS,
    STANDARD,
    Setup,
    checked_setup,
    configured,
    setup_of,
    standard_limits,
    typed_setup,
)
from web.harness.values.config import AgentConfig, Limits, ModelName, Retry
from web.harness.values.errors import HarnessError
from web.harness.values.usage import Prices

MODEL = ModelName("openai", "one")
SERVER = AgentConfig(
    system_prompt="The server's.",
    limits=Limits(max_iterations=20, prices=Prices(9.0, 9.0)),
    retry=Retry(attempts=2),
)


def test_a_chat_with_nothing_of_its_own_goes_by_the_server() -> None:
    config = configured(SERVER, MODEL, "", STANDARD, {})
    assert config == replace(SERVER, model=MODEL)


def test_what_a_chat_has_of_its_own_holds_and_the_rest_stays() -> None:
    setup = Setup(max_iterations=3, max_cost_dollars=0.5, max_tokens=10, max_context_tokens=5_000)
    prices = {MODEL: Prices(1.0, 2.0)}
    config = configured(SERVER, MODEL, "Own.", setup, prices)
    assert (config.system_prompt, config.max_tokens) == ("Own.", 10)
    limits = config.limits
    assert (limits.max_iterations, limits.max_cost_dollars) == (3, 0.5)
    assert (limits.max_context_tokens, limits.prices) == (5_000, Prices(1.0, 2.0))
    assert config.retry == SERVER.retry
    assert setup_of(config, SERVER) == (setup, "")
    assert setup_of(SERVER, SERVER) == (STANDARD, "")


def test_limits_that_a_file_asks_for_stay_within_the_bounds_and_that_is_told() -> None:
    asked = replace(SERVER, max_tokens=10**9, limits=Limits(max_iterations=5_000))
    setup, beyond = setup_of(asked, SERVER)
    assert "Model calls 1,000 (5,000 was asked for)" in beyond
    assert setup.max_tokens == BOUNDS["max_tokens"][1]
    assert setup.max_iterations == BOUNDS["max_iterations"][1]


def test_an_empty_field_puts_a_limit_back_and_a_missing_one_leaves_it() -> None:
    setup = Setup(max_iterations=3, max_tokens=10)
    assert typed_setup({"max_iterations": " "}, setup) == Setup(max_tokens=10)
    assert typed_setup({}, setup) == setup
    typed = {"max_tokens": "8\N{NARROW NO-BREAK SPACE}192", "max_cost_dollars": "$ 0.50"}
    assert typed_setup(typed, setup) == Setup(3, 0.5, 8192)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max_iterations", "0"),
        ("max_iterations", "1e3"),
        ("max_iterations", "1001"),
        ("max_iterations", "1_0"),
        ("max_iterations", "1,00"),
        ("max_iterations", "\uff11\uff10"),
        ("max_cost_dollars", "1e3"),
        ("max_cost_dollars", "1,500"),
        ("max_cost_dollars", "-1"),
        ("max_cost_dollars", "inf"),
        ("max_cost_dollars", "nan"),
        ("max_tokens", "a lot"),
        ("max_context_tokens", "999"),
        ("max_context_tokens", "1" * 5_000),
    ],
)
def test_what_is_no_limit_is_refused(name: str, text: str) -> None:
    with pytest.raises(HarnessError) as refused:
        typed_setup({name: text}, STANDARD)
    assert refused.value.code == "invalid_arguments"
    assert "Nothing was changed" in refused.value.hint
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("max_context_tokens", "10000000000", "10,000,000,000 is not between 1,000 and"),
        ("max_context_tokens", "1", "1 is not between 1,000 and 100,000,000."),
        ("max_cost_dollars", "0.00001", "0.00001 is not between 0.0001 and 10,000."),
        ("max_cost_dollars", "-1", "-1 is not between"),
        ("max_iterations", "9" * 20, "a number of more than 15 digits is not between 1 and 1,000."),
    ],
)
def test_bounds_are_told_as_a_person_writes_numbers(name: str, text: str, said: str) -> None:
    with pytest.raises(HarnessError) as refused:
        typed_setup({name: text}, STANDARD)
    assert said in refused.value.message


def test_thousands_may_be_set_apart() -> None:
    typed = {"max_iterations": "1,000", "max_tokens": "1 000 000"}
    setup = typed_setup(typed, STANDARD)
    assert (setup.max_iterations, setup.max_tokens) == (1_000, 1_000_000)


def test_a_program_sets_limits_and_puts_them_back() -> None:
    setup = checked_setup({"max_iterations": 5}, STANDARD)
    assert setup == Setup(max_iterations=5)
    assert checked_setup({"max_iterations": None}, setup) == STANDARD
    with pytest.raises(HarnessError, match="not between"):
        checked_setup({"max_iterations": 5_000}, STANDARD)


def test_the_page_is_told_what_is_usual() -> None:
    assert standard_limits(SERVER) == {
        "max_iterations": 20,
        "max_cost_dollars": None,
        "max_tokens": SERVER.max_tokens,
        "max_context_tokens": None,
    }
