"""JSON that comes back as it went: what cannot be written is refused, what is read is checked.

Nothing is turned to text on the way out, and nothing is guessed on the way in.
"""

from __future__ import annotations

import json
import marshal
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from web.harness.values.errors import HarnessError
from web.harness.values.messages import JsonObject
from web.harness.values.text import sayable_json

MAX_JSON_DEPTH = 100
"""Nesting beyond which JSON is neither written nor read."""

MAX_INTEGER_BITS = 4_096
"""Python reads and writes decimal numbers up to 4,300 digits only."""

_FLOAT_BITS = 1_000
"""Whole numbers of more are too large for a float."""

MAX_DIGITS = 4_300
"""Of a whole number that is read; Python refuses more in words of its own."""

MAX_BRACKETS = 2_000_000
MAX_COMMAS = 8_000_000
"""Of one text that is read: parsed, each costs a hundred times its length, or ten."""

MAX_TEXTS = 2_000_000
"""In lists: a million of them is parsed in one go, in which no other thread has its turn."""

_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")

T = TypeVar("T")


class NotSerialisable(HarnessError):
    """A value that JSON cannot hold as it is; the message says where it stands and what it is."""

    code = "not_serialisable"
    hint = (
        "JSON holds texts, finite numbers, true, false, None, and lists and dicts (with texts as "
        "keys) of these. Nothing was written."
    )


class JsonRefused(HarnessError):
    """JSON that is not what it has to be; the message says where and why."""

    code = "json_refused"


