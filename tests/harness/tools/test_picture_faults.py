"""A picture that is not all there is known by how its format is put together."""

from __future__ import annotations

import struct
import time

import pytest

from tests.support.pictures import png
from web.harness.tools.picture_faults import BROKEN, CUT, picture_fault

TABLE = struct.pack("<HHBBB", 2, 2, 0x80, 0, 0) + bytes(6)
FRAME = b"," + struct.pack("<HHHHB", 0, 0, 2, 2, 0) + b"\x02\x03abc\x01d\0"
GIF = b"GIF89a" + TABLE + b"!\xfe\x02;;\0" + FRAME + FRAME + b";"

SMALL = b"\xff\xd8\xff\xda\0\x02ab\xff\xd9"
EXIF = b"\xff\xe1" + struct.pack(">H", len(SMALL) + 2) + SMALL
HEAD = b"\xff\xc0\0\x0b\x08\0\2\0\2\1\1\x11\0"
JPEG = b"\xff\xd8" + EXIF + HEAD + b"\xff\xda\0\x02ab\xff\0cd\xff\xda\0\x02ef\xff\xd9"

WEBP = b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8 " + struct.pack("<I", 10) + bytes(10)


@pytest.mark.parametrize("whole", [png(3, 2), png(3, 2, 900), GIF, JPEG, WEBP])
def test_a_cut_one_is_told_from_a_whole_one_at_every_place(whole: bytes) -> None:
    assert picture_fault(whole) == ""
    assert picture_fault(whole + b"more of it") == ""
    for length in range(12, len(whole)):
        assert picture_fault(whole[:length]) == CUT, length


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(30),
        png(3, 2).replace(b"IDAT", b"fiLl"),
        b"GIF89a" + TABLE + b"no block",
        JPEG.replace(HEAD, b"none"),
    ],
)
def test_one_that_holds_something_else_is_broken(data: bytes) -> None:
    assert picture_fault(data) == BROKEN


def test_what_is_no_picture_has_no_fault() -> None:
    assert picture_fault(b"") == picture_fault(b"%PDF-1.7") == ""


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + b"\0\0\0\0aaaa\0\0\0\0" * 500_000,
        b"\xff\xd8" + b"\xff" * 5_000_000,
        b"\xff\xd8" + b"\xff\xe0\0\2" * 1_000_000,
        b"GIF89a" + TABLE + b"!\xfe\1a\0" * 1_000_000,
        b"GIF89a" + TABLE + b"!\xfe" + b"\1a" * 3_000_000,
    ],
    ids=["chunks", "filled", "segments", "blocks", "pieces"],
)
def test_a_look_takes_no_time_whatever_the_bytes(data: bytes) -> None:
    begun = time.thread_time()
    picture_fault(data)
    assert time.thread_time() - begun < 0.5
