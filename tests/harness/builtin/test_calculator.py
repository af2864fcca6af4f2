"""Arithmetic that is right, bounded, and never a program."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import example, given, settings, strategies as st

from web.harness.builtin.calculator import calculator_tool, evaluate
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolContext
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("max(0) + min(3)", "3"),
        ("(1 + 2) * 3", "9"),
        ("0.1 + 0.2", "0.3"),
        ("1/3*3", "1"),
        ("2/3", "0.666666666666667"),
        ("10/4", "2.5"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("2 ** -2", "0.25"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("2^10", "1024"),
        ("3 × 4 ÷ 2 − 1", "5"),  # noqa: RUF001
        ("+5", "5"),
        ("1e3 + .5 + 1.", "1001.5"),
        ("1_000 * 0x10", "16000"),
        ("123456789012345678901234567890 + 1", "123456789012345678901234567891"),
        ("2 ** 200", str(2**200)),
        ("factorial(30)", "265252859812191058636308480000000"),
        ("sqrt(16)", "4"),
        ("sqrt(2)", "1.4142135623731"),
        ("sqrt(2) ** 2", "2"),
        ("sqrt(10 ** 100)", str(10**50)),
        ("4 ** 0.5", "2"),
        ("cbrt(-8)", "-2"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.675, 2)", "2.68"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5)", "-2"),
        ("ceil(1.2)", "2"),
        ("min(3, 1.5, 2)", "1.5"),
        ("max(3, pi)", "3.14159265358979"),
        ("sum(1, 2, 0.5)", "3.5"),
        ("abs(-3)", "3"),
        ("gcd(12, 18) + lcm(4, 6)", "18"),
        ("log(100, 10)", "2"),
        ("ln(e)", "1"),
        ("log10(10 ** 1000)", "1000"),
        ("sin(pi)", "0"),
        ("cos(pi / 2)", "0"),
        ("sin(1e-20)", "1e-20"),
        ("tau / pi", "2"),
        ("1 / 10 ** 30", "1e-30"),
        ("1 ** 99999999999", "1"),
        ("(-1) ** 99999999999", "-1"),
        ("0 ** 0", "1"),
        ("1 +\n 2", "3"),
        ("+".join(["1"] * 400), "400"),
    ],
)
def test_the_value_is_what_a_person_expects(expression: str, value: str) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "empty"),
        ("1" * 1001, "1,000 characters"),
        ("9**9**9", "limit"),
        ("9**9**9**9", "limit"),
        ("-(9**999999999)", "limit"),
        ("0.5**-99999999", "limit"),
        ("2.5**1e300", "limit"),
        ("2.5**1e300.5", "not a complete"),
        ("pi**1e300", "too large"),
        ("1e999999999999", "exponent"),
        ("factorial(1000000000)", "at most 1,000"),
        ("factorial(2.5)", "not a whole number"),
        ("factorial(-1)", "not defined for -1"),
        ("round(1, 10**9)", "at most 100 places"),
        ("exp(10**9)", "too large"),
        ("1/0", "Division by zero"),
        ("1 % 0", "Division by zero"),
        ("0 ** -1", "Division by zero"),
        ("sqrt(-1)", "not defined for -1"),
        ("log(0)", "not defined for 0"),
        ("asin(2)", "not defined for 2"),
        ("(-8) ** (1/3)", "cbrt"),
        ("sqroot(2)", "Did you mean 'sqrt'?"),
        ("Pi", "Did you mean 'pi'?"),
        ("min()", "1 or more"),
        ("sqrt(1, 2)", "takes 1 number, not 2"),
        ("1,000 + 1", "write 1000 for 1,000"),
        ("20% of 50", "20/100*50"),
        ("2(3)", "2*(3)"),
        ("1 +", "not a complete expression"),
        ("(" * 300 + "1" + ")" * 300, "not a complete expression"),
        ("-" * 300 + "1", "nested deeper"),
        ("1j", "not a number"),
        ("True", "not a number"),
        ("().real", "not arithmetic"),
        ("pi.real", "not arithmetic"),
        ("round(x=1)", "not understood"),
        ("min(*(1, 2))", "not arithmetic"),
        ("1 if 1 else 2", "not arithmetic"),
        ("1 and 2", "not arithmetic"),
        ("1 @ 2", "not understood"),
        ("1 << 99", "not understood"),
        ("__import__('os')", "not understood"),
        ("open(1)", "not a known function"),
        ("eval", "not a known constant"),
        ("\0", "not understood"),
        ("１ + １", "not understood"),  # noqa: RUF001
    ],
)
def test_what_is_not_arithmetic_or_too_large_is_refused_with_words(
    expression: str, words: str
) -> None:
    began = time.process_time()
    with pytest.raises(ToolError) as caught:
        evaluate(expression)
    assert words in caught.value.message
    assert time.process_time() - began < 0.5


TOKENS = [*"0123456789+-*/%(),. ", "**", "//", "999", "e", "pi", "1e9", "2**", "factorial("]
TOKENS += [f"{name}(" for name in ("sqrt", "round", "log", "lcm", "max", "sum", "exp", "tan")]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=60).map("".join) | st.text(max_size=60))
@example("*".join(["(2**12000)"] * 90))
@example("+".join(["9/(2**12999+1)", *(f"1/(3**8{n:02}+1)" for n in range(50))]))
@example("lcm(" + ",".join(f"2**{9000 + n}-1" for n in range(80)) + ")")
@example("**".join(["1.000001"] * 90))
def test_any_text_gives_a_value_or_words_in_bounded_time(expression: str) -> None:
    began = time.process_time()
    try:
        text = evaluate(expression)
    except ToolError as error:
        text = error.message
    assert 0 < len(text) < 6000
    assert time.process_time() - began < 2


numbers = st.integers(-(10**12), 10**12)


@given(numbers, numbers, numbers.filter(bool))
def test_whole_numbers_and_fractions_are_exact(a: int, b: int, c: int) -> None:
    assert evaluate(f"({a}) * ({b}) - ({c})") == str(a * b - c)
    assert evaluate(f"(({a}) / ({c}) + ({b}) / ({c})) * ({c})") == str(a + b)
    assert Fraction(evaluate(f"({a}) / 1000 + 0.001")) == Fraction(a + 1, 1000)


async def test_the_tool_runs_by_itself_and_may_be_repeated() -> None:
    tool = calculator_tool()
    assert (tool.name, tool.permission, tool.replay) == ("calculate", PermissionLevel.ALLOW, "safe")
    registry = ToolRegistry([tool])
    context = ToolContext("call-1")
    assert (await registry.run("calculate", {"expression": "6*7"}, context, 10)).text == "42"
    assert (await registry.run("calculate", {"expression": 42}, context, 10)).text == "42"
    assert (await registry.run("calculate", {"expression": "1/0"}, context, 10)).is_error
