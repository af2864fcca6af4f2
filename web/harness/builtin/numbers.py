"""Numbers that stay exact as long as they can, with bounds on their size."""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from web.harness.values.errors import ToolError

Number = Fraction | float
"""A Fraction is exact; a float is what a root or a sine gives."""

MAX_BITS = 13_000
"""Of a numerator or denominator: about 3,900 digits, below what Python turns into text."""
MAX_FACTORIAL = 1000
MAX_PLACES = 100
EXACT_DIGITS = 30
"""A finite decimal of so many digits is written in full."""
ROUNDED_DIGITS = 15

_TINY = 1e-15


class Function(NamedTuple):
    """One function and how many numbers it takes."""

    of: Callable[..., Number]
    fewest: int = 1
    most: int = 1


def bounded(number: Number) -> Number:
    """The number itself; raises ToolError when it is too large or too fine to go on with."""
    if isinstance(number, float):
        if not math.isfinite(number):
            raise ToolError("The result is too large.")
        return number
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise ToolError("A number here has more than 3,900 digits, which is the limit.")
    return number


def power(base: Number, exponent: Number) -> Number:
    """`base ** exponent`, refused before the work where the result would be too large."""
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            return _whole_power(base, exponent.numerator)
        if exponent == Fraction(1, 2) and base >= 0:
            return square_root(base)
    result: object = float(base) ** float(exponent)
    if not isinstance(result, float):
        raise ToolError(
            "A negative number to a fractional power is not a real number; for cube roots use cbrt."
        )
    return result


def _whole_power(base: Fraction, exponent: int) -> Fraction:
    if base in (0, 1, -1):
        # These never grow; only whether the exponent is odd, and its sign, matter.
        sign = -1 if exponent < 0 else 1
        return base ** (sign * (2 - exponent % 2)) if exponent else Fraction(1)
    # One bit less than the length, so that 2 ** 13000 is judged by what it really needs.
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    if bits * abs(exponent) > MAX_BITS:
        raise ToolError("The power has more than 3,900 digits, which is the limit.")
    return Fraction(base**exponent)


def square_root(number: Number) -> Number:
    """Exact for squares of fractions."""
    if isinstance(number, Fraction) and number >= 0:
        top, bottom = math.isqrt(number.numerator), math.isqrt(number.denominator)
        root = Fraction(top, bottom)
        if root * root == number:
            return root
    return math.sqrt(number)


def rounded(number: Number, places: Number = Fraction(0)) -> Number:
    """To so many decimal places, halves away from zero, as people round."""
    digits = _whole(places)
    if abs(digits) > MAX_PLACES:
        raise ToolError(f"round takes at most {MAX_PLACES} places.")
    # The shortest decimal of a float is what a person saw of it.
    exact = number if isinstance(number, Fraction) else Fraction(repr(number))
    scale = Fraction(10) ** digits
    size = math.floor(abs(exact) * scale + Fraction(1, 2)) / scale
    return size if exact >= 0 else -size


def _whole(number: Number) -> int:
    if number != int(number):
        raise ToolError(f"{number_text(number)} is not a whole number.")
    return int(number)


def _factorial(number: Number) -> Number:
    whole = _whole(number)
    if whole > MAX_FACTORIAL:
        raise ToolError(f"factorial takes at most {MAX_FACTORIAL:,}.")
    return Fraction(math.factorial(whole))


def _logarithm(number: Number, base: Number | None = None) -> Number:
    if base is not None:
        return _logarithm(number) / _logarithm(base)
    if isinstance(number, Fraction) and number > 0:
        # Both parts may be larger than a float can be.
        return math.log(number.numerator) - math.log(number.denominator)
    return math.log(number)


def _log10(number: Number) -> Number:
    if isinstance(number, Fraction) and number > 0:
        return math.log10(number.numerator) - math.log10(number.denominator)
    return math.log10(number)


def _log2(number: Number) -> Number:
    if isinstance(number, Fraction) and number > 0:
        return math.log2(number.numerator) - math.log2(number.denominator)
    return math.log2(number)


def _circular(function: Callable[[float], float]) -> Callable[[Number], Number]:
    """The function, with 0 for what is only the rounding of pi: `sin(pi)` is 0."""

    def of(angle: Number) -> Number:
        result = function(float(angle))
        return 0.0 if abs(result) < _TINY < abs(float(angle)) else result

    return of


def _sum(*numbers: Number) -> Number:
    return functools.reduce(lambda total, number: bounded(total + number), numbers)


def _lcm(*numbers: Number) -> Number:
    return functools.reduce(
        lambda total, number: bounded(Fraction(math.lcm(_whole(total), _whole(number)))), numbers
    )


def _cube_root(number: Number) -> Number:
    return math.cbrt(float(number))


CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}

FUNCTIONS: dict[str, Function] = {
    "sqrt": Function(square_root),
    "cbrt": Function(_cube_root),
    "abs": Function(abs),
    "round": Function(rounded, 1, 2),
    "floor": Function(lambda number: Fraction(math.floor(number))),
    "ceil": Function(lambda number: Fraction(math.ceil(number))),
    "trunc": Function(lambda number: Fraction(math.trunc(number))),
    "min": Function(lambda *numbers: min(numbers), 1, 500),
    "max": Function(lambda *numbers: max(numbers), 1, 500),
    "sum": Function(_sum, 1, 500),
    "factorial": Function(_factorial),
    "gcd": Function(lambda *numbers: Fraction(math.gcd(*map(_whole, numbers))), 1, 500),
    "lcm": Function(_lcm, 1, 500),
    "exp": Function(math.exp),
    "log": Function(_logarithm, 1, 2),
    "ln": Function(_logarithm),
    "log10": Function(_log10),
    "log2": Function(_log2),
    "sin": Function(_circular(math.sin)),
    "cos": Function(_circular(math.cos)),
    "tan": Function(_circular(math.tan)),
    "asin": Function(math.asin),
    "acos": Function(math.acos),
    "atan": Function(math.atan),
    "atan2": Function(math.atan2, 2, 2),
    "sinh": Function(math.sinh),
    "cosh": Function(math.cosh),
    "tanh": Function(math.tanh),
    "hypot": Function(math.hypot, 1, 500),
    "degrees": Function(math.degrees),
    "radians": Function(math.radians),
}


def number_text(number: Number) -> str:
    """Whole numbers in full, finite decimals up to 30 digits in full, others to 15 digits."""
    if isinstance(number, Fraction):
        if number.denominator == 1:
            return str(number.numerator)
        exact = _divided(number, EXACT_DIGITS)
        if Fraction(exact) == number:
            return _plain(exact)
        return _plain(_divided(number, ROUNDED_DIGITS))
    return _plain(decimal.Context(prec=ROUNDED_DIGITS).create_decimal_from_float(number))


def _divided(number: Fraction, digits: int) -> decimal.Decimal:
    context = decimal.Context(prec=digits)
    return context.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))


def _plain(number: decimal.Decimal) -> str:
    """Without trailing zeros; with an exponent only where the zeros would be many."""
    if number == 0:
        return "0"
    number = number.normalize(decimal.Context(prec=EXACT_DIGITS))
    if -8 <= number.adjusted() <= 21:
        return f"{number:f}"
    return f"{number:e}"
