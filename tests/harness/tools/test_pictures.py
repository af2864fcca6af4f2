"""What a picture is, and how large, is read of its first bytes."""

from __future__ import annotations

import hashlib
import struct
import time

import pytest

from tests.support.pictures import png
from web.harness.tools.pictures import image_block, is_too_large, pixel_size
from web.harness.tools.sniff import HEAD_BYTES, media_type_of

JPEG_START = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xfe\0\x03c"


def jpeg(width: int, height: int, marker: int = 0xC0) -> bytes:
    frame = struct.pack(">HBHHB", 11, 8, height, width, 1)
    return JPEG_START + bytes([0xFF, marker]) + frame + b"\x01\x11\0"


def gif(width: int, height: int, first: tuple[int, int]) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    comment = b"!\xfe\x02ab\x01c\0"
    return head + comment + b"," + struct.pack("<HHHHB", 0, 0, *first, 0)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (png(70_000, 3), (70_000, 3)),
        (jpeg(640, 480), (640, 480)),
        (jpeg(640, 480, 0xC2), (640, 480)),
        (gif(30, 20, (10, 10)), (30, 20)),
        (gif(1, 1, (60_000, 50_000)), (60_000, 50_000)),
        (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 300, 0x4000 | 200)), (300, 200)),
        (webp(b"VP8L", b"\x2f" + struct.pack("<I", 299 | 199 << 14)), (300, 200)),
        (webp(b"VP8X", bytes(4) + b"\xff\xff\0" + b"\xff\0\0"), (65_536, 256)),
        (JPEG_START, None),
        (b"\xff\xd8" + b"\xff\xe0\0\0" * 5_000, None),
        (b"\xff\xd8" + b"\xff" * 9 + JPEG_START[2:] + jpeg(5, 6)[len(JPEG_START) :], (5, 6)),
        (b"no picture", None),
        (b"", None),
    ],
)
def test_the_size_is_read_of_the_first_bytes(data: bytes, size: tuple[int, int] | None) -> None:
    assert pixel_size(data) == size


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 5_000_000,
        (b"\xff" * 5_000 + b"\xe0\0\2") * 1_000,
        b"GIF89a\0\0\0\0\0\0\0!\xf9" + b"\x01x" * 2_500_000,
        b"GIF89a\0\0\0\0\0\0\0" + (b"!\xf9" + b"\x01x" * 250 + b"\0") * 10_000,
        b"<!doctype x" + b" " * HEAD_BYTES,
    ],
    ids=["filled", "filled-between", "blocks", "blocks-of-many", "doctype"],
)
def test_a_look_takes_no_time_whatever_the_bytes(data: bytes) -> None:
    begun = time.thread_time()
    pixel_size(b"\xff\xd8" + data if data[:1] == b"\xff" else data)
    media_type_of(data[:HEAD_BYTES])
    assert time.thread_time() - begun < 0.15


@pytest.mark.parametrize("whole", [png(9, 9), jpeg(9, 9), gif(9, 9, (9, 9))])
def test_a_picture_that_is_cut_is_no_crash(whole: bytes) -> None:
    for length in range(len(whole)):
        size = pixel_size(whole[:length])
        assert not is_too_large(size)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (png(70, 3), "image/png"),
        (jpeg(70, 3), "image/jpeg"),
        (gif(70, 3, (1, 1)), "image/gif"),
        (webp(b"VP8L", b"\x2f" + struct.pack("<I", 69 | 2 << 14)), "image/webp"),
    ],
)
def test_a_picture_for_a_model_is_what_its_bytes_are(data: bytes, media_type: str) -> None:
    block = image_block(data, "plan.txt")
    assert block is not None
    assert (block.media_type, block.width, block.height) == (media_type, 70, 3)
    assert (block.name, block.data) == ("plan.txt", data)
    assert block.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "data",
    [b"", b"plan.png", b"<svg width='1' height='1'/>", JPEG_START, png(0, 3), png(9, 9)[:12]],
)
def test_what_is_no_picture_or_has_no_size_is_none_for_a_model(data: bytes) -> None:
    assert image_block(data, "plan.png") is None
