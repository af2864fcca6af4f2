"""A schema becomes fields; what a person types is read and checked, and faults are said."""

from __future__ import annotations

import time
from typing import Any

import pytest

from web.harness.tools.form_fields import Field
from web.harness.tools.forms import (
    MAX_FIELDS,
    FormRefused,
    check_content,
    faults_of,
    read_form,
    read_typed,
)

ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 1, "maxLength": 5},
        "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "toppings": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 2},
        "agree": {"type": "boolean"},
    },
    "required": ["name", "size"],
}


def one(schema: dict[str, Any], *, required: bool = False) -> Field:
    names = ["field"] if required else []
    (field,) = read_form({"type": "object", "properties": {"field": schema}, "required": names})
    return field


def typed_into(schema: dict[str, Any], *texts: str, required: bool = False) -> object:
    """The value of one field, or its fault; None where there is none."""
    content, faults = read_typed((one(schema, required=required),), {"field": texts})
    return faults.get("field") or content.get("field")


def test_fields_come_in_order_with_what_the_schema_says_of_them() -> None:
    fields = read_form(ORDER)
    assert [(field.name, field.kind, field.required) for field in fields] == [
        ("name", "text", True),
        ("count", "integer", False),
        ("share", "number", False),
        ("size", "choice", True),
        ("toppings", "choices", False),
        ("agree", "boolean", False),
    ]
    assert [field.title for field in fields][:2] == ["Your name", "count"]
    assert [option.title for option in fields[3].options] == ["Small", "Large"]
    assert [field.hint for field in fields[:5]] == [
        "At most 5 characters.",
        "A whole number. From 1 to 10.",
        "A number. Above 0 and at most 1.",
        "",
        "At most 2 choices.",
    ]


def test_what_was_typed_becomes_values_of_the_right_types() -> None:
    content, faults = read_typed(
        read_form(ORDER),
        {
            "name": ["Ada"],
            "count": [" 3 "],
            "share": ["5e-1"],
            "size": ["1"],
            "toppings": ["0", "2"],
            "agree": ["on"],
        },
    )
    assert faults == {}
    assert content == {
        "name": "Ada",
        "count": 3,
        "share": 0.5,
        "size": "l",
        "toppings": ["a", "c"],
        "agree": True,
    }
    assert isinstance(content["count"], int)


def test_each_field_that_does_not_fit_says_why() -> None:
    content, faults = read_typed(
        read_form(ORDER),
        {"name": ["Adaline"], "count": ["2.5"], "share": ["0"], "toppings": ["0", "1", "2"]},
    )
    assert content["name"] == "Adaline"
    assert faults == {
        "name": "At most 5 characters. There are 7.",
        "count": "It has to be a whole number.",
        "share": "It is out of range. Above 0 and at most 1.",
        "size": "This is needed.",
        "toppings": "At most 2 choices. There are 3.",
    }


def test_an_empty_optional_field_is_left_out() -> None:
    content, faults = read_typed(
        read_form(ORDER), {"name": ["A"], "size": ["0"], "count": [""], "share": [" "]}
    )
    assert (content, faults) == ({"name": "A", "size": "s", "agree": False}, {})


def test_a_default_that_was_emptied_does_not_come_back() -> None:
    assert typed_into({"type": "string", "default": "x"}, "") == ""
    content, _ = read_typed(
        (one({"type": "array", "items": {"enum": ["a"]}, "default": ["a"]}),), {}
    )
    assert content == {"field": []}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "string", "default": "x"}, ["x"]),
        ({"type": "integer", "default": 0}, ["0"]),
        ({"type": "number", "default": 1.5}, ["1.5"]),
        ({"type": "boolean", "default": True}, ["on"]),
        ({"type": "boolean", "default": False}, []),
        ({"enum": ["a", "b"], "default": "b"}, ["1"]),
        ({"enum": [1, True], "default": True}, ["1"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b", "?"]}, ["1"]),
        ({"type": "object", "default": {"a": 1}}, ['{\n  "a": 1\n}']),
        ({"type": "string", "default": 7}, []),
        (
            {"type": "string", "format": "date-time", "default": "2026-01-31T10:00:00+02:00"},
            ["2026-01-31T08:00:00"],
        ),
    ],
)
def test_a_default_stands_in_its_field_and_is_read_back(
    schema: dict[str, Any], shown: list[str]
) -> None:
    field = one(schema)
    assert field.typed_default == shown
    if shown:
        there, value = field.read(shown)
        assert there
        assert faults_of((field,), {"field": value}) == {}
        assert field.format or field.kind == "choices" or value == schema["default"]


@pytest.mark.parametrize(
    ("format", "right", "wrong"),
    [
        ("email", "a@b.example", "a@"),
        ("uri", "https://example.org/a?b", "example.org"),
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-01-31T09:30:00Z", "yesterday"),
    ],
)
def test_formats_are_checked(format: str, right: str, wrong: str) -> None:
    schema = {"type": "string", "format": format}
    assert typed_into(schema, right) == right
    assert str(typed_into(schema, wrong)).startswith("It has to be a")


