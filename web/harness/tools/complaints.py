"""What a model is told about arguments that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from web.harness.tools.words import MAX_ERROR_CHARS, clean, did_you_mean, shorten, shown
from web.harness.values.messages import JsonObject

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_LINES = 10
"""Arguments that one complaint names; a model rarely mends more at once."""

Path = tuple[str | int, ...]

_OBJECT_FAULTS = frozenset({"dict_type", "model_type", "model_attributes_type", "dataclass_type"})


def complaint(tool: str, arguments: JsonObject, error: ValidationError, schema: JsonObject) -> str:
    """One line for each argument that does not fit, then the arguments that the tool takes."""
    known: JsonObject = schema.get("properties", {})
    unknown: list[str] = []
    expected: dict[Path, list[str]] = {}
    given: dict[Path, str] = {}
    for fault in error.errors(include_url=False, include_context=False):
        path = _path(arguments, fault["loc"], fault["type"] == "missing")
        if fault["type"] == "extra_forbidden" and len(path) == 1:
            name = str(path[0])
            unknown.append(
                f"- {shown(name)}: there is no such argument.{did_you_mean(name, known)}"
            )
            continue
        given[path] = "missing" if fault["type"] == "missing" else f"got {shown(fault['input'])}"
        words = _expectation(fault["type"], str(fault["msg"]), known, path)
        if words not in expected.setdefault(path, []):
            expected[path].append(words)
    lines = [
        f"- {_name(path)}: {given[path]}{_joined(words)}." for path, words in expected.items()
    ] + unknown
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"- and {len(lines) - MAX_LINES} more"]
    head = f"The arguments of '{tool}' do not fit:"
    return clean(shorten("\n".join([head, *lines, _taken(schema)]), MAX_ERROR_CHARS))


def _path(arguments: JsonObject, location: Path, missing: bool) -> Path:
    """Where in the arguments a fault is, without the names of union members in between."""
    path: list[str | int] = []
    value: Any = arguments
    for index, step in enumerate(location):
        if _holds(value, step):
            path.append(step)
            value = value[step]
        elif missing and index == len(location) - 1:
            path.append(step)
    return tuple(path)


def _holds(value: Any, step: str | int) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _name(path: Path) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return clean(shorten(text, 120)) or "the arguments"


def _expectation(kind: str, message: str, known: JsonObject, path: Path) -> str:
    if kind == "missing":
        schema = known.get(str(path[0])) if len(path) == 1 else None
        return f"expected {_type(schema)}" if schema else ""
    if kind in _OBJECT_FAULTS:
        return "expected an object"
    # pydantic goes on to say how it tried; the value that is shown says enough.
    message = message.partition(", unable to ")[0]
    if message.startswith("Input should be "):
        return "expected " + message.removeprefix("Input should be ")
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message[:1].lower() + message[1:]


def _joined(words: list[str]) -> str:
    """What the members of a union expected, as one clause."""
    said = [word for word in words if word]
    rest = [word.removeprefix("expected ") for word in said[1:]]
    return "; " + " or ".join([said[0], *rest]) if said else ""


def _taken(schema: JsonObject) -> str:
    """The arguments of the tool in one line: names, types, which must be there."""
    properties: JsonObject = schema.get("properties", {})
    if not properties:
        return "It takes no arguments."
    required = set(schema.get("required", ()))
    parts = [
        f"{name} ({_type(inner)}{', required' if name in required else ''})"
        for name, inner in properties.items()
    ]
    return "It takes: " + ", ".join(parts) + "."


def _type(schema: Any) -> str:
    """A schema's type in a few words."""
    if not isinstance(schema, dict):
        return "any value"
    if "enum" in schema:
        return "one of " + ", ".join(shown(value, 40) for value in schema["enum"][:20])
    if "const" in schema:
        return shown(schema["const"], 40)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(inner) for inner in schema["anyOf"]))
    if schema.get("type") == "array" and "items" in schema:
        return f"array of {_type(schema['items'])}"
    return str(schema.get("type", "object" if "$ref" in schema else "any value"))
