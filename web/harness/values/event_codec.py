"""Bodies of events as JSON and back, for everything that writes them down.

An object with the `type` of the event and its fields; those that hold their default are left out.
A nested event has its `body` in the same form. What was written comes back equal.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from typing import Any, get_args

from web.harness.values.events import (
    EventBody,
    NestedEvent,
    PlanStep,
    ResultPart,
)
from web.harness.values.json_form import JsonRefused, json_copy, kind_of
from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage

_KINDS: dict[str, Any] = {kind.type: kind for kind in get_args(EventBody)}


def body_to_json(body: EventBody) -> JsonObject:
    """Raises NotSerialisable for what JSON cannot hold."""
    form: JsonObject = {"type": body.type}
    for each in fields(body):
        value = getattr(body, each.name)
        if each.default is not MISSING and value == each.default:
            continue
        form[each.name] = _to_json(value, f"{body.type}.{each.name}")
    return form


def body_from_json(form: Any) -> EventBody:
    """Raises JsonRefused for another form, such as that of a later version."""
    if not isinstance(form, dict):
        raise JsonRefused(f"The body of an event is {kind_of(form)} and has to be an object.")
    kind = _KINDS.get(form.get("type", ""))
    if kind is None:
        raise JsonRefused(f"There is no event {kind_of(form.get('type'))}.", code="from_the_future")
    values = {name: _from_json(kind, name, value) for name, value in form.items() if name != "type"}
    try:
        made: EventBody = kind(**values)
    except TypeError:
        raise JsonRefused(f"An event {kind.type} has other fields.") from None
    return made


def _to_json(value: Any, where: str) -> Any:
    if isinstance(value, Usage):
        return {name: count for name, count in asdict(value).items() if count}
    if isinstance(value, tuple):
        return [_to_json(each, where) for each in value]
    if isinstance(value, ResultPart | PlanStep):
        return {name: each for name, each in asdict(value).items() if each != ""}
    if isinstance(value, get_args(EventBody)):
        return body_to_json(value)
    return json_copy(value, where)


def _from_json(kind: Any, name: str, value: Any) -> Any:
    try:
        match name:
            case "usage":
                return Usage(**value)
            case "parts":
                return tuple(ResultPart(**each) for each in value)
            case "plan":
                return tuple(PlanStep(**each) for each in value)
            case "hints" | "files":
                return tuple(value)
            case "body" if kind is NestedEvent:
                return body_from_json(value)
    except TypeError:
        raise JsonRefused(f"The {name} of an event {kind.type} are not as they were.") from None
    return value
