"""What models, tools and people write can be sent on, whatever is in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from web.harness.values.model import parse_arguments
from web.harness.values.text import MAX_DEPTH, amount, sayable, sayable_json

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("größer 😀", "größer 😀"),
        ("half \ud83d", "half \ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_half_characters_are_replaced_and_whole_ones_kept(text: str, said: str) -> None:
    assert sayable(text) == said


@given(anything)
def test_any_value_can_be_encoded_and_what_could_be_before_is_as_it_was(value: object) -> None:
    said = sayable_json(value)
    written = json.dumps(said, ensure_ascii=False).encode()
    try:
        same = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert written == same


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def test_arguments_that_are_nested_too_deep_are_malformed() -> None:
    assert parse_arguments(nested(MAX_DEPTH))[1] is None
    assert parse_arguments(nested(MAX_DEPTH + 1)) == ({}, nested(MAX_DEPTH + 1))


def test_half_characters_in_arguments_are_replaced() -> None:
    assert parse_arguments('{"\\ud800": ["\\udfff"]}') == ({"\ufffd": ["\ufffd"]}, None)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (4_000, "4 KB"),
        (1_200_000, "1.2 MB"),
        (100_000_000, "100 MB"),
        (1_000_000_000, "1.0 GB"),
    ],
)
def test_a_number_of_bytes_is_said_in_one_way(size: int, words: str) -> None:
    assert amount(size) == words
