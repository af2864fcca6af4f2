"""Lines of a text file, and an exact replacement in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from web.harness.builtin.texts import Extract, extract, lines_of, replaced
from web.harness.values.errors import ToolError


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def fill(descriptor: int, data: bytes) -> int:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@given(
    text=st.text(st.sampled_from("aü\n\r"), max_size=60),
    start=st.integers(1, 12),
    count=st.integers(1, 12),
)
def test_lines_are_the_ones_that_were_asked_for(text: str, start: int, count: int) -> None:
    descriptor = os.memfd_create("text")
    try:
        found = extract(fill(descriptor, text.encode()), start, count, 10_000)
    finally:
        os.close(descriptor)
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    lines = lines if lines[-1] else lines[:-1]
    wanted = lines[start - 1 :][:count]
    assert found == Extract("".join(wanted), start, start - 1 + len(wanted), len(lines))
    assert found.whole is (start == 1 and len(wanted) == len(lines))


@given(size=st.integers(1, 40))
def test_a_line_that_is_cut_is_still_text(size: int) -> None:
    text = "a€ü😀" * 5 + "\nb\n"
    descriptor = os.memfd_create("text")
    try:
        found = extract(fill(descriptor, text.encode()), 1, 5, size)
    finally:
        os.close(descriptor)
    assert found is not None
    assert text.startswith(found.text)
    assert size - 3 <= len(found.text.encode()) <= size
    assert (found.cut, found.last, found.total, found.whole) == (True, 1, 2, False)


def test_a_large_file_is_counted_and_not_held(opened: int) -> None:
    fill(opened, b"x" * 99 + b"\n")
    os.ftruncate(opened, 0)
    line = b"0123456789" * 10 + b"\n"
    os.pwrite(opened, line * 200_000, 0)
    found = extract(opened, 150_000, 2, 10_000)
    assert found is not None
    assert (found.text, found.total) == (line.decode() * 2, 200_000)


@pytest.mark.parametrize("data", [b"a\0b", b"a\n\0", b"\xff\n", b"a\n" * 9 + b"\0"])
def test_what_is_no_text_has_no_lines(opened: int, data: bytes) -> None:
    assert extract(fill(opened, data), 1, 2, 100) is None


def test_a_very_long_line_comes_in_pieces_of_one_number(opened: int) -> None:
    fill(opened, b"x" * 150_000 + b"\nend")
    assert [(number, len(piece)) for number, piece in lines_of(opened)] == [
        *((1, 65_536), (1, 65_536), (1, 18_929)),
        (2, 3),
    ]


def test_a_text_is_replaced_once_or_everywhere() -> None:
    assert replaced("f", "abc", "b", "B", every=False) == "aBc"
    assert replaced("f", "a b a", "a", "", every=True) == " b "
    assert replaced("f", "a\r\nb", "a\r\n", "", every=False) == "b"


@pytest.mark.parametrize(
    ("text", "old", "words"),
    [
        ("a\nb\na\n", "a", '2 times in "f", at lines 1, 3.'),
        ("aaaa", "aa", '2 times in "f", at lines 1, 1.'),
        ("a\nb\n" * 3, "a\nb", '3 times in "f", at lines 1, 3, 5.'),
        ("x\n" * 50, "x", '50 times in "f", at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more.'),
        ("one\n  two  three\n", "two three", "But for white space it is at line 2"),
        ("if x:\n\ty()\n", "if x:\n    y()", "But for white space it is at line 1"),
        ("if x:\n  z()\n", "if x:\n  y()", "first line is at line 1, but goes on"),
        ("a\r\nb\r\n", "a\nb", "carriage return and line feed"),
        ("a", "zzz", "Read the file"),
        ("a", "", "is empty"),
        ("new", "new", "nothing would change"),
    ],
)
def test_an_unclear_replacement_is_refused_and_says_where(text: str, old: str, words: str) -> None:
    with pytest.raises(ToolError) as caught:
        replaced("f", text, old, "new", every=False)
    assert words in caught.value.message
