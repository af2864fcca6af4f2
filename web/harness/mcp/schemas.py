"""Input schemas of a server in the form that every model API takes.

The APIs want an object at the top without unions, argument names of few characters, and JSON
Schema of 2020-12. What is lost here only tells the model less: its arguments are checked against
the schema as the server wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from web.harness.mcp.wording import tidy
from web.harness.values.messages import JsonObject
from web.harness.values.text import sayable, sayable_json

MAX_SCHEMA_CHARS = 20_000
"""As JSON, about 5,000 tokens. A larger one is tried with less in it, then left out."""

TRIES = ((12, 1_000), (12, 200), (5, 200), (3, 100), (1, 100))
"""How deep, and how many characters of each description."""

MAX_NODES = 1_500
MAX_NOTE_CHARS = 1_500
TIMES_AROUND = 2
"""So often a schema that refers to itself is written out."""

TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})

_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)
_LITERALS = frozenset({"const", "default"})
_LITERAL_LISTS = frozenset({"enum", "examples"})
_SCHEMAS = frozenset({"additionalProperties", "contains", "propertyNames", "not"})
_UNIONS = ("anyOf", "oneOf")
_BRANCHES = frozenset({*_UNIONS, "allOf"})
_LEGAL_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """`schema` is an object without unions at its top.

    `note` says what the schema could not, for the end of the tool's description. `renamed` has
    the server's name of each argument whose name models do not take.
    """

    schema: JsonObject
    note: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)


class _TooLarge(Exception):
    """A schema has more nodes than a model is shown."""


def model_schema(original: object) -> ModelSchema:
    """Never fails: what cannot be understood becomes an object of anything."""
    for depth, words in TRIES:
        try:
            schema, note = _as_object(_Shaper(original, depth, words).shape(original))
        except (_TooLarge, RecursionError):
            continue
        schema, renamed = _with_legal_names(schema)
        if len(json.dumps(schema)) <= MAX_SCHEMA_CHARS:
            return ModelSchema(schema, note, renamed)
    return ModelSchema({"type": "object", "properties": {}}, _outlined(original))


class _Shaper:
    """Writes a schema anew, with references followed inside of `root`, down to a depth."""

    def __init__(self, root: object, depth: int, description_chars: int) -> None:
        self._root = root
        self._depth = depth
        self._description_chars = description_chars
        self._left = MAX_NODES

    def shape(self, schema: object, depth: int = 0, seen: tuple[str, ...] = ()) -> JsonObject:
        self._left -= 1
        if self._left < 0:
            raise _TooLarge
        if schema is False:
            return {"not": {}}
        if not isinstance(schema, dict):
            return {}
        schema, seen, around = self._followed(schema, seen)
        if around or depth >= self._depth:
            return self._outline(schema)
        shaped: JsonObject = {}
        for key, value in schema.items():
            shaped.update(self._keyword(key, value, depth + 1, seen))
        shaped.update(self._items(schema, depth + 1, seen))
        _mend(shaped)
        return shaped

    def _keyword(self, key: str, value: Any, depth: int, seen: tuple[str, ...]) -> JsonObject:
        """The keyword as it is written, or nothing."""
        if key in _SCHEMAS and isinstance(value, dict | bool):
            inner = value if isinstance(value, bool) else self.shape(value, depth, seen)
            return {key: {} if inner is True and key != "additionalProperties" else inner}
        if key in _BRANCHES and isinstance(value, list) and value:
            return {key: [self.shape(each, depth, seen) for each in value]}
        if key == "properties" and isinstance(value, dict):
            return {
                key: {
                    sayable(str(name)): self.shape(each, depth, seen)
                    for name, each in value.items()
                    if each is not False
                }
            }
        if key == "description":
            words = tidy(value, self._description_chars)
            return {key: words} if words else {}
        return _plain_keyword(key, value)

    def _outline(self, schema: JsonObject) -> JsonObject:
        """Type and description alone, where a schema goes deeper than is shown."""
        outline: JsonObject = {"type": "object"} if "properties" in schema else {}
        for key in ("type", "description"):
            if key in schema:
                outline.update(self._keyword(key, schema[key], 0, ()))
        _mend(outline)
        return outline

    def _items(self, schema: JsonObject, depth: int, seen: tuple[str, ...]) -> JsonObject:
        """Those of an array; drafts before 2020-12 wrote its first items as a list."""
        items, first = schema.get("items"), schema.get("prefixItems")
        if isinstance(items, list):
            first, items = items, schema.get("additionalItems")
        shaped: JsonObject = {}
        if isinstance(first, list) and first:
            shaped["prefixItems"] = [self.shape(each, depth, seen) for each in first]
        if items is False:
            shaped["items"] = False
        elif items is not None:
            shaped["items"] = self.shape(items, depth, seen)
        return shaped

    def _followed(
        self, schema: JsonObject, seen: tuple[str, ...]
    ) -> tuple[JsonObject, tuple[str, ...], bool]:
        """The schema behind its references, which they were, and whether they go in circles."""
        while isinstance(reference := schema.get("$ref"), str):
            around = seen.count(reference) >= TIMES_AROUND
            target = _found(self._root, reference)
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**target, **beside} if isinstance(target, dict) else beside
            if around:
                schema.pop("$ref", None)
                return schema, seen, True
            seen = (*seen, reference)
        return schema, seen, False


def _found(root: object, reference: str) -> object:
    """What a local reference points at, None for nothing. Others are never fetched."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    place: Any = root
    for step in unquote(reference[2:]).split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict):
            place = place.get(step)
        elif isinstance(place, list) and step.isdecimal() and int(step[:6]) < len(place):
            place = place[int(step[:6])]
        else:
            return None
    return place


