"""Pictures by their bytes: what they are, and how large they would be once they are unpacked.

A few kilobytes may unpack to gigabytes, which would bring down the browser that shows them.
"""

from __future__ import annotations

import hashlib
import re

from web.harness.tools.sniff import HEAD_BYTES, media_type_of
from web.harness.values.messages import ImageBlock

MODEL_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The pictures that models take."""

MAX_PIXELS = 50_000_000
"""200 MB in memory; the largest cameras stay below it for the most part."""

_MAX_JPEG_SEGMENTS = 1_000
_MAX_GIF_BLOCKS = 10_000
"""Of a GIF's pieces before the first frame, those within its extensions included."""
_FILL = re.compile(rb"\xff+")
"""Any number of these may stand before a marker of a JPEG, so they are passed over in one step."""
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG that its size comes with."""


def pixel_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, JPEG, GIF or WebP; None where they cannot be read.

    The first frame of a GIF counts where it is larger than the picture says to be.
    """
    if data.startswith(b"\x89PNG") and data[12:16] == b"IHDR":
        return _big(data[16:20]), _big(data[20:24])
    if data.startswith(b"GIF8"):
        return _gif(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8") else None


def image_block(data: bytes, name: str = "", *, sha256: str = "") -> ImageBlock | None:
    """The picture that `data` is, as a model can be sent it.

    None for what is no PNG, JPEG, GIF or WebP, whatever its name says, and for what is so broken
    that its size cannot be read. `sha256` is that of the data, where it is known already.
    """
    media_type = media_type_of(data[:HEAD_BYTES])
    size = pixel_size(data) if media_type in MODEL_TYPES else None
    if size is None or not all(size):
        return None
    digest = sha256 or hashlib.sha256(data).hexdigest()
    return ImageBlock(media_type, digest, data, name, *size)


def is_too_large(size: tuple[int, int] | None) -> bool:
    """Whether a picture of that size is better not shown."""
    return size is not None and size[0] * size[1] > MAX_PIXELS


def _gif(data: bytes) -> tuple[int, int]:
    width, height = _little(data[6:8]), _little(data[8:10])
    flags = data[10] if len(data) > 10 else 0
    place = 13 + (3 << (flags % 8 + 1) if flags & 0x80 else 0)
    inside = False
    for _ in range(_MAX_GIF_BLOCKS):
        if inside:
            size = data[place] if place < len(data) else 0
            place += 1 + size
            inside = size > 0
        elif data[place : place + 1] == b",":
            first = _little(data[place + 5 : place + 7]), _little(data[place + 7 : place + 9])
            return max(width, first[0]), max(height, first[1])
        elif data[place : place + 1] == b"!":
            place += 2
            inside = True
        else:
            break
    return width, height


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case b"VP8L":
            bits = _little(data[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    place = 2
    for _ in range(_MAX_JPEG_SEGMENTS):
        fill = _FILL.match(data, place)
        place = fill.end() - 1 if fill else place
        if place + 9 > len(data) or data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker in _JPEG_FRAMES:
            return _big(data[place + 7 : place + 9]), _big(data[place + 5 : place + 7])
        # Markers without a length stand alone.
        alone = marker == 0x01 or 0xD0 <= marker <= 0xD8
        place += 2 if alone else 2 + max(2, _big(data[place + 2 : place + 4]))
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
