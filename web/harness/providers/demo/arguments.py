"""Arguments of a tool from what a person typed, guided by the tool's JSON Schema."""

from __future__ import annotations

import json
import re
from typing import Any

from web.harness.values.messages import JsonObject
from web.harness.values.model import ToolSpec

PLACEHOLDER = "{result}"
"""What stands for the text of the last result."""

_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z_][\w.-]*)=")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


def raw_arguments(tool: ToolSpec, typed: str) -> str:
    """JSON text of the arguments that `typed` gives: JSON itself, `key=value` pairs, or words.

    JSON goes out as it was typed, also when it is broken: a model may do that too.
    """
    typed = typed.strip()
    if is_json(typed):
        return typed
    return json.dumps(arguments_of(tool, typed), ensure_ascii=False)


def is_json(typed: str) -> bool:
    """Whether `typed` is meant as a JSON object, not as words that start with the placeholder."""
    return typed.startswith("{") and not typed.startswith(PLACEHOLDER)


def arguments_of(tool: ToolSpec, typed: str) -> JsonObject:
    """The arguments that `key=value` pairs or plain words give, of the types the schema wants."""
    properties = properties_of(tool)
    pairs = _pairs(typed, properties)
    if pairs:
        return {name: typed_value(text, properties.get(name, {})) for name, text in pairs}
    return _from_words(tool, typed, properties) if typed else {}


def properties_of(tool: ToolSpec) -> dict[str, JsonObject]:
    """The schema of each parameter, references resolved."""
    properties = tool.input_schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: _resolved(tool, schema) for name, schema in properties.items()}


def required_of(tool: ToolSpec) -> list[str]:
    """Names of the parameters that must be given."""
    required = tool.input_schema.get("required")
    return [name for name in required if isinstance(name, str)] if required else []


def with_defaults(tool: ToolSpec, arguments: JsonObject) -> JsonObject:
    """`arguments` with the required ones that are missing, where the schema suggests a value."""
    properties = properties_of(tool)
    missing = [name for name in required_of(tool) if name not in arguments]
    known = {name: suggested(name, properties.get(name, {})) for name in missing}
    return arguments | {name: value for name, value in known.items() if value is not None}


def suggested(name: str, schema: JsonObject) -> Any:
    """A value that the schema names itself (default, example, first of an enum), else None."""
    if "default" in schema:
        return schema["default"]
    for key in ("examples", "enum"):
        values = schema.get(key)
        if isinstance(values, list) and values:
            return values[0]
    return "UTC" if name in ("timezone", "time_zone", "tz") else None


def types_of(schema: JsonObject) -> list[str]:
    """The JSON types a parameter may have; none given means a string will do."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return [item for item in kind if isinstance(item, str)]
    options = schema.get("anyOf") or schema.get("oneOf") or []
    return [name for option in options if isinstance(option, dict) for name in types_of(option)]


def typed_value(text: str, schema: JsonObject) -> Any:
    """`text` as the type that the schema wants; as text where it does not fit."""
    for option in schema.get("enum") or []:
        if str(option).lower() == text.lower():
            return option
    types = types_of(schema)
    if "boolean" in types and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if {"integer", "number"} & set(types) and _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    if "null" in types and text == "null":
        return None
    if {"array", "object"} & set(types) and text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    if "array" in types and "string" not in types:
        items = schema.get("items")
        item_schema = items if isinstance(items, dict) else {}
        parts = [part.strip() for part in text.split(",")]
        return [typed_value(part, item_schema) for part in parts if part]
    return text


def _pairs(typed: str, properties: dict[str, JsonObject]) -> list[tuple[str, str]]:
    """`key=value` pairs. A value ends at its quote or bracket, or where the next known key starts.

    Nothing unless the text starts with a pair: `12 = 3 * x` are words.
    """
    found: list[tuple[str, str]] = []
    match = _KEY.match(typed)
    while match is not None:
        name, start = match.group(1), match.end()
        end = _quoted_end(typed, start)
        following = _next_key(typed, end if end is not None else start, properties)
        stop = following.start() if following else len(typed)
        if end is None or typed[end:stop].strip():
            text = typed[start:stop].strip()
        else:
            text = _unquoted(typed[start:end])
        found.append((name, text))
        match = following
    return found


def _next_key(typed: str, at: int, properties: dict[str, JsonObject]) -> re.Match[str] | None:
    matches = _KEY.finditer(typed, at)
    return next((match for match in matches if not properties or match[1] in properties), None)


def _quoted_end(text: str, start: int) -> int | None:
    """Where a quoted or bracketed value that starts at `start` ends; None for a bare one."""
    if text[start : start + 1] == "'":
        end = text.find("'", start + 1)
        return end + 1 if end > 0 else None
    if text[start : start + 1] in ('"', "[", "{"):
        try:
            return json.JSONDecoder(strict=False).raw_decode(text, start)[1]
        except ValueError:
            return None
    return None


def _unquoted(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1]
    return str(json.loads(text, strict=False)) if text.startswith('"') else text


def _from_words(tool: ToolSpec, words: str, properties: dict[str, JsonObject]) -> JsonObject:
    """Words go to the first required string, else the first string, else piece by piece."""
    required = [name for name in required_of(tool) if name in properties]
    for name in (*required, *properties):
        schema = properties[name]
        if "enum" not in schema and ("string" in types_of(schema) or not types_of(schema)):
            return {name: words}
    names = required or list(properties)
    pieces = words.split()
    if names and all({"integer", "number"} & set(types_of(properties[name])) for name in names):
        # "3 seconds" means 3.
        pieces = _NUMBER.findall(words) or pieces
    elif len(names) == 1:
        pieces = [words]
    return {
        name: typed_value(piece, properties[name])
        for name, piece in zip(names, pieces, strict=False)
    }


def _resolved(tool: ToolSpec, schema: Any) -> JsonObject:
    """The schema that a local `$ref` names, one step deep."""
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    target: Any = tool.input_schema
    for name in reference[2:].split("/"):
        target = target.get(name) if isinstance(target, dict) else None
    return {**target, **schema} if isinstance(target, dict) else schema
