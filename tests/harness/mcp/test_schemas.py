"""Whatever schema a server sends, models get an object that every API takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from jsonschema import Draft202012Validator

from web.harness.mcp.schemas import MAX_SCHEMA_CHARS, ModelSchema, model_schema

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def shown(original: object) -> dict[str, Any]:
    """What a model is shown, after a look at what every API asks for."""
    model = model_schema(original)
    sound(model)
    return model.schema


def sound(model: ModelSchema) -> None:
    schema = model.schema
    assert schema["type"] == "object"
    assert isinstance(schema["properties"], dict)
    assert not {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"} & schema.keys()
    assert set(schema.get("required", ())) <= schema["properties"].keys()
    text = json.dumps(schema, allow_nan=False)
    assert len(text) <= MAX_SCHEMA_CHARS
    assert '"$ref"' not in text
    text.encode()
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "original",
    [None, True, False, [], "x", {}, {"type": "array"}, {"$ref": "#"}, {"properties": None}],
)
def test_what_is_no_object_becomes_one_of_anything(original: object) -> None:
    assert shown(original) == NOTHING


def test_a_plain_schema_stays_as_it_is() -> None:
    plain = {
        "type": "object",
        "properties": {
            "city": {
                "type": "string",
                "description": "Where.",
                "minLength": 1,
                "pattern": "^[A-Z]",
            },
            "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 14, "default": 3},
            "unit": {"enum": ["C", "F"]},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert shown(plain) == plain
    assert model_schema(plain).note == ""


def test_local_references_are_written_out_and_others_never_fetched() -> None:
    schema = shown(
        {
            "$ref": "#/$defs/In",
            "$defs": {
                "In": {
                    "properties": {
                        "a": {"$ref": "#/definitions/A~1b", "description": "Said here."},
                        "far": {"$ref": "http://127.0.0.1:9/x.json", "description": "Far."},
                        "gone": {"$ref": "#/$defs/nowhere"},
                        "named": {"$ref": "#anchor"},
                        "in_a_list": {"$ref": "#/prefixItems/1"},
                    }
                }
            },
            "definitions": {"A/b": {"type": "integer", "description": "Said there."}},
            "prefixItems": [{}, {"type": "null"}],
        }
    )
    assert schema["properties"] == {
        "a": {"type": "integer", "description": "Said here."},
        "far": {"description": "Far."},
        "gone": {},
        "named": {},
        "in_a_list": {"type": "null"},
    }


def test_a_schema_that_refers_to_itself_is_cut() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    schema = shown({"properties": {"list": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    inner = schema["properties"]["list"]["properties"]["next"]
    assert inner == {"type": "object", "properties": {"next": {"type": "object"}}}


def test_unions_at_the_top_become_one_object_and_a_note() -> None:
    model = model_schema(
        {
            "anyOf": [
                {"properties": {"id": {"type": "integer"}, "all": {}}, "required": ["id", "all"]},
                {"properties": {"id": {"type": "string"}, "name": {}}, "required": ["name", "all"]},
                {"type": "null"},
            ]
        }
    )
    sound(model)
    assert model.schema["properties"]["id"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert model.schema["properties"].keys() == {"id", "all", "name"}
    assert model.schema["required"] == ["all"]
    assert model.note == "Needs one of these sets of arguments: id, all | name, all."


def test_all_branches_of_all_of_hold_together() -> None:
    schema = shown(
        {
            "allOf": [
                {"properties": {"a": {}}, "required": ["a"]},
                {"allOf": [{"properties": {"b": {}}, "required": ["b", "c"]}]},
            ],
            "properties": {"d": {}},
            "additionalProperties": False,
        }
    )
    assert schema == {
        "type": "object",
        "properties": {"d": {}, "a": {}, "b": {}, "c": {}},
        "required": ["a", "b", "c"],
    }


def test_older_drafts_and_nonsense_are_put_right() -> None:
    schema = shown(
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://example.org/x",
            "properties": {
                "pair": {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
                "list": {"type": "array"},
                "below": {"minimum": 1, "exclusiveMinimum": True},
                "odd": {"type": "any", "pattern": "(", "enum": [], "maximum": "9", "x-own": 1},
                "nan": {"default": float("nan"), "const": "\ud800"},
                "never": False,
                "ever": True,
                "type": {"type": "string"},
                "hidden": {"description": "see\u200b\u202e me"},
                "inner": {"properties": {"x": {}}, "required": ["x", 3, "x"]},
            },
            "required": "list",
            "dependencies": {"pair": ["list"]},
            "if": {},
        }
    )
    assert schema == {
        "type": "object",
        "properties": {
            "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
            "list": {"type": "array", "items": {}},
            "below": {"minimum": 1},
            "odd": {},
            "nan": {"const": "\ufffd"},
            "ever": {},
            "type": {"type": "string"},
            "hidden": {"description": "see me"},
            "inner": {"type": "object", "properties": {"x": {}}, "required": ["x"]},
        },
    }


def test_arguments_whose_names_models_do_not_take_get_others() -> None:
    model = model_schema(
        {
            "properties": {"größe": {}, "gr_e": {}, "x" * 90: {}, "日本": {}, "a.b-c": {}},
            "required": ["größe", "gr_e"],
        }
    )
    sound(model)
    assert list(model.schema["properties"]) == ["gr_e_2", "gr_e", "x" * 60, "argument", "a.b-c"]
    assert model.schema["required"] == ["gr_e_2", "gr_e"]
    assert model.renamed == {"gr_e_2": "größe", "x" * 60: "x" * 90, "argument": "日本"}


def test_a_large_schema_has_less_in_it_and_a_huge_one_only_names() -> None:
    long = {f"p{number}": {"type": "string", "description": "d" * 900} for number in range(40)}
    less = shown({"properties": long})
    assert less["properties"].keys() == long.keys()
    assert all(len(inner["description"]) <= 200 for inner in less["properties"].values())
    model = model_schema({"properties": {f"p{number}": {} for number in range(50_000)}})
    assert model.schema == NOTHING
    assert model.note.startswith("The schema of its arguments is too large to be shown.")
    assert "p0, p1, p2" in model.note


def test_references_that_multiply_are_cut() -> None:
    many = {
        f"d{level}": {
            "properties": {f"p{number}": {"$ref": f"#/$defs/d{level + 1}"} for number in range(9)}
        }
        for level in range(40)
    }
    assert len(shown({"$ref": "#/$defs/d0", "$defs": many})["properties"]) == 9


def test_deep_nesting_is_cut() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(900):
        deep = {"properties": {"x": deep}}
    assert shown(deep)["properties"].keys() == {"x"}


KEYWORDS = st.sampled_from(
    str.split(
        "type properties required items prefixItems anyOf oneOf allOf not $ref enum const default "
        "description pattern minimum maxLength additionalProperties $defs format title if $id"
    )
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["#", "#/$defs/a", "#/properties/a", "object", "array", "string", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYWORDS | st.sampled_from(["a", "b", "ü"]), inner, max_size=5)
    ),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYWORDS, VALUES, max_size=6))
@example({"type": "object", "additionalProperties": {"maxLength": -1, "multipleOf": 0}})
def test_any_schema_becomes_one_that_is_taken(original: dict[str, Any]) -> None:
    sound(model_schema(original))
