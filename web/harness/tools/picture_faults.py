"""Whether a picture is all there, told by how its format is put together; nothing is unpacked.

What is cut off shows as an empty box or half of a picture, and is refused by models, once for each
message that it goes along with.
"""

from __future__ import annotations

import re

CUT = "it is cut off, its end is missing"
BROKEN = "it is broken, it is not put together as its kind is"

_MAX_PIECES = 100_000
"""Of a PNG's or a GIF's; one with more is taken as whole if its last bytes say so."""
_MAX_SEGMENTS = 1_000
"""Of a JPEG before its first scan."""
_FILL = re.compile(rb"\xff+")
_SCAN = 0xDA
_CHUNK_KIND = re.compile(rb"[A-Za-z]{4}")


def picture_fault(data: bytes) -> str:
    """What is wrong with a PNG, JPEG, GIF or WebP, in words that may follow a colon; '' for one
    that is whole as far as can be told, and for what is none of these."""
    if data.startswith(b"\x89PNG"):
        return _of_png(data)
    if data.startswith(b"\xff\xd8"):
        return _of_jpeg(data)
    if data.startswith(b"GIF8"):
        return _of_gif(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return CUT if len(data) < 8 + int.from_bytes(data[4:8], "little") else ""
    return ""


def _of_png(data: bytes) -> str:
    """Chunk after chunk up to the one that says it is the last."""
    place, drawn = 8, False
    for _ in range(_MAX_PIECES):
        kind = data[place + 4 : place + 8]
        if len(kind) < 4:
            return CUT
        if not _CHUNK_KIND.fullmatch(kind):
            return BROKEN
        drawn = drawn or kind == b"IDAT"
        place += 12 + int.from_bytes(data[place : place + 4], "big")
        if place > len(data):
            return CUT
        if kind == b"IEND":
            return "" if drawn else BROKEN
    return "" if b"IEND" in data[-64:] else CUT


def _of_jpeg(data: bytes) -> str:
    """Segment after segment up to the first scan, which an end marker follows. A small picture
    within a segment has one of its own, and is passed over with it."""
    place = 2
    for _ in range(_MAX_SEGMENTS):
        fill = _FILL.match(data, place)
        place = fill.end() - 1 if fill else place
        if place + 4 > len(data):
            return CUT
        if data[place] != 0xFF:
            return BROKEN
        marker = data[place + 1]
        if marker == _SCAN:
            return "" if data.find(b"\xff\xd9", place) >= 0 else CUT
        # Markers without a length stand alone.
        alone = marker == 0x01 or 0xD0 <= marker <= 0xD8
        place += 2 if alone else 2 + max(2, int.from_bytes(data[place + 2 : place + 4], "big"))
    return BROKEN


def _of_gif(data: bytes) -> str:
    """Block after block up to the trailer; what follows it is passed over."""
    place, inside = 13 + _colours(data, 10), False
    for _ in range(_MAX_PIECES):
        first = data[place : place + 1]
        if not first:
            return CUT
        if inside:
            inside = first != b"\0"
            place += 1 + first[0]
        elif first == b";":
            return ""
        elif first in b"!,":
            place += 2 if first == b"!" else 11 + _colours(data, place + 9)
            inside = True
        else:
            return BROKEN
    return "" if data.rstrip(b"\0").endswith(b";") else CUT


def _colours(data: bytes, place: int) -> int:
    """The size of the table of colours whose flags are at this place."""
    flags = data[place] if place < len(data) else 0
    return 3 << (flags % 8 + 1) if flags & 0x80 else 0
