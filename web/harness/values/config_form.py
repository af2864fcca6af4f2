"""A configuration as JSON: the nested shape, the flat one before it, and what differs between two.

The rule for fields:

- Written is the nested shape, all of it: `limits`, `retry` and `tools` are objects of their own.
- Read is that shape, and the older flat one, in which each field stands outside of any group, some
  under an older name (`_OLDER`). A field that is given twice is refused.
- `extra` is an object that nothing here reads; it is kept and written again as it was.
- Fields that harnessx knows and that mean nothing here (`_OF_OTHERS`) are kept in `extra`, by their
  own names.
- Every other field is refused by name, and so is anything that looks like a key or a password,
  in `extra` too: those are given to a provider and never written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.errors import ConfigurationError
from web.harness.values.json_form import NotSerialisable, json_copy, kind_of
from web.harness.values.messages import JsonObject
from web.harness.values.secret_names import is_secret_name, refuse_secrets
from web.harness.values.text import sayable

EXTRA = "extra"

T = TypeVar("T")

_OLDER = {
    "llm_max_attempts": "retry.attempts",
    "llm_retry_backoff_seconds": "retry.backoff_seconds",
    "model_timeout_seconds": "retry.call_timeout_seconds",
    "tool_timeout_seconds": "tools.timeout_seconds",
    "default_timeout_seconds": "tools.timeout_seconds",
    "limits.input_cost_per_m": "limits.prices.input_cost_per_m",
    "limits.output_cost_per_m": "limits.prices.output_cost_per_m",
    "tools.default_timeout_seconds": "tools.timeout_seconds",
}
"""Older names, by where they stood, and where the field stands now."""

_OF_OTHERS = ("prompt_cache", "tools.dedupe_calls", "dedupe_calls")
"""What harnessx writes and this library has no use for."""

_LEAST = {"limits.max_repeats": 2}
"""The smallest that whole numbers may be; the others begin at 1."""

_LARGEST = 10**15
"""Of a number; NaN and infinity are not below it either."""


class _Leaf(NamedTuple):
    """A field that is no group: its type, and whether it may be None."""

    kind: type
    optional: bool


class Difference(NamedTuple):
    """A field that two configurations do not agree on; `path` is dotted."""

    path: str
    first: Any
    second: Any


def config_to_dict(config: AgentConfig) -> JsonObject:
    """The nested shape, JSON alone. Raises NotSerialisable for an `extra` that is no JSON, and
    ConfigurationError for one that holds a secret."""
    form = _written(config)
    extra = json_copy(form.pop(EXTRA), EXTRA)
    refuse_secrets(extra, EXTRA)
    return {**form, EXTRA: extra} if extra else form


def config_from_dict(data: Mapping[str, Any]) -> AgentConfig:
    """Reads both shapes. Raises ConfigurationError, which names the field."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"A configuration is an object, not {kind_of(data)}.")
    given = dict(data)
    extra = given.pop(EXTRA, {})
    if not isinstance(extra, dict):
        raise ConfigurationError(f"extra is {kind_of(extra)} and has to be an object.")
    found, foreign = _sorted_out(_flat(_with_model(given), ""))
    if twice := sorted(foreign.keys() & extra.keys()):
        raise ConfigurationError(f"{twice[0]} and extra.{twice[0]} are the same, given twice.")
    try:
        kept = json_copy({**foreign, **extra}, EXTRA)
    except NotSerialisable as error:
        raise ConfigurationError(error.message, hint=error.hint) from None
    refuse_secrets(kept, EXTRA)
    return _built(AgentConfig, "", found, {EXTRA: kept})


def differences(first: AgentConfig, second: AgentConfig) -> list[Difference]:
    """The fields in which two configurations differ, in the order of their names."""
    one, other = _flat(_written(first), ""), _flat(_written(second), "")
    return [
        Difference(path, one.get(path), other.get(path))
        for path in sorted({*one, *other})
        if one.get(path) != other.get(path)
    ]


def check_fields(part: Any, prefix: str) -> None:
    """Raises ConfigurationError for a value that its field cannot hold. `prefix` is the path of
    `part` with a dot behind it, '' for a whole configuration."""
    for each in fields(part):
        path, value = f"{prefix}{each.name}", getattr(part, each.name)
        if path == EXTRA:
            if not isinstance(value, dict):
                raise ConfigurationError(f"extra is {kind_of(value)} and has to be an object.")
        elif path in _leaves():
            _checked(path, path, value)
        elif type(value) is not _groups()[path]:
            wanted = _groups()[path].__name__
            raise ConfigurationError(f"{path} is {kind_of(value)} and has to be {wanted}(...).")
        else:
            check_fields(value, f"{path}.")


@cache
def _groups() -> dict[str, type]:
    """The class of every group of fields by its dotted path."""
    found: dict[str, type] = {}

    def look(kind: type, prefix: str) -> None:
        for name, hint in get_type_hints(kind).items():
            if isinstance(hint, type) and is_dataclass(hint) and hint is not ModelName:
                found[f"{prefix}{name}"] = hint
                look(hint, f"{prefix}{name}.")

    look(AgentConfig, "")
    return found


