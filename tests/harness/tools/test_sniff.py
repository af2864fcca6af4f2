"""What data is, is told by its bytes."""

from __future__ import annotations

import pytest

from web.harness.tools.sniff import HEAD_BYTES, TEXT, UNKNOWN, media_type_of


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\1\0\1\0", "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\n\n\n\nWAVEfmt ", "audio/wav"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"PK\3\4\x14\0", "application/zip"),
        (b"PK\5\6" + b"\0" * 18, "application/zip"),
        (b"", TEXT),
        (b"plain words", TEXT),
        ("# Übung\r\n\tmit Tab\n".encode(), TEXT),
        (b"\xef\xbb\xbfwith a mark", TEXT),
        (b'{"a": 1}', TEXT),
        (b"a < b and <b> is bold later", TEXT),
        (b"\x1b[31mred\x1b[0m", TEXT),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"\xef\xbb\xbf\n<?xml version='1.0'?><!-- x --><svg\n>", "image/svg+xml"),
        (b'<!DOCTYPE svg PUBLIC "x" "y" [<!ENTITY a "b">]><svg:svg>', "image/svg+xml"),
        (b"<!doctype html><title>x</title>", "text/html"),
        (b"  <!-- <svg> --> <!DOCTYPE\nHTML>", "text/html"),
        (b"<HTML><body>", "text/html"),
        (b"\n\n<script>alert(1)</script>", "text/html"),
        (b"<iframe src=x>", "text/html"),
        (b"<?xml version='1.0'?><rss/>", TEXT),
        (b"\0binary", UNKNOWN),
        (b"\xff\xfeU\0T\0F\0", UNKNOWN),
        (b"caf\xe9 in latin-1 words", UNKNOWN),
        (bytes(range(256)), UNKNOWN),
        (b"\x7fELF\2\1\1", UNKNOWN),
        (b"MZ\x90\0", UNKNOWN),
    ],
)
def test_a_type_is_told_by_the_first_bytes(head: bytes, media_type: str) -> None:
    assert media_type_of(head) == media_type


def test_a_character_that_the_end_of_the_head_cuts_is_no_fault() -> None:
    text = ("x" + "€" * HEAD_BYTES).encode()
    assert [media_type_of(text[: HEAD_BYTES + more]) for more in range(4)] == [TEXT] * 4
    assert media_type_of(text) == TEXT


def test_markup_that_never_ends_is_looked_at_in_no_time() -> None:
    for start in (b"<!--" * 20_000, b"<?" * 30_000, b"<!doctype [" * 6_000, b" \n" * 30_000):
        assert media_type_of(start) == TEXT
