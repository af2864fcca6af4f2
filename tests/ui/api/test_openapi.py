"""The OpenAPI document says what the API does, and the API does nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, get_args
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator

from tests.support.app_server import AppServer, app_server
from tests.support.scripted_provider import ScriptedProvider, says
from web.harness.values.events import EventBody, NestedEvent, TextDelta, event_data
from web.ui.api.attachments import NewMessage
from web.ui.api.openapi import describe
from web.ui.api.operations import Operation
from web.ui.api.routes import OPERATIONS
from web.ui.api.run_events import to_json
from web.ui.api.shapes import NewChat
from web.ui.errors import STATUS

pytestmark = pytest.mark.anyio

DOCUMENT: dict[str, Any] = json.loads(describe(OPERATIONS, version="1"))
SCHEMAS = DOCUMENT["components"]["schemas"]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def check(value: Any, schema: dict[str, Any]) -> None:
    """Raises where a value does not fit a schema of the document."""
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


def test_every_operation_is_described_and_nothing_else() -> None:
    described = {
        (method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods
    }
    assert described == {(operation.method, operation.described_path) for operation in OPERATIONS}
    names = [
        method["operationId"] for path in DOCUMENT["paths"].values() for method in path.values()
    ]
    assert len(names) == len(set(names))


def test_the_document_is_whole() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    for reference in references(DOCUMENT):
        assert reference.removeprefix("#/components/schemas/") in SCHEMAS
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)
    used = {reference.rpartition("/")[2] for reference in references(DOCUMENT)}
    assert used == set(SCHEMAS)


def test_every_event_type_and_every_refusal_is_described() -> None:
    stream = DOCUMENT["paths"]["/api/runs/{run_id}/events"]["get"]["responses"]["200"]
    events = stream["content"]["text/event-stream"]["x-events"]
    assert set(events) == {body.type for body in get_args(EventBody)}
    for operation in OPERATIONS:
        path = DOCUMENT["paths"][operation.described_path]
        responses = path[operation.method.lower()]["responses"]
        for code in operation.refusals:
            assert f"`{code}`" in responses[str(STATUS[code])]["description"]


def test_requests_that_the_document_allows_are_taken() -> None:
    for shape, value in (
        (NewChat, {}),
        (NewChat, {"title": "Plans", "model": "demo:demo", "system_prompt": "Be brief."}),
        (NewMessage, {"text": "Hello", "queue": True, "request_id": "r-1"}),
    ):
        check(value, {"$ref": f"#/components/schemas/{shape.__name__}"})
        shape.model_validate(value)


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AppServer]:
    folder = tmp_path_factory.mktemp("data")
    async with app_server(folder, ScriptedProvider(says("ok"))) as server:
        yield server


async def test_the_server_gives_this_document(server: AppServer) -> None:
    given = (await server.client.get("/api/openapi.json")).json()
    assert given["paths"] == DOCUMENT["paths"]
    assert given["components"] == DOCUMENT["components"]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda child: st.lists(child, max_size=3) | st.dictionaries(st.text(), child, max_size=3),
    max_leaves=8,
)
Request = tuple[Operation[Any], dict[str, str], bytes, str, str]
"""Operation, ids in its path, content, media type and cursor."""
MODELS_AND_WORDS = st.sampled_from(["openai:one", "openai:two", "allow", "deny", "hello"])


def contents(operation: Operation[Any]) -> st.SearchStrategy[bytes]:
    """Content that fits, nearly fits, is some JSON or is nothing at all."""
    values = MODELS_AND_WORDS | st.booleans() | ANY_JSON
    near = st.fixed_dictionaries({}, optional=dict.fromkeys(operation.body.model_fields, values))
    return (near | ANY_JSON).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    operation = draw(st.sampled_from(OPERATIONS))
    ids = {
        name: draw(st.just("known") | st.text(min_size=1, max_size=20))
        for name in ("chat_id", "run_id", "key")
    }
    media_type = draw(
        st.sampled_from(["application/json", "text/plain", "", "multipart/form-data"])
    )
    after = draw(st.integers(0, 9).map(str) | st.text(max_size=20))
    return operation, ids, draw(contents(operation)), media_type, after


def fuzzed(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@fuzzed(40)
@given(requests())
async def test_whatever_is_asked_the_answer_is_as_described(
    server: AppServer, asked: Request
) -> None:
    await ask(server, asked)


@pytest.mark.full
@fuzzed(2_000)
@given(requests())
async def test_whatever_is_asked_at_length_the_answer_is_as_described(
    server: AppServer, asked: Request
) -> None:
    await ask(server, asked)


async def ask(server: AppServer, asked: Request) -> None:
    """Sends a request and compares the answer with what the document says."""
    operation, ids, content, media_type, after = asked
    chat = await server.new_chat(request_id="the fuzzed one")
    if (await server.client.get(f"/api/chats/{chat}")).status_code == 404:
        await server.client.post(f"/api/chats/{chat}/restore")
    run_id = await server.send(chat, "hello", request_id="first", queue=True)
    known = {"chat_id": chat, "run_id": run_id, "key": "k"}
    path = operation.described_path
    for name, value in ids.items():
        used = known[name] if value == "known" else value
        # A dot alone would be taken for a step in the path, by the client already.
        path = path.replace(f"{{{name}}}", quote(used, safe="").replace(".", "%2E"))
    answer = await server.client.request(
        operation.method,
        path,
        content=content,
        headers={"Content-Type": media_type} if media_type else {},
        params={"after": after} if operation.query else {},
    )
    described = DOCUMENT["paths"][operation.described_path][operation.method.lower()]["responses"]
    status = str(answer.status_code)
    if status not in described:
        # Some text makes another address: with a slash in it, or none at all.
        assert status in ("404", "405"), (status, answer.text)
        assert set(answer.json()) == {"code", "message", "hint"}
        return
    expected = described[status].get("content", {}).get("application/json")
    if expected is not None:
        check(answer.json(), expected["schema"])


def test_a_nested_event_is_described_as_it_is_sent() -> None:
    body = NestedEvent("r-1-0", NestedEvent("r-1-0-s1-1-0", TextDelta("hi", "m")))
    data = json.loads(to_json(event_data(body)))
    check(data, {"$ref": "#/components/schemas/NestedEvent"})
    assert data["event"] == "nested"
    assert data["data"] == {
        "call_id": "r-1-0-s1-1-0",
        "event": "text_delta",
        "data": {"text": "hi", "message_id": "m"},
    }
    assert set(SCHEMAS["NestedEvent"]["properties"]) == set(data)