@cache
def _leaves() -> dict[str, _Leaf]:
    """Every field of a configuration by its dotted path."""
    return dict(_leaves_of(AgentConfig, ""))


def _leaves_of(kind: type, prefix: str) -> list[tuple[str, _Leaf]]:
    hints = get_type_hints(kind)
    found: list[tuple[str, _Leaf]] = []
    for each in fields(kind):
        path, hint = f"{prefix}{each.name}", hints[each.name]
        if path == EXTRA:
            continue
        if isinstance(hint, type) and is_dataclass(hint) and hint is not ModelName:
            found += _leaves_of(hint, f"{path}.")
            continue
        kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        plain = next(each for each in kinds if each is not type(None))
        found.append((path, _Leaf(plain, type(None) in kinds)))
    return found


def _is_group(path: str) -> bool:
    return any(leaf.startswith(f"{path}.") for leaf in _leaves())


def _written(value: Any) -> Any:
    if isinstance(value, ModelName):
        return str(value)
    if is_dataclass(value):
        return {each.name: _written(getattr(value, each.name)) for each in fields(value)}
    return value


def _flat(data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Values by their dotted path; what is no group stays whole."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        path = f"{prefix}{key}"
        if _is_group(path):
            if not isinstance(value, Mapping):
                raise ConfigurationError(f"{path} is {kind_of(value)} and has to be an object.")
            flat |= _flat(value, f"{path}.")
        else:
            flat[path] = value
    return flat


def _with_model(given: dict[str, Any]) -> dict[str, Any]:
    """`provider` and `model` apart, as older shapes have them, made one."""
    if "provider" not in given:
        return given
    provider = given.pop("provider")
    model = given.get("model")
    if not isinstance(provider, str) or not isinstance(model, str):
        raise ConfigurationError("provider and model have to be texts, and go together.")
    return {**given, "model": f"{provider}:{model}"}


def _sorted_out(flat: dict[str, Any]) -> tuple[dict[str, Any], JsonObject]:
    """What belongs to this library, by its path of today, and what is kept of others."""
    found: dict[str, Any] = {}
    came: dict[str, str] = {}
    foreign: JsonObject = {}
    unknown: list[str] = []
    for path, value in flat.items():
        today = _today(path)
        if today is None:
            if path in _OF_OTHERS:
                foreign[path] = value
            else:
                unknown.append(path)
        elif today in found:
            raise ConfigurationError(f"{came[today]} and {path} are the same field, given twice.")
        else:
            found[today], came[today] = _checked(path, today, value), path
    if unknown:
        raise ConfigurationError(_unknown(unknown), hint=_UNKNOWN_HINT)
    return found, foreign


def _today(path: str) -> str | None:
    leaves = _leaves()
    if path in leaves:
        return path
    if (older := _OLDER.get(path)) is not None:
        return older
    inner = [leaf for leaf in leaves if leaf.rpartition(".")[2] == path]
    return inner[0] if len(inner) == 1 else None


_UNKNOWN_HINT = "Fields of your own can stand in the object 'extra', which is kept as it is."


def _unknown(paths: list[str]) -> str:
    if any(map(is_secret_name, paths)):
        return "A configuration holds no keys and passwords: a provider is given those."
    shown = ", ".join(f"'{path[:80]}'" for path in sorted(paths)[:5])
    close = get_close_matches(sorted(paths)[0], [*_leaves(), *_OLDER], n=1)
    meant = f" Did you mean '{close[0]}'?" if close and len(paths) == 1 else ""
    return f"A configuration has no field {shown}.{meant}"


def _checked(path: str, today: str, value: Any) -> Any:
    """The value as the field holds it. Raises ConfigurationError."""
    kind, optional = _leaves()[today]
    if value is None and optional:
        return None
    if kind is ModelName:
        if isinstance(value, ModelName):
            return value
        if isinstance(value, str):
            return ModelName.parse(value)
        raise ConfigurationError(f"{path} is {kind_of(value)} and has to be PROVIDER:NAME.")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_number = is_number and -_LARGEST <= value <= _LARGEST
    if kind is float:
        if is_number and value >= 0:
            return float(value)
        wanted = "a number, 0 or more"
    elif kind is int:
        least = _LEAST.get(today, 1)
        if is_number and isinstance(value, int) and value >= least:
            return value
        wanted = f"a whole number, {least} or more"
    else:
        if isinstance(value, str) and sayable(value) != value:
            raise ConfigurationError(f"{path} holds half a character, which cannot be sent.")
        if isinstance(value, kind):
            return value
        wanted = {str: "a text", bool: "true or false"}.get(kind, f"of type {kind.__name__}")
    also = ", or null for none" if optional else ""
    raise ConfigurationError(f"{path} is {kind_of(value)} and has to be {wanted}{also}.")


def _built(kind: type[T], prefix: str, found: dict[str, Any], given: JsonObject) -> T:
    """A dataclass of the values found below a path; what was not found keeps its default."""
    hints = get_type_hints(kind)
    for name, hint in hints.items():
        path = f"{prefix}{name}"
        if path in found:
            given[name] = found[path]
        elif isinstance(hint, type) and _is_group(path):
            given[name] = _built(hint, f"{path}.", found, {})
    return kind(**given)
