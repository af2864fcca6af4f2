"""Values checked against a server's JSON Schema, at a cost that the server does not decide.

A schema comes from a stranger, and so do many values. Nothing is fetched, no pattern runs on an
engine that can go back, and a check that would take long is given up: what is not checked here,
the server checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend, validator_for
from pydantic_core import SchemaError, SchemaValidator, core_schema
from referencing import Registry

from web.harness.tools.words import clean, shorten, shown

MAX_SCHEMA_WEIGHT = 5_000
MAX_VALUE_WEIGHT = 5_000
"""Larger ones are not checked; see `weight`."""

MAX_STEPS = 3_000
"""Of one check, about 15 ms; it is given up after them."""

MAX_FAULTS = 10
MAX_PATTERN_CHARS = 300

_PATTERN_STEPS = 200
_REFERENCE_STEPS = 5
_SLOW_PATTERN = re.compile(r"\d{3,}[,}]|\)\s*\{|\\[pP].*\{")
"""Groups that are counted, high counts, counted classes of all languages: long to compile."""

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CLASSES = {"d": "[0-9]", "D": "[^0-9]", "w": "[0-9A-Za-z_]", "W": "[^0-9A-Za-z_]"}
"""What these mean in JSON Schema's dialect; to the engine they are of all languages."""

_LISTS = ("required", "enum", "allOf", "anyOf", "oneOf", "prefixItems")
_OBJECTS = ("properties", "patternProperties", "dependentSchemas", "dependentRequired", "$defs")
_LITERAL = frozenset({"const", "enum", "default", "examples"})
_WELL_FORMED: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_LISTS, list),
    **dict.fromkeys(_OBJECTS, dict),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (int, float)),
    **dict.fromkeys(("minProperties", "maxProperties"), (int, float)),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (int, float)),
    **dict.fromkeys(("pattern", "$ref"), str),
    "type": (str, list),
}
"""What a keyword must be; one that is something else would make up faults and is left out."""

_NOT_YET = object()

Keyword = Callable[[Any, Any, Any, Any], Iterable[Any] | None]


class Fault(NamedTuple):
    """Where in a value something does not fit, and what."""

    path: tuple[str | int, ...]
    message: str


class _GivenUp(Exception):
    """A check took more steps than it may."""


class SchemaCheck:
    """A schema that values can be checked against."""

    def __init__(self, schema: object) -> None:
        self._schema = schema
        self._validator: Any = _NOT_YET

    def faults(self, value: object) -> list[Fault]:
        """What does not fit, at most `MAX_FAULTS`; nothing where it cannot be told."""
        if weight(value, MAX_VALUE_WEIGHT) >= MAX_VALUE_WEIGHT:
            return []
        budget = _steps.set([MAX_STEPS])
        try:
            validator = self._compiled()
            if validator is None:
                return []
            errors = islice(validator.iter_errors(value), MAX_FAULTS)
            return [_fault(error) for error in errors]
        except Exception:
            # A reference to nowhere, a type that does not exist, a circle: nothing can be said.
            return []
        finally:
            _steps.reset(budget)

    def _compiled(self) -> Any:
        if self._validator is _NOT_YET:
            try:
                self._validator = _compiled(self._schema)
            except Exception:
                self._validator = None
        return self._validator


def weight(value: object, limit: int) -> int:
    """How much there is of a JSON value: one for each node and each hundred characters.

    Counts no further than `limit`.
    """
    total, waiting = 0, [value]
    while waiting and total < limit:
        each = waiting.pop()
        total += 1
        if isinstance(each, str):
            total += len(each) // 100
        elif isinstance(each, dict):
            total += sum(map(len, islice(each, limit))) // 100
            waiting += islice(each.values(), limit)
        elif isinstance(each, list | tuple):
            waiting += islice(each, limit)
    return min(total, limit)


def is_match(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; True where the pattern cannot be used."""
    matcher = _matcher(pattern)
    return matcher is None or matcher.isinstance_python(text)


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> SchemaValidator | None:
    """On pydantic's engine, whose time grows with the text alone."""
    if len(pattern) > MAX_PATTERN_CHARS or _SLOW_PATTERN.search(pattern):
        return None
    _spend(_PATTERN_STEPS)
    pattern = _ESCAPE.sub(lambda found: _CLASSES.get(found[1], found[0]), pattern)
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None


_steps: ContextVar[list[int]] = ContextVar("steps_left")


def _spend(steps: int) -> None:
    left = _steps.get(None)
    if left is None:
        return
    left[0] -= steps
    if left[0] < 0:
        raise _GivenUp


def _compiled(schema: object) -> Any:
    """A validator, or None for a schema that is no use."""
    if not isinstance(schema, dict) or weight(schema, MAX_SCHEMA_WEIGHT) >= MAX_SCHEMA_WEIGHT:
        return None
    prepared = _prepared(schema)
    draft = validator_for({"$schema": schema.get("$schema")}, default=Draft202012Validator)
    # An empty registry fetches nothing; the library's own would.
    return _bounded(draft)(prepared, registry=Registry())


def _prepared(schema: Any) -> Any:
    """A copy without ids, which would move what references start from, and without nonsense."""
    if isinstance(schema, list):
        return [_prepared(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _LITERAL else _prepared(value)
        for key, value in schema.items()
        if _has_sense(key, value)
    }


def _has_sense(key: str, value: Any) -> bool:
    if key in ("$id", "id", "$anchor", "$dynamicAnchor"):
        return not isinstance(value, str)
    expected = _WELL_FORMED.get(key)
    # A property may be called `type` or `enum`: then its schema is here.
    return expected is None or isinstance(value, dict) or isinstance(value, expected)  # noqa: SIM101


@lru_cache(maxsize=8)
def _bounded(draft: Any) -> Any:
    """The validator class of a draft, its keywords counted and the dangerous ones replaced."""
    replaced: dict[str, Keyword] = {
        name: _counted(keyword) for name, keyword in draft.VALIDATORS.items()
    }
    replaced["pattern"] = _pattern
    replaced["patternProperties"] = _pattern_properties
    replaced["additionalProperties"] = _unless_patterns(replaced["additionalProperties"])
    replaced["uniqueItems"] = _unless_many(replaced["uniqueItems"])
    replaced["$ref"] = _local(replaced["$ref"])
    # These look at everything again, for each of their branches.
    for name in ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"):
        replaced[name] = _unchecked
    return extend(draft, replaced)  # type: ignore[no-untyped-call]


def _counted(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        _spend(1 + (len(value) if isinstance(value, list | dict) else 0))
        return keyword(validator, value, instance, schema)

    return check


def _unless_patterns(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        if "patternProperties" in schema:
            return None
        return keyword(validator, value, instance, schema)

    return check


def _unless_many(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        if isinstance(instance, list):
            # Each may be compared with each.
            _spend(len(instance) ** 2 // 20)
        return keyword(validator, value, instance, schema)

    return check


def _local(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        _spend(_REFERENCE_STEPS)
        if value != "#" and not value.startswith("#/"):
            return None
        return keyword(validator, value, instance, schema)

    return check


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterable[Any]:
    _spend(1)
    if isinstance(instance, str) and not is_match(pattern, instance):
        yield ValidationError(f"{shown(instance)} does not match {shown(pattern)}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterable[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in patterns.items():
        if _matcher(pattern) is None:
            continue
        for name, value in instance.items():
            _spend(1)
            if is_match(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    return None


def _fault(error: Any) -> Fault:
    # Of a union it says which member came nearest, which helps more than that none fits.
    error = best_match([error])
    return Fault(tuple(error.absolute_path), clean(shorten(str(error.message), 300)))
