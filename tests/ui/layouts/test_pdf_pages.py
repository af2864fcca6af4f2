"""A PDF is shown page by page, as pictures with their words; a bad one is told in words."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import pytest

from tests.support.opened import opened
from tests.support.pdfs import pdf
from web.harness.tools.pictures import pixel_size
from web.ui.layouts.layouts import Laid
from web.ui.layouts.pdf_pages import MAX_CHARS, MAX_PIXELS, MAX_PNG_BYTES, WIDTH, pdf_page

LINE = b"(" + b"some words on a long line " * 4 + b") Tj T* "


def laid(path: Path, data: bytes, page: int = 1) -> Laid:
    with opened(path / "a.pdf", data, "application/pdf") as file:
        return pdf_page(file, page)


def first_rows(png: bytes) -> tuple[bytes, int]:
    """The bytes of all rows, and how many there are to one."""
    width, _ = struct.unpack(">II", png[16:24])
    size, kind = struct.unpack(">I4s", png[33:41])
    assert kind == b"IDAT"
    return zlib.decompress(png[41 : 41 + size]), 1 + 3 * width


def test_each_page_is_drawn_and_read(tmp_path: Path) -> None:
    data = pdf("First page\nof two", b"1 0 0 rg 0 0 612 792 re f")
    one = laid(tmp_path, data)
    assert one.facts == {
        "page": 1, "pages": 2, "width": WIDTH, "height": 1553,
        "words": "First page\nof two", "more": False,
    }  # fmt: skip
    assert pixel_size(base64.b64decode(one.text)) == (WIDTH, 1553)
    two = laid(tmp_path, data, 9)
    assert (two.facts["page"], two.facts["words"]) == (2, "")
    rows, size = first_rows(base64.b64decode(two.text))
    # Red, in this order of colours, and to the end of the row.
    assert rows[:7] == b"\0\xff\0\0\xff\0\0"
    assert rows[size - 3 : size + 4] == b"\xff\0\0\0\xff\0\0"
    assert len(rows) == size * 1553


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"%PDF-1.4 and nothing", "broken"),
        (pdf(), "broken"),
        (pdf("x", trailer=b"/Encrypt<</Filter/Standard/V 1/R 2/O(" + b"o" * 32 + b")/U("
             + b"u" * 32 + b")/P -4>>/ID[(a)(a)]"), "locked with a password"),
        (pdf("x").replace(b"/Type/Page/", b"/Type/Nope/").replace(b"/MediaBox", b"/Mediabox")
             .replace(b"4 0 obj", b"4 0 abc"), "broken"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_told(data: bytes, words: str, tmp_path: Path) -> None:
    assert words in laid(tmp_path, data).facts["fault"]


def test_a_pdf_without_pages_is_not_taken_for_locked_after_one_that_is(tmp_path: Path) -> None:
    locked = pdf("x", trailer=b"/Encrypt<</Filter/Standard/V 1/R 2/O(" + b"o" * 32 + b")/U("
                 + b"u" * 32 + b")/P -4>>/ID[(a)(a)]")  # fmt: skip
    assert "locked" in laid(tmp_path, locked).facts["fault"]
    assert "broken" in laid(tmp_path, pdf()).facts["fault"]


@pytest.mark.parametrize("size", [(20_000, 20_000), (1, 14_000), (14_000, 1), (0.5, 0.5)])
def test_pictures_have_a_limit_whatever_a_page_says_to_be(
    size: tuple[float, float], tmp_path: Path
) -> None:
    made = laid(tmp_path, pdf("x", size=size))
    assert 0 < made.facts["width"] * made.facts["height"] <= MAX_PIXELS * 1.01
    assert len(base64.b64decode(made.text)) <= MAX_PNG_BYTES


def test_long_words_are_cut(tmp_path: Path) -> None:
    made = laid(tmp_path, pdf(b"BT /F1 1 Tf 9 780 Td 1 TL " + LINE * 700 + b"ET"))
    assert made.facts["more"]
    assert len(made.facts["words"]) == MAX_CHARS
