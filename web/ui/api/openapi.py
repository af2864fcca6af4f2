"""The OpenAPI document, made from the table of operations, so that the two cannot differ."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import TypeAdapter

from web.harness.values.events import EventBody, NestedEvent
from web.ui.api.operations import Operation
from web.ui.api.shapes import Failure
from web.ui.errors import STATUS

_REF = "#/components/schemas/{model}"

_ALWAYS = ("unknown_identity", "cross_site", "too_large", "bad_host", "internal_error")
_WITH_BODY = ("malformed_json", "unsupported_media_type", "invalid_request")
_STATUS_WORDS = {
    200: "Done",
    201: "Made",
    202: "Accepted; it goes on by itself",
    204: "Done; there is nothing to say",
}

_STREAM_WORDS = (
    "An event stream. `id:` is the number of the event (1, 2, 3, ...) and the cursor to go on "
    "after; `event:` its type; `data:` its JSON. It ends after `run_result`. "
    "Deltas that were not read while the run went on may come joined; a joined one carries the "
    "last number it holds; of reports of one call's progress the last is kept. An event `gap` "
    "without an id, `{after, next}`, tells that the events between are no longer kept. "
    "Comments come while nothing happens."
)


_NESTED = {
    "title": NestedEvent.__name__,
    "description": inspect.getdoc(NestedEvent),
    "type": "object",
    "properties": {
        "call_id": {"title": "Call Id", "type": "string"},
        "event": {"title": "Event", "type": "string", "description": "The type of the event."},
        "data": {"title": "Data", "type": "object", "description": "Its shape, by that type."},
    },
    "required": ["call_id", "event", "data"],
}
"""What stands for a nested event: its body is told with its type."""


def describe(operations: Sequence[Operation[Any]], *, version: str) -> bytes:
    """The document as JSON."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _operation(operation, schemas)
        paths.setdefault(operation.described_path, {})[operation.method.lower()] = described
    for body in get_args(EventBody):
        if body is not NestedEvent:
            _add(body, schemas, "serialization")
    schemas[NestedEvent.__name__] = _NESTED
    _add(Failure, schemas, "serialization")
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "harness-web",
            "version": version,
            "summary": "Chats with an agent whose harness runs on this server",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }
    return json.dumps(document).encode()


def _operation(operation: Operation[Any], schemas: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.handle.__name__,
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): _success(operation, schemas),
            **_refusals(operation),
        },
    }
    if operation.sends_body:
        schema = _add(operation.body, schemas, "validation")
        described["requestBody"] = {
            "required": any(field.is_required() for field in operation.body.model_fields.values()),
            "content": {"application/json": {"schema": schema}},
        }
    if operation.form is not None:
        schema = {"type": "object", "properties": operation.form}
        content = {"multipart/form-data": {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(operation: Operation[Any]) -> list[dict[str, Any]]:
    text = {"type": "string"}
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"\{(\w+)", operation.path)
    ]
    for query in operation.query:
        found.append(
            {
                "name": query.name,
                "in": "query",
                "description": query.description,
                "schema": {**text, "pattern": query.pattern},
            }
        )
    if operation.media_type == "text/event-stream":
        found.append(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "The same as `after`, which it wins over.",
                "schema": text,
            }
        )
    return found


def _success(operation: Operation[Any], schemas: dict[str, Any]) -> dict[str, Any]:
    if operation.media_type == "text/event-stream":
        events = {body.type: _reference(body.__name__) for body in get_args(EventBody)}
        content = {"schema": {"type": "string"}, "x-events": events}
        return {"description": _STREAM_WORDS, "content": {operation.media_type: content}}
    described: dict[str, Any] = {"description": _STATUS_WORDS[operation.status]}
    if operation.answer is not None:
        schema = _add(operation.answer, schemas, "serialization")
        described["content"] = {operation.media_type: {"schema": schema}}
    return described


def _refusals(operation: Operation[Any]) -> dict[str, Any]:
    codes = [*operation.refusals, *_ALWAYS, *(_WITH_BODY if operation.sends_body else ())]
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(STATUS[code], []).append(code)
    content = {"application/json": {"schema": _reference("Failure")}}
    return {
        str(status): {
            "description": "`code` is " + " or ".join(f"`{code}`" for code in by_status[status]),
            "content": content,
        }
        for status in sorted(by_status)
    }


def _add(shape: Any, schemas: dict[str, Any], mode: Any) -> dict[str, Any]:
    """Puts the schemas of a shape among the others and returns a reference to it."""
    schema = TypeAdapter(shape).json_schema(mode=mode, ref_template=_REF)
    schemas |= schema.pop("$defs", {})
    if "title" in schema and schema.get("type") == "object":
        schemas[schema["title"]] = schema
        return _reference(schema["title"])
    return schema


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": _REF.format(model=name)}
