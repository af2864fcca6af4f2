"""JSON that comes back as it went, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from web.harness.values.json_form import (
    MAX_TEXTS,
    Fields,
    JsonRefused,
    NotSerialisable,
    canonical,
    fits,
    json_copy,
    json_text,
    parse_json,
    writable,
)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "metadata.when is a datetime"),
        ({"a": [1, {2}]}, r"metadata.a\[1\] is a set"),
        ({1: "x"}, "metadata has the key 1"),
        ({"a": float("inf")}, "metadata.a is inf"),
        ({"a": ("x",)}, "metadata.a is a tuple"),
        ({"a": 10**5000}, "too large"),
        ({"a": lambda: None}, "a function"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_place(value: Any, said: str) -> None:
    with pytest.raises(NotSerialisable, match=said):
        json_copy(value, "metadata")


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotSerialisable, match="nested more than 100 deep"):
        json_copy(endless, "metadata")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "ends too early"),
        (b'{"a": 1', "ends too early"),
        (b'{"a": "x', "ends too early"),
        (b'{"a": 1}}', "not JSON"),
        (b'{"a" 1}', "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 1, "a": 2}', "a key stands twice"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "nested"),
        (b"[" * 2_000_001, "more values"),
        (b"1" * 5000, "too many"),
    ],
)
def test_text_that_is_no_whole_json_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(JsonRefused, match=said):
        parse_json(raw)


def test_half_of_a_character_is_never_written_and_never_read() -> None:
    assert json_text(writable({"a": ["\ud800x"]})) == '{"a":["\ufffdx"]}'
    assert parse_json(b'["\\ud800x", "\\ud83d\\ude00"]') == ["\ufffdx", "\U0001f600"]


def test_the_canonical_text_knows_no_order_of_keys() -> None:
    assert canonical({"b": 1, "a": [{"d": 1.5, "c": "é"}]}) == canonical(
        {"a": [{"c": "é", "d": 1.5}], "b": 1}
    )


def test_fields_say_what_is_wrong_without_showing_all_of_it() -> None:
    fields = Fields({"text": 1, "long": "x" * 1000, "sure": "yes", "n": -1, "cost": True}, "usage")
    for take, said in [
        (lambda: fields.text("text"), "usage.text is the number 1 and has to be a text"),
        (lambda: fields.whole("long"), "usage.long is a long text and has to be a whole number"),
        (lambda: fields.flag("sure"), "usage.sure is the text 'yes' and has to be true or false"),
        (lambda: fields.whole("n"), "usage.n is the number -1"),
        (lambda: fields.number_or_none("cost"), "usage.cost is true"),
        (lambda: fields.items("none"), "usage.none is missing"),
    ]:
        with pytest.raises(JsonRefused, match=said):
            take()  # type: ignore[no-untyped-call]


def test_a_list_of_very_many_texts_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(JsonRefused, match="more values than are read"):
        parse_json(b'["' + b'a","' * (MAX_TEXTS + 1) + b'"]')
    assert parse_json(b'["' + b"a," * 100 + b'"]') == ["a," * 100]


def test_what_fits_is_told_without_writing_it() -> None:
    assert fits({"a": ["b", 1, None, 1.5, {"c": "d"}]}, 60)
    assert not fits(["a" * 100], 60)
    assert not fits({"a" * 100: 1}, 60)
    assert not fits([0] * 100, 60)
    assert not fits(10**1000, 60)


@pytest.mark.parametrize("number", ["1" * 100_000, "1" * 100_000 + ".0"])
def test_a_number_of_very_many_digits_is_refused_in_a_short_sentence(number: str) -> None:
    with pytest.raises(JsonRefused, match=r"digits, which is too many|is too large") as refused:
        parse_json(f'{{"a": {number}}}'.encode())
    assert len(refused.value.message) < 120
    assert "sys." not in refused.value.message
