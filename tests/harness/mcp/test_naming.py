"""Whatever a server calls its tools, models get a legal name for each, and always the same one."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, strategies as st

from web.harness.mcp.naming import MAX_NAME_CHARS, tool_name
from web.harness.mcp.wording import tidy

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


def test_a_plain_name_is_the_server_and_the_tool() -> None:
    assert tool_name("time", "get_current_time") == "time__get_current_time"
    assert tool_name("everything", "get-sum") == "everything__get-sum"


@pytest.mark.parametrize(
    ("server", "tool", "start"),
    [
        ("my server", "tool", "my_server__tool_"),
        ("zürich", "Straße öffnen", "zurich__Stra_e_offnen_"),
        ("files", "read/file", "files__read_file_"),
        ("", "", "server__tool_"),
        ("日本", "天気", "server__tool_"),
        ("s" * 100, "t" * 200, "s" * 24 + "__" + "t" * 20),
        ("a_", "b", "a__b_"),
        ("a__b", "c", "a_b__c_"),
    ],
)
def test_a_name_that_loses_something_stays_readable_and_has_a_digest(
    server: str, tool: str, start: str
) -> None:
    name = tool_name(server, tool)
    assert LEGAL.fullmatch(name)
    assert name.startswith(start)
    assert re.search(r"_[0-9a-f]{8}$", name)
    assert name == tool_name(server, tool)


def test_tools_that_are_alike_after_cleaning_have_different_names() -> None:
    pairs = [("a", "x y"), ("a", "x_y"), ("a", "x/y"), ("a", "x.y"), ("a b", "x_y")]
    pairs += [("a__b", "c"), ("a", "b__c"), ("a_", "b"), ("a", "_b"), ("a", "x_" + "0" * 8)]
    names = [tool_name(*pair) for pair in pairs]
    assert len(set(names)) == len(pairs)


def test_no_tool_gets_the_name_of_another_by_being_called_so() -> None:
    name = tool_name("a", "x y")
    copy = name.removeprefix("a__")
    assert tool_name("a", copy) != name


def test_a_name_that_is_taken_is_not_given_again() -> None:
    taken: set[str] = set()
    for _ in range(5):
        name = tool_name("a", "read", taken)
        assert LEGAL.fullmatch(name)
        assert name not in taken
        taken.add(name)


@given(
    st.lists(st.tuples(st.text(max_size=80), st.text(max_size=250)), unique=True, max_size=30),
)
def test_any_names_become_legal_and_different(pairs: list[tuple[str, str]]) -> None:
    names = [tool_name(server, tool) for server, tool in pairs]
    assert all(LEGAL.fullmatch(name) for name in names)
    assert max(map(len, names), default=0) <= MAX_NAME_CHARS
    assert len(set(names)) == len(pairs)


def test_short_names_of_few_characters_never_meet() -> None:
    words = ["".join(word) for size in range(4) for word in itertools.product("a_!", repeat=size)]
    pairs = list(itertools.product(words, repeat=2))
    assert len({tool_name(*pair) for pair in pairs}) == len(pairs)


def test_what_cannot_be_seen_is_taken_out_of_words() -> None:
    hidden = "a\u200bb\u202ec\U000e0041\ufe0f\x1b[31m\u3164\x00d\ue000\u0378"
    assert tidy(hidden, 100) == "abc[31md"
    assert tidy("one\r\ntwo\u2028three\ttab", 100) == "one\ntwo\nthree\ttab"
    assert tidy(" one\n two ", 100, one_line=True) == "one two"
    assert tidy("é日本 😀", 100) == "é日本 😀"
    assert tidy("x" * 50, 10) == "x" * 9 + "…"
    assert tidy("half \ud83d", 10) == "half \ufffd"
    assert tidy(None, 10) == tidy(5, 10) == ""