def _plain_keyword(key: str, value: Any) -> JsonObject:
    """A keyword without schemas in it, if it is one that models are shown and is well formed."""
    kept: Any = None
    if key == "type":
        kept = _types(value)
    elif key == "format":
        kept = tidy(value, 60, one_line=True)
    elif key == "pattern":
        kept = value if isinstance(value, str) and _compiles(value) else None
    elif key == "required" and isinstance(value, list):
        kept = list(dict.fromkeys(sayable(name) for name in value if isinstance(name, str)))
    elif _is_literal(key, value):
        return _literal(key, value)
    elif key == "uniqueItems":
        kept = value is True
    return {key: kept} if kept else {}


def _is_literal(key: str, value: Any) -> bool:
    if key in _NUMBERS or key in _COUNTS or key == "multipleOf":
        return _is_number(key, value)
    return key in _LITERALS or (key in _LITERAL_LISTS and isinstance(value, list) and value != [])


def _is_number(key: str, value: Any) -> bool:
    """Whether it is a number, a count where one is asked for; NaN and infinity are no counts."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if key in _COUNTS:
        return value >= 0 and bool(value == value // 1)
    return key in _NUMBERS or value > 0


def _types(value: Any) -> Any:
    if isinstance(value, list):
        known = list(dict.fromkeys(each for each in value if isinstance(each, str)))
        return [each for each in known if each in TYPES]
    return value if isinstance(value, str) and value in TYPES else None


def _literal(key: str, value: Any) -> JsonObject:
    """A value of the server's own, where JSON can say it."""
    try:
        said = sayable_json(value)
        json.dumps(said, allow_nan=False)
    except (ValueError, RecursionError):
        return {}
    return {key: said}


def _compiles(pattern: str) -> bool:
    """Whether it is a regular expression; a model API refuses a schema for one that is not."""
    if len(pattern) > 300 or sayable(pattern) != pattern:
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _mend(shaped: JsonObject) -> None:
    """What one of the APIs asks for beyond JSON Schema."""
    is_array = shaped.get("type") == "array" or "array" in (shaped.get("type") or ())
    if is_array and "items" not in shaped:
        shaped["items"] = {}
    if "properties" in shaped and "type" not in shaped and not _BRANCHES & shaped.keys():
        shaped["type"] = "object"


def _as_object(shaped: JsonObject) -> tuple[JsonObject, str]:
    """An object with the arguments of all branches; the note says which belong together."""
    properties: JsonObject = {}
    required, options = _gathered(shaped, properties)
    for name in required:
        properties.setdefault(name, {})
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if "description" in shaped:
        schema["description"] = shaped["description"]
    others = shaped.get("additionalProperties")
    if others is not None and properties.keys() <= shaped.get("properties", {}).keys():
        schema["additionalProperties"] = others
    if len(options) < 2:
        return schema, ""
    words = " | ".join(", ".join(option) or "none of them" for option in options)
    return schema, tidy(f"Needs one of these sets of arguments: {words}.", MAX_NOTE_CHARS)


def _gathered(schema: JsonObject, into: JsonObject) -> tuple[list[str], list[tuple[str, ...]]]:
    """Adds the properties of a schema and of its branches.

    Returns what is required in any case, and the sets of arguments that unions require.
    """
    for name, inner in schema.get("properties", {}).items():
        into[name] = _either(into[name], inner) if name in into else inner
    required = list(schema.get("required", ()))
    options: list[tuple[str, ...]] = []
    for branch in schema.get("allOf", ()):
        more, its_options = _gathered(branch, into)
        required += more
        options += its_options
    for keyword in _UNIONS:
        members = [_gathered(member, into)[0] for member in _objects(schema.get(keyword, ()))]
        options += dict.fromkeys(tuple(member) for member in members)
        if members:
            required += [name for name in members[0] if all(name in each for each in members)]
    return list(dict.fromkeys(required)), options


def _objects(members: Any) -> Iterator[JsonObject]:
    """The members of a union that can be an object."""
    for member in members:
        types = member.get("type", "object")
        if types == "object" or "object" in types:
            yield member


def _either(one: JsonObject, other: JsonObject) -> JsonObject:
    if one == other or not other:
        return one
    known = one["anyOf"] if one.keys() == {"anyOf"} else [one]
    return one if other in known else {"anyOf": [*known, other]}


def _with_legal_names(schema: JsonObject) -> tuple[JsonObject, dict[str, str]]:
    """Arguments whose names an API refuses are called otherwise; returns their own names too."""
    properties: JsonObject = schema["properties"]
    legal: dict[str, str] = {
        name: name for name in properties if _LEGAL_ARGUMENT.fullmatch(name) is not None
    }
    taken = set(legal.values())
    for name in properties:
        if name not in legal:
            legal[name] = _free(re.sub(r"[^A-Za-z0-9_.-]+", "_", name[:60]).strip("_"), taken)
            taken.add(legal[name])
    renamed = {new: name for name, new in legal.items() if new != name}
    if not renamed:
        return schema, {}
    changed = {**schema, "properties": {legal[name]: properties[name] for name in properties}}
    if "required" in schema:
        changed["required"] = [legal[name] for name in schema["required"]]
    return changed, renamed


def _free(name: str, taken: set[str]) -> str:
    name = name or "argument"
    number, free = 2, name
    while free in taken:
        free = f"{name}_{number}"
        number += 1
    return free


def _outlined(original: object) -> str:
    """The arguments by name, for a schema that is too large to be shown."""
    properties = original.get("properties") if isinstance(original, dict) else None
    names = [tidy(str(name), 60, one_line=True) for name in list(properties or ())[:100]]
    listed = f" Its arguments: {', '.join(names)}." if names else ""
    return tidy(f"The schema of its arguments is too large to be shown.{listed}", MAX_NOTE_CHARS)