def test_a_time_without_a_zone_as_browsers_send_it_is_utc() -> None:
    schema = {"type": "string", "format": "date-time"}
    assert typed_into(schema, "2026-01-31T09:30") == "2026-01-31T09:30:00Z"


def test_patterns_are_looked_for_and_cost_little() -> None:
    schema = {"type": "string", "pattern": "^[a-z]+$"}
    assert typed_into(schema, "abc") == "abc"
    assert str(typed_into(schema, "ABC")).startswith("It does not match")
    began = time.process_time()
    typed_into({"type": "string", "pattern": "^(a+)+$"}, "a" * 50_000 + "!")
    assert time.process_time() - began < 1
    # One that the engine does not have is left to the server.
    assert typed_into({"type": "string", "pattern": "(?=a)b"}, "x") == "x"


@pytest.mark.parametrize(
    "text", ["", "x", "1,5", "NaN", "Infinity", "1e999", "9" * 400, "0x1", "1_0", "\u0661"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    fault = typed_into({"type": "number"}, text, required=True)
    assert fault in ("It has to be a number.", "This is needed.")


def test_titles_of_choices_come_from_either_way_of_giving_them() -> None:
    for schema in (
        {"type": "string", "enum": ["a"], "enumNames": ["First"]},
        {"type": "string", "oneOf": [{"const": "a", "title": "First"}]},
        {"anyOf": [{"const": "a", "title": "First"}]},
    ):
        (option,) = one(schema).options
        assert (option.value, option.title) == ("a", "First")
    (option,) = one({"type": "array", "items": {"anyOf": [{"const": "a"}]}}).options
    assert option.title == "a"


@pytest.mark.parametrize("typed", ["2", "-1", "a", "²", "99999999999"])
def test_a_choice_that_is_not_offered_is_refused(typed: str) -> None:
    assert typed_into({"enum": ["a", "b"]}, typed) == "It is none of the choices."


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}},
        {"type": "string", "contentEncoding": "base64"},
        {"$ref": "#/$defs/other"},
        {"type": "array", "items": {"type": "string"}},
        {"enum": []},
        {},
        True,
        "nonsense",
    ],
)
def test_what_is_not_understood_is_filled_in_as_json(schema: Any) -> None:
    assert one(schema).kind == "json"
    assert typed_into(schema, '{"a": [1]}') == {"a": [1]}
    assert typed_into(schema, "{") == "It is not JSON."
    assert typed_into(schema, "NaN") == "It is not JSON."
    assert typed_into(schema, "[" * 100_000) == "It is not JSON."


def test_a_field_that_may_be_null_is_the_field_that_it_may_be_else() -> None:
    schema = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None}
    field = one({**schema, "title": "How many"})
    assert (field.kind, field.low, field.title, field.typed_default) == (
        "integer",
        1,
        "How many",
        [],
    )
    assert one({"type": ["string", "null"]}).kind == "text"


@pytest.mark.parametrize(
    ("name", "title", "smells"),
    [
        ("password", "", True),
        ("apiKey", "", True),
        ("access_token", "", True),
        ("x", "Your secret", True),
        ("db-pass-phrase", "", True),
        ("x", "Kennwort", True),
        ("monkey", "Keyboard", False),
        ("name", "Your name", False),
        ("tokenizer", "", False),
    ],
)
def test_a_field_that_smells_of_a_secret_is_told(name: str, title: str, smells: bool) -> None:
    schema = {"properties": {name: {"type": "string", "title": title}}}
    assert [field.smells_secret for field in read_form(schema)] == [smells]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ({"name": 5, "size": "s"}, "name"),
        ({"name": "A", "size": "s", "count": True}, "count"),
        ({"name": "A", "size": "s", "count": 1e400}, "count"),
        ({"name": "A", "size": "s", "toppings": "a"}, "toppings"),
        ({"name": "A", "size": "s", "toppings": ["z"]}, "toppings"),
        ({"name": "A", "size": "s", "agree": "yes"}, "agree"),
        ({"name": "A", "size": "s", "other": 1}, "other"),
        ({"size": "s"}, "name"),
    ],
)
def test_content_of_a_program_is_checked_as_that_of_a_page(
    content: dict[str, Any], name: str
) -> None:
    assert list(faults_of(read_form(ORDER), content)) == [name]
    with pytest.raises(FormRefused, match=name) as refused:
        check_content(read_form(ORDER), content)
    assert refused.value.code == "invalid_arguments"
    assert list(refused.value.faults) == [name]


@pytest.mark.parametrize(
    "schema", [None, {}, {"properties": []}, {"properties": {"a": 1}, "required": "a"}, 5]
)
def test_a_schema_that_makes_no_sense_makes_no_trouble(schema: object) -> None:
    assert len(read_form(schema)) <= 1


def test_a_form_without_end_is_cut() -> None:
    many = {"properties": {f"f{number}": {"type": "string"} for number in range(1_000)}}
    assert len(read_form(many)) == MAX_FIELDS


def test_a_limit_that_nobody_types_up_to_is_told_when_it_is_passed() -> None:
    [field] = read_form({"properties": {"text": {"type": "string", "maxLength": 200_000}}})
    assert field.multiline
    assert field.hint == ""
    assert "200000" in field.fault("x" * 200_001)
