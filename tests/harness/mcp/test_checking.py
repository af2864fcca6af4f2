"""Values are checked against the schemas of strangers, at a bounded cost and without a fetch."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from web.harness.mcp.arguments import ArgumentCheck
from web.harness.mcp.checking import MAX_FAULTS, SchemaCheck, is_match, weight
from web.harness.mcp.schemas import model_schema
from web.harness.values.errors import ToolError


def complaint(schema: object, arguments: dict[str, Any]) -> str:
    with pytest.raises(ToolError) as caught:
        ArgumentCheck("tool", schema, model_schema(schema))(arguments)
    return caught.value.message


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "pattern": r"^\w+$"},
        "days": {"type": "array", "items": {"$ref": "#/$defs/day"}},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"day": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}


def test_arguments_that_fit_are_let_through_unchanged() -> None:
    check = ArgumentCheck("tool", SCHEMA, model_schema(SCHEMA))
    fitting = {"city": "Bern", "days": [{"n": 1}], "unit": "C"}
    assert check(fitting) == fitting


def test_a_complaint_says_where_what_and_what_there_is() -> None:
    said = complaint(SCHEMA, {"city": 5, "days": [{}, {"n": "x"}], "unit": "K", "land": 1})
    assert said.splitlines() == [
        "The arguments of 'tool' do not fit:",
        "- city: 5 is not of type 'string'",
        "- days[1].n: 'x' is not of type 'integer'",
        "- unit: 'K' is not one of ['C', 'F']",
        "- the arguments: Additional properties are not allowed ('land' was unexpected)",
        "It takes: city (string, required), days (array), unit (one of C, F).",
    ]
    assert "- the arguments: 'city' is a required property" in complaint(SCHEMA, {})


def test_of_a_union_the_member_that_is_nearest_is_named() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}}
    schema = {"properties": {"a": {"anyOf": [{"type": "integer"}, inner]}}}
    assert "- a.x: 5 is not of type 'string'" in complaint(schema, {"a": {"x": 5}})


def test_arguments_that_were_renamed_go_to_the_server_by_their_own_names() -> None:
    schema = {"properties": {"größe": {"type": "integer"}}, "required": ["größe"]}
    check = ArgumentCheck("tool", schema, model_schema(schema))
    assert check({"gr_e": 3}) == check(check({"gr_e": 3})) == {"größe": 3}
    assert "- gr_e: 'x' is not of type 'integer'" in complaint(schema, {"gr_e": "x"})


def test_a_union_at_the_top_is_checked_as_the_server_wrote_it() -> None:
    schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    check = ArgumentCheck("tool", schema, model_schema(schema))
    assert check({"a": 1}) == {"a": 1}
    assert "do not fit" in complaint(schema, {"c": 1})


@pytest.mark.parametrize(
    "schema",
    [
        None,
        False,
        {"type": "array"},
        {"type": "anything"},
        {"properties": 5, "required": "abc", "enum": "x"},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
        {"$dynamicRef": "#x"},
        {"properties": {"a": {"pattern": "("}}, "patternProperties": {"(": False}},
        {"properties": {"a": {"minLength": "long"}}},
    ],
)
def test_a_schema_that_cannot_be_used_lets_everything_through(schema: object) -> None:
    assert ArgumentCheck("tool", schema, model_schema(schema))({"a": "x"}) == {"a": "x"}


class Elsewhere(BaseHTTPRequestHandler):
    """Answers with a schema that nothing fits, and remembers that it was asked."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"false")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_a_reference_to_elsewhere_is_never_fetched() -> None:
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        answering = threading.Thread(target=server.serve_forever)
        answering.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/schema.json"
            for schema in (
                {"$ref": address},
                {"$id": address, "$ref": "other.json"},
                {"$schema": address, "properties": {"a": {"$ref": f"{address}#/x"}}},
                {"$dynamicRef": address},
            ):
                check = ArgumentCheck("tool", schema, model_schema(schema))
                assert check({"a": 1}) == {"a": 1}
        finally:
            server.shutdown()
            answering.join(10)
    assert Elsewhere.asked == []


def test_drafts_differ() -> None:
    value = {"a": ["x", 1]}
    items = {"properties": {"a": {"items": [{"type": "string"}, {"type": "string"}]}}}
    seven = SchemaCheck({"$schema": "http://json-schema.org/draft-07/schema#", **items})
    assert [fault.path for fault in seven.faults(value)] == [("a", 1)]
    first = {"properties": {"a": {"prefixItems": [{}, {"type": "string"}]}}}
    assert [fault.path for fault in SchemaCheck(first).faults(value)] == [("a", 1)]


def test_an_id_does_not_move_what_references_start_from() -> None:
    schema = {
        "$id": "https://example.org/a",
        "properties": {"x": {"$id": "https://example.org/b", "$ref": "#/$defs/n"}, "$id": {}},
        "$defs": {"n": {"type": "integer"}},
    }
    assert [fault.path for fault in SchemaCheck(schema).faults({"x": "y"})] == [("x",)]


def test_patterns_are_those_of_javascript_without_the_ways_back() -> None:
    assert is_match(r"^\d{4}-\d\d$", "2026-11")
    assert not is_match(r"^\d+$", "٣")
    assert is_match(r"[\w.-]+@", "a.b@")
    assert not is_match(r"^\\d$", "3")
    assert is_match("(?<=a)b", "no")
    schema = {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    assert [fault.path for fault in SchemaCheck(schema).faults({"x-a": 1, "b": 2})] == [("x-a",)]


def doubled(keyword: str, end: dict[str, Any]) -> dict[str, Any]:
    """A small schema whose check takes 2**40 steps."""
    definitions: dict[str, Any] = {
        f"d{number}": {keyword: [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(40)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, "d40": end}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubled("allOf", {}), {}),
        (doubled("anyOf", {"type": "string"}), {}),
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 5_000 + "!"}),
        ({"patternProperties": {"^(a+)+$": False}}, {"a" * 5_000 + "!": 1}),
        ({"properties": {"a": {"pattern": r"(((\w{9}){9}){9}){9}"}}}, {"a": "a"}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n} for n in range(2_000)]}),
        ({"properties": {"a": {"items": {"enum": list(range(4_000))}}}}, {"a": ["x"] * 4_000}),
        ({"anyOf": [{"required": [f"r{number}"]} for number in range(2_000)]}, {}),
        ({"properties": {f"p{number}": {} for number in range(500_000)}}, {"p1": 1}),
        ({"properties": {"a": {"multipleOf": 1e-300}}}, {"a": 1e300}),
        ({"type": "object"}, {"a": [[]] * 1_000_000}),
    ],
    ids=str.split(
        "all any pattern names compiling unique enum branches large_schema numbers large_value"
    ),
)
def test_no_schema_makes_a_check_long(schema: dict[str, Any], value: dict[str, Any]) -> None:
    check = SchemaCheck(schema)
    check.faults({})
    started = time.process_time()
    check.faults(value)
    # A few hundredths; a check without limits takes seconds, or for ever.
    assert time.process_time() - started < 0.5


def test_faults_are_few() -> None:
    schema = {"items": {"type": "string"}}
    assert len(SchemaCheck(schema).faults([1] * 100)) == MAX_FAULTS


def test_weight_counts_no_further_than_its_limit() -> None:
    assert weight({"a": [1, 2, "x" * 1_000]}, 100) == 15
    assert weight([0] * 10_000_000, 50) == 50
