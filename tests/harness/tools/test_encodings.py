"""Text in other encodings is read where it is plain which one, and left alone elsewhere."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from web.harness.tools.encodings import MAX_BYTES, decoded, utf8_copy

WESTERN = "Name;Größe;Preis\nFrançois;1,75 m;“3 €” … ça va\nÄöü;2 m;£5"


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_a_text_is_read_in_the_encoding_that_it_is_in(codec: str, encoding: str) -> None:
    assert decoded(WESTERN.encode(codec)) == (WESTERN, encoding)


@pytest.mark.parametrize("mark", [b"\xfe\xff", b"\xff\xfe"])
def test_a_mark_says_which_byte_comes_first(mark: bytes) -> None:
    codec = "utf-16-be" if mark[0] == 0xFE else "utf-16-le"
    assert decoded(mark + "Ж€".encode(codec)) == ("Ж€", "UTF-16")


@pytest.mark.parametrize(
    "data",
    [
        "Дата;Сумма;Имя\n2026;12345;Анна".encode("cp1251"),
        "Ημερομηνία;12345".encode("cp1253"),
        "名前;年齢;住所\n12;東京".encode("shift-jis"),
        "姓名;年龄;12345".encode("gbk"),
        "Größe und Höhe für Müller".encode() + b" \xff",
        b"\x8aPNG\xff\xd8\x00\x10 data",
        bytes(range(128, 256)),
        b"\xff\xfeab\0\0",
        b"\xff\xfea",
    ],
)
def test_what_may_be_something_else_is_left_alone(data: bytes) -> None:
    assert decoded(data) is None


def test_a_copy_in_utf8_is_made_of_what_needs_one(tmp_path: Path) -> None:
    for name, data in (
        ("old", WESTERN.encode("cp1252")),
        ("new", WESTERN.encode()),
        ("large", WESTERN.encode("utf-16") + b"a\0" * (MAX_BYTES // 2)),
    ):
        (tmp_path / name).write_bytes(data)
        descriptor = os.open(tmp_path / name, os.O_RDONLY)
        try:
            with utf8_copy(descriptor) as copy:
                if name != "old":
                    assert copy is None
                    continue
                assert copy is not None
                assert copy[1:] == (len(WESTERN.encode()), "Windows-1252")
                assert os.pread(copy[0], copy[1], 0).decode() == WESTERN
        finally:
            os.close(descriptor)


@pytest.mark.parametrize("data", [b"caf\xe9 okay well \n", "Größe Ж\n".encode("utf-16-le")])
def test_a_large_text_is_never_whole_in_memory(tmp_path: Path, data: bytes) -> None:
    mark = b"" if b"\xe9" in data else b"\xff\xfe"
    (tmp_path / "a").write_bytes(mark + data * 400_000)
    descriptor = os.open(tmp_path / "a", os.O_RDONLY)
    tracemalloc.start()
    try:
        with utf8_copy(descriptor) as copy:
            assert copy is not None
            assert copy[1] > 4_000_000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
        os.close(descriptor)


def test_of_a_text_that_is_shown_in_part_only_the_start_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(WESTERN.encode("utf-16") * 1000)
    (tmp_path / "b").write_bytes("ä".encode() * 1000)
    for name, found in (("a", "Nam"), ("b", None)):
        descriptor = os.open(tmp_path / name, os.O_RDONLY)
        try:
            # In the middle of a character.
            with utf8_copy(descriptor, 9) as copy:
                assert (copy and os.pread(copy[0], 99, 0).decode()) == found
        finally:
            os.close(descriptor)
