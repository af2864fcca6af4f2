"""A model's arguments meet a Python signature."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Optional

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypedDict

from web.harness.tools.registry import ToolRegistry
from web.harness.tools.signatures import read_signature, shared_signature
from web.harness.tools.tool import ToolContext
from web.harness.values.errors import ConfigurationError, ToolError

if TYPE_CHECKING:
    from decimal import Decimal

CONTEXT = ToolContext("call-1")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    title: str = "here"


class Options(TypedDict):
    depth: int
    name: NotRequired[str]


class Account(BaseModel):
    owner: str
    points: list[Point] = []
    parent: Account | None = None


def everything(
    count: int,
    mode: Literal["fast", "slow"],
    point: Point,
    options: Options,
    account: Account,
    names: list[str],
    sizes: dict[str, float],
    context: ToolContext,
    colour: Colour = Colour.RED,
    either: int | Point | None = None,
    old: Optional[str] = None,  # noqa: UP045
    *,
    share: Annotated[float, Field(ge=0, le=1, description="Part of the whole.")] = 0.5,
    words: Annotated[str, "As few as will do."] = "",
) -> dict[str, Any]:
    """Does everything.

    It takes its time.

    Args:
        count: How many,
            as a whole number.
        share: Not this one.
    """
    return {"count": count, "point": point, "context": context, "colour": colour}


def properties(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = read_signature(function, "tool").schema["properties"]
    return found


def test_the_schema_says_what_the_annotations_and_the_docstring_say() -> None:
    signature = read_signature(everything, "everything")
    shape = signature.schema["properties"]
    assert signature.description == "Does everything.\n\nIt takes its time."
    assert shape["count"] == {"type": "integer", "description": "How many, as a whole number."}
    assert shape["mode"]["enum"] == ["fast", "slow"]
    assert shape["names"] == {"type": "array", "items": {"type": "string"}}
    assert shape["sizes"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert shape["share"] == {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "default": 0.5,
        "description": "Part of the whole.",
    }
    assert shape["words"]["description"] == "As few as will do."
    assert shape["colour"]["default"] == "red"
    assert shape["old"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert "context" not in shape
    assert signature.schema["additionalProperties"] is False
    assert signature.schema["required"] == [
        "count",
        "mode",
        "point",
        "options",
        "account",
        "names",
        "sizes",
    ]


def test_titles_go_and_a_property_named_title_stays() -> None:
    schema = read_signature(everything, "everything").schema
    assert "title" not in schema
    assert schema["$defs"]["Point"]["properties"]["title"] == {"type": "string", "default": "here"}
    assert "title" not in schema["$defs"]["Point"]
    assert "title" not in schema["$defs"]["Account"]["properties"]["owner"]


def test_a_title_inside_a_default_stays() -> None:
    def tool(value: dict[str, str] = {"title": "x"}) -> None: ...  # noqa: B006

    assert properties(tool)["value"]["default"] == {"title": "x"}


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def tool() -> None: ...

    signature = read_signature(tool, "tool")
    assert signature.schema["type"] == "object"
    assert signature.schema["properties"] == {}
    assert signature.validate({}) == {}


def test_awkward_parameter_names_work() -> None:
    def tool(_hidden: int, model_dump: int, schema: int, self: int) -> int:
        return _hidden + model_dump + schema + self

    signature = read_signature(tool, "tool")
    sent = {"_hidden": 1, "model_dump": 2, "schema": 3, "self": 4}
    assert set(signature.schema["properties"]) == set(sent)
    assert signature.validate(sent) == sent
    positional, named = signature.bind(sent, CONTEXT)
    assert tool(*positional, **named) == 10


def test_positional_only_parameters_are_passed_by_place() -> None:
    def tool(a: int = 1, b: int = 2, /, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    positional, named = read_signature(tool, "tool").bind({"b": 9}, CONTEXT)
    assert tool(*positional, **named) == (1, 9, 3)


def test_methods_partials_and_callable_objects_are_read() -> None:
    class Adder:
        def method(self, value: int) -> int:
            """Adds."""
            return value

        def __call__(self, value: int) -> int:
            return value

    def scaled(value: int, factor: int) -> int:
        return value * factor

    expected = {"value": {"type": "integer"}}
    assert properties(Adder().method) == expected
    assert properties(Adder()) == expected
    assert properties(functools.partial(scaled, 3)) == {"factor": {"type": "integer"}}


def test_a_return_type_that_only_type_checkers_know_does_no_harm() -> None:
    def tool(value: int) -> Decimal:
        raise NotImplementedError

    assert properties(tool) == {"value": {"type": "integer"}}


def test_closures_of_one_def_can_share_a_signature_and_keep_their_own_values() -> None:
    def make(factor: int) -> Any:
        def tool(value: int) -> int:
            return value * factor

        return tool

    twice, thrice = make(2), make(3)
    assert shared_signature(twice, "tool") is shared_signature(thrice, "tool")
    assert shared_signature(twice, "other") is not shared_signature(twice, "tool")
    _, named = shared_signature(thrice, "tool").bind({"value": "5"}, CONTEXT)
    assert (twice(**named), thrice(**named)) == (10, 15)


def takes_args(*values: int) -> None: ...


def takes_kwargs(**values: int) -> None: ...


def takes_a_function(value: type[ToolRegistry] | ToolRegistry) -> None: ...


def takes_the_unknown(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def takes_a_field(value: int = Field(3, ge=0)) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (takes_args, "'*values: "),
        (takes_kwargs, "'**values: "),
        (takes_a_function, "no JSON form"),
        (takes_the_unknown, "Nowhere"),
        (takes_a_field, "Annotated"),
    ],
)
def test_a_signature_no_model_could_call_is_refused_with_words(function: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_signature(function, "odd")
    assert "odd" in caught.value.message
    assert words in f"{caught.value.message} {caught.value.hint}"


FITTING: dict[str, Any] = {
    "count": 3,
    "mode": "fast",
    "point": {"x": 1},
    "options": {"depth": 1},
    "account": {"owner": "me", "parent": {"owner": "you"}},
    "names": ["a"],
    "sizes": {"a": 1.5},
}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"count": "3"}, {"count": 3}),
        ({"count": 3.0}, {"count": 3}),
        ({"names": [1, 2.5]}, {"names": ["1", "2.5"]}),
        ({"names": '["a", "b"]'}, {"names": ["a", "b"]}),
        ({"point": ' {"x": "1"}'}, {"point": {"x": 1, "title": "here"}}),
        ({"share": None}, {}),
        ({"old": None}, {"old": None}),
        ({"colour": "blue"}, {"colour": "blue"}),
        ({"either": {"x": 2}}, {"either": {"x": 2, "title": "here"}}),
    ],
)
def test_slips_that_models_make_are_forgiven(sent: dict[str, Any], kept: dict[str, Any]) -> None:
    signature = read_signature(everything, "everything")
    valid = signature.validate({**FITTING, **sent})
    assert {name: valid[name] for name in sent if name in valid} == kept
    assert signature.validate(valid) == valid


def test_the_function_gets_its_own_types() -> None:
    signature = read_signature(everything, "everything")
    positional, named = signature.bind({**FITTING, "colour": "blue"}, CONTEXT)
    assert not positional
    assert named["point"] == Point(1)
    assert named["account"].parent.owner == "you"
    assert named["colour"] is Colour.BLUE
    assert named["context"] is CONTEXT
    assert "share" not in named


def test_a_secret_is_not_lost_on_the_way() -> None:
    def tool(key: SecretStr) -> str:
        return key.get_secret_value()

    signature = read_signature(tool, "tool")
    _, named = signature.bind(signature.validate({"key": "abc"}), CONTEXT)
    assert tool(**named) == "abc"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"count": "many"}, '- count: got "many"; expected a valid integer.'),
        ({"mode": "medium"}, "- mode: got \"medium\"; expected 'fast' or 'slow'."),
        ({"point": {"y": 1}}, "- point.x: missing."),
        ({"names": ["a", {}]}, "- names[1]: got {}; expected a valid string."),
        ({"share": 2}, "- share: got 2; expected less than or equal to 1."),
        ({"either": "up"}, '- either: got "up"; expected a valid integer or an object.'),
        ({"wrods": "x"}, "- \"wrods\": there is no such argument. Did you mean 'words'?"),
        ({"count": float("nan")}, "- count: got NaN"),
    ],
)
def test_a_complaint_names_the_argument_what_was_expected_and_what_was_given(
    sent: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolError) as caught:
        read_signature(everything, "everything").validate({**FITTING, **sent})
    assert words in caught.value.message
    assert "It takes: count (integer, required), mode (one of " in caught.value.message


def test_missing_arguments_are_all_named_at_once() -> None:
    with pytest.raises(ToolError) as caught:
        read_signature(everything, "everything").validate({})
    for name in FITTING:
        assert f"- {name}: missing" in caught.value.message


def test_a_complaint_stays_short_however_much_was_sent() -> None:
    sent = {f"extra{index}": "x" * 1000 for index in range(1000)}
    with pytest.raises(ToolError) as caught:
        read_signature(everything, "everything").validate(sent)
    assert len(caught.value.message) <= 2000
    assert "more" in caught.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)
ANNOTATIONS = [
    int,
    str,
    float,
    bool,
    bytes,
    Any,
    list[int],
    dict[str, int],
    Colour,
    Point,
    Options,
    Account,
    SecretStr,
    int | str | None,
    list[Point | Colour],
    tuple[int, str],
    set[int],
    Literal["a", 1],
    Annotated[str, Field(max_length=3, pattern="^a")],
]
NAMES = ["first", "second", "third", "fourth"]


@settings(max_examples=150, deadline=None)
@given(
    annotations=st.lists(st.sampled_from(ANNOTATIONS), max_size=4),
    extra=st.dictionaries(st.text(max_size=6), JSON, max_size=2),
    values=st.lists(JSON, max_size=4),
)
def test_whatever_is_sent_is_taken_or_refused_with_words(
    annotations: list[Any], extra: dict[str, Any], values: list[Any]
) -> None:
    taken: dict[str, Any] = dict(zip(NAMES, annotations, strict=False))
    source = f"def made({', '.join(taken)}): return ({', '.join([*taken, ''])})"
    scope: dict[str, Any] = {}
    exec(source, scope)  # a signature has to be made at run time to be random
    scope["made"].__annotations__ = taken
    registry = ToolRegistry()
    registry.register(name="made")(scope["made"])
    sent = {**dict(zip(NAMES, values, strict=False)), **extra}
    try:
        valid = registry.validate("made", sent)
    except ToolError as error:
        words = error.message
        valid = None
    if valid is None:
        assert 0 < len(words.encode()) < 10_000
    else:
        assert set(valid) == set(taken)
        assert repr(registry.validate("made", valid)) == repr(valid)
