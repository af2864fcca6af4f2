"""A bar chart as a PNG, drawn pixel by pixel with the standard library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

WIDTH, HEIGHT = 480, 270
MARGIN = 24
"""Pixels around the bars. A value stands in it where its bar takes the whole height."""
PAPER, LINE, INK, RISE, FALL = range(5)
"""Places in the palette. Bars above zero have the colour RISE, those below it FALL."""
PALETTE = bytes.fromhex("ffffff 94a3b8 1e293b 2563eb c2410c")

_GLYPHS = {
    "0": "75557",
    "1": "26227",
    "2": "71747",
    "3": "71717",
    "4": "55711",
    "5": "74717",
    "6": "74757",
    "7": "71111",
    "8": "75757",
    "9": "75717",
    ".": "00002",
    "-": "00700",
    "+": "02720",
    "e": "07747",
}
"""Five rows of three pixels for each character, one octal digit a row."""
_GLYPH_WIDTH, _GLYPH_HEIGHT = 3, 5


def bar_chart(numbers: Sequence[float]) -> bytes:
    """A PNG with one bar for each of the finite `numbers` (at least one), its value beside it."""
    rows = [bytearray(WIDTH) for _ in range(HEIGHT)]
    top, bottom = max(*numbers, 0.0), min(*numbers, 0.0)
    pixels_per_unit = (HEIGHT - 2 * MARGIN) / ((top - bottom) or 1.0)
    zero = MARGIN + round(top * pixels_per_unit)
    slot = (WIDTH - 2 * MARGIN) / len(numbers)
    labels = [f"{number:.6g}" for number in numbers]
    size = next((size for size in (2, 1) if max(map(_advance, labels)) * size <= slot), 0)

    for place, (number, label) in enumerate(zip(numbers, labels, strict=True)):
        left = MARGIN + round((place + 0.15) * slot)
        right = max(MARGIN + round((place + 0.85) * slot), left + 1)
        end = zero - round(number * pixels_per_unit)
        _fill(rows, left, min(zero, end), right, max(zero, end), RISE if number > 0 else FALL)
        # One pixel of a character is `size` pixels wide and high; 0 means that nothing fits.
        x = round((left + right - _advance(label) * size) / 2)
        y = end + 4 if number < 0 else end - 4 - _GLYPH_HEIGHT * size
        _write(rows, x, y, label, size)
    _fill(rows, MARGIN, zero, WIDTH - MARGIN, zero + 1, LINE)
    return _png(rows)


def _advance(label: str) -> int:
    return len(label) * (_GLYPH_WIDTH + 1)


def _fill(rows: list[bytearray], left: int, top: int, right: int, bottom: int, colour: int) -> None:
    for row in rows[top:bottom]:
        row[left:right] = bytes([colour]) * (right - left)


def _write(rows: list[bytearray], x: int, y: int, label: str, size: int) -> None:
    for character in label:
        for down, bits in enumerate(_GLYPHS[character]):
            for across in range(_GLYPH_WIDTH):
                if int(bits, 8) >> (_GLYPH_WIDTH - 1 - across) & 1:
                    left, top = x + across * size, y + down * size
                    _fill(rows, left, top, left + size, top + size, INK)
        x += (_GLYPH_WIDTH + 1) * size


def _png(rows: list[bytearray]) -> bytes:
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    # The zero before a row says that its pixels are stored as they are.
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    chunks = ((b"IHDR", header), (b"PLTE", PALETTE), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
