"""`calculate`: arithmetic, exact where it can be, and never a program."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from web.harness.builtin.numbers import (
    CONSTANTS,
    FUNCTIONS,
    Function,
    Number,
    bounded,
    number_text,
    power,
)
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel, Tool
from web.harness.tools.words import did_you_mean, shown
from web.harness.values.errors import ToolError

MAX_CHARS = 1000
MAX_DEPTH = 100
MAX_EXPONENT = 1000

_LEGAL = re.compile(r"[\w\s.+\-*/%(),]*", re.ASCII)
_SPELLINGS = str.maketrans(
    {
        "^": "**",
        "\N{MULTIPLICATION SIGN}": "*",
        "\N{MIDDLE DOT}": "*",
        "\N{DIVISION SIGN}": "/",
        "\N{MINUS SIGN}": "-",
        "\N{GREEK SMALL LETTER PI}": " pi ",
    }
)

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
}


def evaluate(expression: str) -> str:
    """The value of an arithmetic expression as text; raises ToolError in words.

    Whole numbers and fractions are exact, so `0.1 + 0.2` is 0.3. What has no finite decimal form
    is rounded to 15 digits. Sizes are bounded so that no expression takes long.
    """
    text = expression.strip().translate(_SPELLINGS)
    if not text:
        raise ToolError("The expression is empty.")
    if len(text) > MAX_CHARS:
        raise ToolError(f"The expression is longer than {MAX_CHARS:,} characters.")
    stray = _LEGAL.sub("", text, count=1)
    if stray:
        raise ToolError(f"The character {shown(stray[0])} is not understood. {_HELP}")
    try:
        tree = ast.parse(text.replace("\n", " ").replace("\r", " ").strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ToolError(
            f"{shown(expression)} is not a complete expression. {_HELP} Write 2*pi for 2 pi, "
            "and 20/100*50 for 20% of 50."
        ) from None
    try:
        return number_text(_value(tree.body, text, 0))
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None
    except OverflowError:
        raise ToolError("The result is too large.") from None


_HELP = (
    "Understood are numbers, + - * / // % **, parentheses, pi, e, tau, and the functions "
    f"{', '.join(FUNCTIONS)}."
)


def _value(node: ast.expr, text: str, depth: int) -> Number:
    if depth > MAX_DEPTH:
        raise ToolError(f"The expression is nested deeper than {MAX_DEPTH} levels.")
    match node:
        case ast.Constant():
            return _literal(node, text)
        case ast.Name(id=name):
            if name not in CONSTANTS:
                near = did_you_mean(name, [*CONSTANTS, *FUNCTIONS])
                raise ToolError(f"{shown(name)} is not a known constant.{near} {_HELP}")
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text, depth + 1)
        case ast.BinOp():
            return _chain(node, text, depth)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name, [_value(argument, text, depth + 1) for argument in args])
        case ast.Call(func=called) if not isinstance(called, ast.Name):
            raise ToolError("Multiplication needs its sign: write 2*(3) for 2(3).")
        case ast.Tuple():
            raise ToolError("A comma only separates arguments: write 1000 for 1,000.")
        case _:
            raise ToolError(f"The expression holds something that is not arithmetic. {_HELP}")


def _chain(node: ast.expr, text: str, depth: int) -> Number:
    """`a + b - c ...`: a long sum leans to the left and is no deep nesting."""
    steps = []
    while isinstance(node, ast.BinOp):
        operation = _BINARY.get(type(node.op))
        if operation is None:
            raise ToolError(f"The expression holds something that is not arithmetic. {_HELP}")
        steps.append((operation, node.right))
        node = node.left
    value = _value(node, text, depth + 1)
    for operation, right in reversed(steps):
        value = bounded(operation(value, _value(right, text, depth + 1)))
    return value


def _literal(node: ast.Constant, text: str) -> Number:
    """A number as it is written: `0.1` is a tenth, not the nearest binary fraction."""
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError(f"The expression holds something that is not a number. {_HELP}")
    if isinstance(value, int):
        return bounded(Fraction(value))
    written = (ast.get_source_segment(text, node) or "").replace("_", "")
    exponent = written.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise ToolError(f"The exponent of {shown(written)} is too large.")
    return bounded(Fraction(written))


def _call(name: str, arguments: list[Number]) -> Number:
    known = FUNCTIONS.get(name)
    if known is None:
        near = did_you_mean(name, FUNCTIONS)
        raise ToolError(f"{shown(name)} is not a known function.{near} {_HELP}")
    if not known.fewest <= len(arguments) <= known.most:
        raise ToolError(f"{name} takes {_range(known)}, not {len(arguments)}.")
    try:
        return bounded(known.of(*arguments))
    except ValueError:
        given = ", ".join(number_text(argument) for argument in arguments)
        raise ToolError(f"{name} is not defined for {given}.") from None


def _range(function: Function) -> str:
    if function.most > function.fewest:
        return f"{function.fewest} or more numbers"
    return "1 number" if function.fewest == 1 else f"{function.fewest} numbers"


def calculator_tool() -> Tool:
    """The tool `calculate`, which touches nothing and may be repeated."""

    def calculate(expression: str) -> str:
        return evaluate(expression)

    return function_tool(
        calculate,
        description=(
            "Calculates an arithmetic expression, exactly where that is possible. "
            f"{_HELP} % is the remainder; ^ is read as **; angles are in radians; round rounds "
            "halves away from zero."
        ),
        permission=PermissionLevel.ALLOW,
        replay="safe",
        share_signature=True,
    )
