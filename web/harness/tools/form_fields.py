"""One field of a form: what it takes, read from what was typed, and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic_core import SchemaError, SchemaValidator, core_schema

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices", "json"]

_EMAIL = re.compile(r"[^@\s]+@[^@\s.][^@\s]*")
_SLOW_PATTERN = re.compile(r"\d{3,}[,}]|\)\s*\{|\\[pP].*\{")
"""Groups that are counted, high counts, counted classes of all languages: long to compile."""

MAX_TOLD_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class Option:
    """One of the values that may be chosen."""

    value: Any
    title: str


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form.

    `low` and `high` bound a number, the characters of a text, or how many are chosen; `above` and
    `below` bound a number without being allowed themselves. `has_default` tells a default of None
    from none at all.
    """

    name: str
    kind: FieldKind
    title: str
    description: str = ""
    required: bool = False
    default: Any = None
    has_default: bool = False
    format: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    pattern: str = ""
    options: tuple[Option, ...] = ()
    smells_secret: bool = False

    @property
    def typed_default(self) -> list[str]:
        """The default as the field of a page holds it: `read` turns it back."""
        if not self.has_default:
            return []
        match self.kind:
            case "boolean":
                return ["on"] if self.default is True else []
            case "choice" | "choices":
                chosen = self.default if self.kind == "choices" else [self.default]
                chosen = chosen if isinstance(chosen, list) else []
                return [
                    str(number)
                    for number, option in enumerate(self.options)
                    if any(_same(option.value, each) for each in chosen)
                ]
            case "json":
                return [json.dumps(self.default, ensure_ascii=False, indent=2)]
            case "text" if not isinstance(self.default, str):
                return []
            case "text" if self.format == "date-time":
                return [_local_time(self.default)]
        return [str(self.default)]

    @property
    def multiline(self) -> bool:
        """Whether a text may need more than a line."""
        lines = isinstance(self.default, str) and "\n" in self.default
        return self.kind == "text" and not self.format and (lines or (self.high or 0) > 200)

    @property
    def hint(self) -> str:
        """What is expected, in words."""
        words = []
        if self.kind in ("number", "integer"):
            words.append("A whole number." if self.kind == "integer" else "A number.")
            words.append(_bounds_in_words(self))
        elif self.kind == "text":
            if self.format == "date-time":
                words.append("In UTC.")
            if self.format == "uri":
                words.append("A whole address, such as https://example.org.")
            # A limit that nobody types up to is told of when it is passed.
            high = self.high if (self.high or 0) <= MAX_TOLD_CHARS else None
            words.append(_range(self.low, high, "character"))
            if self.pattern:
                words.append(f"It has to match the pattern {self.pattern}")
        elif self.kind == "choices":
            words.append(_range(self.low, self.high, "choice"))
        elif self.kind == "json":
            words.append("As JSON.")
        return " ".join(word for word in words if word)

    def read(self, typed: Sequence[str]) -> tuple[bool, Any]:
        """What was typed as a value, and first whether there is any.

        Raises ValueError in words. Bounds are not looked at; see `fault`.
        """
        text = typed[0].strip() if typed else ""
        match self.kind:
            case "boolean":
                return True, bool(typed)
            case "choice":
                return (True, self._option(text)) if text else (False, None)
            case "choices":
                there = bool(typed) or self.required or self.has_default
                return there, [self._option(each) for each in typed]
            case "text":
                return self._read_text(typed[0] if typed else "")
        if not text:
            return False, None
        if self.kind == "json":
            return True, _read_json(text)
        return True, _read_number(text, whole=self.kind == "integer")

    def fault(self, value: Any) -> str:
        """What is wrong with a value, '' if nothing."""
        match self.kind:
            case "boolean":
                return "" if isinstance(value, bool) else "It has to be true or false."
            case "number" | "integer":
                return self._number_fault(value)
            case "text":
                return self._text_fault(value)
            case "choice":
                return "" if self._offers(value) else "It is none of the choices."
            case "choices":
                if not isinstance(value, list) or not all(map(self._offers, value)):
                    return "It has to be a list of the choices."
                return _outside(len(value), self.low, self.high, "choice")
        return ""

    def _read_text(self, text: str) -> tuple[bool, Any]:
        if self.format:
            text = text.strip()
        if self.format == "date-time" and text:
            return True, _with_zone(text)
        # An emptied field is empty where that is allowed, rather than the default again.
        empty = self.has_default and not self.format and not self.low and not self.required
        return bool(text) or empty, text

    def _option(self, typed: str) -> Any:
        if not typed.isascii() or not typed.isdigit() or int(typed[:6]) >= len(self.options):
            raise ValueError("It is none of the choices.")
        return self.options[int(typed[:6])].value

    def _offers(self, value: Any) -> bool:
        return any(_same(option.value, value) for option in self.options)

    def _number_fault(self, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "It has to be a number."
        if self.kind == "integer" and value != value // 1:
            return "It has to be a whole number."
        for bad in (
            self.low is not None and value < self.low,
            self.high is not None and value > self.high,
            self.above is not None and value <= self.above,
            self.below is not None and value >= self.below,
        ):
            if bad:
                return f"It is out of range. {_bounds_in_words(self)}"
        return ""

    def _text_fault(self, value: Any) -> str:
        if not isinstance(value, str):
            return "It has to be a text."
        fault = _outside(len(value), self.low, self.high, "character")
        if not fault and self.format:
            fault = _format_fault(self.format, value)
        if not fault and self.pattern:
            matcher = _matcher(self.pattern)
            if matcher is not None and not matcher.isinstance_python(value):
                fault = f"It does not match the pattern {self.pattern}"
        return fault


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _read_json(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise ValueError("It is not JSON.") from None


def _read_number(text: str, *, whole: bool) -> float:
    try:
        if re.fullmatch(r"[+-]?[0-9]{1,300}", text):
            return int(text)
        number = float(text) if re.fullmatch(r"[-+.0-9eE]{1,300}", text) else None
    except ValueError:
        number = None
    if number is None or number - number != 0:
        raise ValueError("It has to be a whole number." if whole else "It has to be a number.")
    return int(number) if whole and number.is_integer() else number


def _outside(count: int, low: float | None, high: float | None, unit: str) -> str:
    if (low is not None and count < low) or (high is not None and count > high):
        return f"{_range(low, high, unit)} There {'is' if count == 1 else 'are'} {count}."
    return ""


def _range(low: float | None, high: float | None, unit: str) -> str:
    """`At most 40 characters.`, '' where there are no bounds."""

    def units(count: float) -> str:
        return f"{count:g} {unit}{'' if count == 1 else 's'}"

    if high is None:
        return f"At least {units(low)}." if low is not None and low > 1 else ""
    if low is None or low <= 1:
        return (
            f"At most {units(high)}." if low != 1 or unit == "character" else f"1 to {units(high)}."
        )
    return f"Exactly {units(high)}." if low == high else f"{low:g} to {units(high)}."


def _bounds_in_words(field: Field) -> str:
    """`From 1 to 9.`, '' where there are no bounds."""
    if field.low is not None and field.high is not None:
        return f"From {field.low:.12g} to {field.high:.12g}."
    bounds = (
        ("at least", field.low),
        ("above", field.above),
        ("at most", field.high),
        ("below", field.below),
    )
    words = " and ".join(f"{word} {bound:.12g}" for word, bound in bounds if bound is not None)
    return f"{words[0].upper()}{words[1:]}." if words else ""


def _format_fault(format: str, value: str) -> str:
    match format:
        case "email":
            return "" if _EMAIL.fullmatch(value) else "It has to be an email address."
        case "uri":
            return "" if _is_uri(value) else "It has to be a whole address with its scheme."
        case "date":
            whole = re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII)
            return "" if whole and _moment(value) else "It has to be a date, as 2026-01-31."
    moment = _moment(value) if "T" in value.upper() else None
    fine = moment is not None and moment.tzinfo is not None
    return "" if fine else "It has to be a date and a time with a zone, as 2026-01-31T09:30:00Z."


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", value)


def _moment(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _with_zone(text: str) -> str:
    """What a browser's field for date and time gives, which has no zone, as UTC."""
    moment = _moment(text)
    if moment is None or moment.tzinfo is not None:
        return text
    return moment.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")


def _local_time(text: str) -> str:
    """A date and time as such a field takes it."""
    moment = _moment(text)
    if moment is None:
        return ""
    moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> SchemaValidator | None:
    """None for a pattern that cannot be used; the server that asks checks it then."""
    if _SLOW_PATTERN.search(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None
