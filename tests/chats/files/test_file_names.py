"""Names of files that a person brings in are made legal, and free."""

from __future__ import annotations

from itertools import islice

import pytest

from web.chats.files.file_names import free_names, legal_name
from web.harness.builtin.paths import MAX_NAME_BYTES, parse_path


@pytest.mark.parametrize(
    ("given", "legal"),
    [
        ("notes.md", "notes.md"),
        ("my plan #1 100%.png", "my plan #1 100%.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\Ada\\a.txt", "a.txt"),
        ("two\nlines.png", "two lines.png"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("שלום עולם.txt", "שלום עולם.txt"),
        ("a:b.txt", "a-b.txt"),
        ("a\u2215b\u2044c.txt", "a\u2215b\u2044c.txt"),
        ("half \ud83d.txt", "half.txt"),
        (" spaces . ", "spaces"),
        ("con.txt", "file-con.txt"),
        (".harness", "file-.harness"),
        (".~harness-x", "file-.~harness-x"),
        ("..", "file"),
        ("", "file"),
        ("\u200b", "file"),
        ("dir/", "file"),
    ],
)
def test_a_name_that_is_refused_is_made_legal(given: str, legal: str) -> None:
    assert legal_name(given) == legal


@pytest.mark.parametrize("character", ["a", "ü", "\N{CJK UNIFIED IDEOGRAPH-4E00}", "😀"])
def test_a_long_name_is_cut_and_keeps_its_ending(character: str) -> None:
    name = legal_name(character * 1_000 + ".jpeg")
    assert name.endswith(f"{character}.jpeg")
    assert parse_path(name) == (name,)
    numbered = list(islice(free_names(name, [name]), 200))[-1]
    assert parse_path(numbered) == (numbered,)
    assert len(numbered.encode()) <= MAX_NAME_BYTES


def test_every_name_that_comes_out_is_one_that_a_file_can_have() -> None:
    for number in range(0x3000):
        character = chr(number)
        for given in (character, f"a{character}b.txt", f"{character}.txt", f"a.{character}"):
            name = legal_name(given)
            assert parse_path(name) == (name,), (number, given)


def test_a_taken_name_gets_a_number_before_its_ending() -> None:
    assert list(islice(free_names("a.txt", ["a.txt", "a-2.txt"]), 2)) == ["a-3.txt", "a-4.txt"]
    assert next(free_names("a", [])) == "a"
    assert next(free_names("archive.tar.gz", ["archive.tar.gz"])) == "archive.tar-2.gz"


def test_a_name_is_taken_where_some_disk_would_think_so() -> None:
    assert next(free_names("README", ["readme"])) == "README-2"
    assert next(free_names("notes", ["Notes/plan.md"])) == "notes-2"
    assert next(free_names("e\u0301.txt", ["\u00e9.txt"])) == "e\u0301-2.txt"
