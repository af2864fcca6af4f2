"""Forms that tools ask a person to fill in: a flat JSON Schema as fields.

The page and the API share it. A schema comes from a stranger: whatever is not understood becomes a
field of JSON, and patterns run on an engine that cannot go back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from web.harness.tools.form_fields import Field, FieldKind, Option
from web.harness.tools.words import shorten
from web.harness.values.errors import DecisionRefused
from web.harness.values.messages import JsonObject

MAX_FIELDS = 100
MAX_OPTIONS = 500
MAX_TITLE_CHARS = 200
MAX_DESCRIPTION_CHARS = 1_000
MAX_PATTERN_CHARS = 300

_SAID = ("type", "title", "description", "default", "examples", "$comment", "deprecated")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "pattern", "format")
_CHOICES = ("enum", "enumNames", "oneOf", "anyOf", "const", "items", "readOnly", "writeOnly")
_KNOWN = frozenset((*_SAID, *_BOUNDS, *_LENGTHS, *_CHOICES))
"""A field with any other keyword is filled in as JSON."""

_FORMATS = ("email", "uri", "date", "date-time")
_SECRET = re.compile(
    r"\b(pass ?(word|phrase|code|wd)s?|passwort|kennwort|pwd|pin|secrets?|tokens?|(api ?)?keys?"
    r"|credentials?|cvv|cvc|otp)\b"
)


class FormRefused(DecisionRefused):
    """What was filled in does not fit; the form stays open. `faults` says why, by field name."""

    code = "invalid_arguments"

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = dict(faults)
        shown = list(self.faults.items())[:5]
        words = " ".join(f"{shorten(name, 80)}: {fault}" for name, fault in shown)
        super().__init__(f"The form is not right yet. {words}", hint="It is still open.")


def read_form(schema: object) -> tuple[Field, ...]:
    """The fields of a form, in the order of its schema; at most `MAX_FIELDS`."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return ()
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    properties = list(schema["properties"].items())[:MAX_FIELDS]
    return tuple(_field(str(name), each, name in names) for name, each in properties)


def read_typed(
    fields: Sequence[Field], typed: Mapping[str, Sequence[str]]
) -> tuple[JsonObject, dict[str, str]]:
    """What was typed into the fields of a page, by their names: the content, and the faults."""
    content: JsonObject = {}
    faults: dict[str, str] = {}
    for field in fields:
        try:
            there, value = field.read(typed.get(field.name, ()))
        except ValueError as error:
            faults[field.name] = str(error)
        else:
            if there:
                content[field.name] = value
    return content, faults_of(fields, content) | faults


def faults_of(fields: Sequence[Field], content: JsonObject) -> dict[str, str]:
    """What does not fit, by field name."""
    faults = {}
    for field in fields:
        if field.name in content:
            fault = field.fault(content[field.name])
        else:
            fault = "This is needed." if field.required else ""
        if fault:
            faults[field.name] = fault
    known = {field.name for field in fields}
    return faults | {name: "There is no such field." for name in content if name not in known}


def check_content(fields: Sequence[Field], content: JsonObject) -> None:
    """Raises FormRefused for content that does not fit."""
    if faults := faults_of(fields, content):
        raise FormRefused(faults)


def _field(name: str, schema: object, required: bool) -> Field:
    given: dict[str, Any] = _without_null(schema) if isinstance(schema, dict) else {}
    title = _words(given.get("title"), MAX_TITLE_CHARS) or name
    description = _words(given.get("description"), MAX_DESCRIPTION_CHARS)
    kind, options = _kind(given)
    prefix = {"text": "Length", "choices": "Items"}.get(kind)
    low, high = ("minimum", "maximum") if prefix is None else (f"min{prefix}", f"max{prefix}")
    text_format, pattern = given.get("format"), given.get("pattern")
    return Field(
        name,
        kind,
        title,
        description,
        required,
        given.get("default"),
        "default" in given,
        format=text_format if kind == "text" and text_format in _FORMATS else "",
        low=_number(given.get(low)),
        high=_number(given.get(high)),
        above=_number(given.get("exclusiveMinimum")),
        below=_number(given.get("exclusiveMaximum")),
        pattern=pattern
        if kind == "text" and isinstance(pattern, str) and len(pattern) <= MAX_PATTERN_CHARS
        else "",
        options=options,
        smells_secret=kind in ("text", "json") and _smells_secret(f"{name} {title}"),
    )


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """`T or null` as T: a field that is left empty says the same."""
    either = schema.get("anyOf")
    if isinstance(either, list):
        others = [each for each in either if each != {"type": "null"}]
        if len(others) == 1 < len(either) and isinstance(others[0], dict):
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            schema = {**others[0], **rest}
    types = schema.get("type")
    if isinstance(types, list) and len(others := [each for each in types if each != "null"]) == 1:
        schema = {**schema, "type": others[0]}
    if schema.get("default", "") is None:
        schema = {key: value for key, value in schema.items() if key != "default"}
    return schema


def _kind(schema: dict[str, Any]) -> tuple[FieldKind, tuple[Option, ...]]:
    if not _KNOWN.issuperset(schema):
        return "json", ()
    if options := _options(schema):
        return "choice", options
    match schema.get("type"):
        case "string" if not schema.keys() & {"enum", "oneOf", "anyOf", "const"}:
            return "text", ()
        case "boolean":
            return "boolean", ()
        case "number":
            return "number", ()
        case "integer":
            return "integer", ()
        case "array" if isinstance(schema.get("items"), dict):
            options = _options(schema["items"])
            return ("choices", options) if options else ("json", ())
    return "json", ()


def _options(schema: dict[str, Any]) -> tuple[Option, ...]:
    """The choices of a schema, with their titles; () where it offers none, or too many."""
    values = schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= MAX_OPTIONS:
        names = schema.get("enumNames")
        if not isinstance(names, list) or len(names) != len(values):
            names = [None] * len(values)
        return tuple(map(_option, values, names))
    either = schema.get("oneOf", schema.get("anyOf"))
    if not isinstance(either, list) or not 0 < len(either) <= MAX_OPTIONS:
        return ()
    if not all(isinstance(each, dict) and "const" in each for each in either):
        return ()
    return tuple(_option(each["const"], each.get("title")) for each in either)


def _option(value: Any, title: object) -> Option:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Option(value, _words(title, MAX_TITLE_CHARS) or shorten(said, MAX_TITLE_CHARS))


def _words(text: object, limit: int) -> str:
    return shorten(" ".join(text[: 4 * limit].split()), limit) if isinstance(text, str) else ""


def _smells_secret(words: str) -> bool:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", words)
    return _SECRET.search(re.sub(r"[\W_]+", " ", apart).lower()) is not None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