def json_copy(value: Any, where: str, depth: int = MAX_JSON_DEPTH) -> Any:
    """The same JSON value, sharing nothing that can be changed. Raises NotSerialisable.

    `where` names the value in the message. A tuple is refused too: a list would come back.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise NotSerialisable(f"{where} is a number too large for JSON.")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotSerialisable(f"{where} is {value}, which is no number in JSON.")
        return value
    if depth <= 0:
        raise NotSerialisable(f"{where} is nested more than {MAX_JSON_DEPTH} deep.")
    if isinstance(value, list):
        return [json_copy(each, f"{where}[{at}]", depth - 1) for at, each in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise NotSerialisable(f"{where} has the key {key!r}, which is no text.")
        return {key: json_copy(each, f"{where}.{key}", depth - 1) for key, each in value.items()}
    raise NotSerialisable(f"{where} is {_article(type(value).__name__)}, which JSON cannot hold.")


def own_copy(value: Any, where: str) -> Any:
    """The same, many times quicker, where it is checked again when it is written: what JSON cannot
    hold may pass. For large values on the event loop. Raises NotSerialisable."""
    try:
        return marshal.loads(marshal.dumps(value))  # noqa: S302 (its own bytes of just now)
    except (ValueError, TypeError, EOFError):
        return json_copy(value, where)


def fits(value: Any, most: int) -> bool:
    """Whether a JSON value is written in about so many characters. It is told without writing it,
    and soon of one that is far too large."""
    left, inner = most, [value]
    while inner:
        each = inner.pop()
        if isinstance(each, str):
            left -= len(each) + 3
        elif isinstance(each, dict | list):
            left -= 2 * len(each) + 2
            if left < 0:
                return False
            if isinstance(each, dict):
                left -= sum(len(key) + 2 for key in each if isinstance(key, str))
                inner.extend(each.values())
            else:
                inner.extend(each)
        elif isinstance(each, int):
            left -= each.bit_length() // 3 + 2
        else:
            left -= 5
        if left < 0:
            return False
    return True


def json_text(value: Any) -> str:
    """Compact JSON of what `json_copy` gave; it can always be encoded."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def canonical(value: Any) -> bytes:
    """The one JSON text of a value, whatever order its keys came in: what a digest is made of."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def exact(value: Any, where: str) -> Any:
    """The same JSON value. Raises NotSerialisable where a text in it holds half of a character,
    which could only be written as another one."""
    try:
        json_text(value).encode()
    except UnicodeEncodeError:
        raise NotSerialisable(f"{where} holds half a character, which cannot be written.") from None
    return value


def writable(value: Any) -> Any:
    """The same JSON value with texts that can be encoded: half of a character is none."""
    try:
        json_text(value).encode()
    except UnicodeEncodeError:
        return sayable_json(value, 2 * MAX_JSON_DEPTH)
    return value


def parse_json(raw: bytes) -> Any:
    """The value of one JSON text. Raises JsonRefused: no UTF-8, cut off, NaN, a key twice,
    nested too deep, or of more values than are read."""
    if (
        raw.count(b"[") + raw.count(b"{") > MAX_BRACKETS
        or raw.count(b",") > MAX_COMMAS
        # Two quotes stand so only between two texts: within one they are escaped.
        or raw.count(b'","') > MAX_TEXTS
    ):
        raise JsonRefused("It holds more values than are read.")
    try:
        value = json.loads(
            raw.decode("utf-8-sig"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
        # Half of a character would break whatever shows the text later.
        return sayable_json(value, MAX_JSON_DEPTH) if _HALF_CHARACTER.search(raw) else value
    except UnicodeDecodeError:
        raise JsonRefused("It is not text in UTF-8.") from None
    except json.JSONDecodeError as error:
        cut = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
        what = "It ends too early" if cut else f"It is not JSON ({error.msg})"
        raise JsonRefused(f"{what}: line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise JsonRefused(f"It is nested more than {MAX_JSON_DEPTH} deep.") from None
    except ValueError as error:
        raise JsonRefused(f"It is not JSON ({error}).") from None


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return made


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def _whole(digits: str) -> int:
    # In Python and not in C, so that other threads have their turns in a long list of numbers.
    if len(digits) > MAX_DIGITS:
        raise JsonRefused(f"A number in it has {len(digits):,} digits, which is too many.")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large")
    return number


class Fields:
    """The fields of one JSON object, taken one by one with their types checked.

    `where` names the object in messages ('' for the outermost). `done` refuses what was not taken.
    Every method raises JsonRefused.
    """

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise JsonRefused(f"{where or 'It'} is {kind_of(value)} and has to be an object.")
        self.where = where
        self._left: dict[str, Any] = dict(value)

    def name(self, field: str) -> str:
        return f"{self.where}.{field}" if self.where else field

    def has(self, field: str) -> bool:
        return field in self._left

    def take(self, field: str) -> Any:
        if field not in self._left:
            raise JsonRefused(f"{self.name(field)} is missing.")
        return self._left.pop(field)

    def text(self, field: str, default: str | None = None) -> str:
        return self._of(field, str, "a text", default)

    def text_or_none(self, field: str) -> str | None:
        value = self._left.pop(field, None)
        return None if value is None else self._typed(field, value, str, "a text")

    def flag(self, field: str, default: bool | None = None) -> bool:
        return self._of(field, bool, "true or false", default)

    def whole(self, field: str, default: int | None = None) -> int:
        """A whole number that is not negative."""
        if field not in self._left and default is not None:
            return default
        value = self.take(field)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise JsonRefused(
                f"{self.name(field)} is {kind_of(value)} and has to be a whole number, 0 or more."
            )
        return value

    def number_or_none(self, field: str) -> float | None:
        """A number that is not negative."""
        value = self._left.pop(field, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise JsonRefused(
                f"{self.name(field)} is {kind_of(value)} and has to be a number, 0 or more."
            )
        if isinstance(value, int) and value.bit_length() > _FLOAT_BITS:
            raise JsonRefused(f"{self.name(field)} is a number too large.")
        return float(value)

    def items(self, field: str, default: list[Any] | None = None) -> list[Any]:
        return self._of(field, list, "a list", default)

    def mapping(self, field: str, default: JsonObject | None = None) -> JsonObject:
        return self._of(field, dict, "an object", default)

    def rest(self) -> JsonObject:
        """What was not taken yet, taken now."""
        rest, self._left = self._left, {}
        return rest

    def done(self) -> None:
        if self._left:
            names = ", ".join(self.name(field) for field in sorted(self._left)[:5])
            raise JsonRefused(f"It has fields that are not known: {names}.")

    def _of(self, field: str, kind: type[T], called: str, default: T | None) -> T:
        if field not in self._left and default is not None:
            return default
        return self._typed(field, self.take(field), kind, called)

    def _typed(self, field: str, value: Any, kind: type[T], called: str) -> T:
        if not isinstance(value, kind):
            raise JsonRefused(f"{self.name(field)} is {kind_of(value)} and has to be {called}.")
        return value


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def kind_of(value: Any) -> str:
    """What a JSON value is, in words that show nothing of a long one."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}" if len(str(value)) < 20 else "a number"
        case str():
            return f"the text {value!r}" if len(value) <= 40 else "a long text"
        case list():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return _article(type(value).__name__)
