"""JSON Schemas without what a model does not need."""

from __future__ import annotations

from typing import Any

from web.harness.values.messages import JsonObject

_MAPS = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_VALUES = frozenset({"default", "const", "enum", "examples"})


def without_titles(schema: JsonObject) -> JsonObject:
    """The schema without titles, which only repeat names.

    A property that is called `title` stays, and so does a `title` inside a default.
    """
    return {
        key: _stripped(key, value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _stripped(key: str, value: Any) -> Any:
    if key in _VALUES:
        return value
    if key in _MAPS and isinstance(value, dict):
        return {name: without_titles(inner) for name, inner in value.items()}
    if isinstance(value, dict):
        return without_titles(value)
    if isinstance(value, list):
        return [without_titles(item) if isinstance(item, dict) else item for item in value]
    return value
