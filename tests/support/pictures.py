"""Pictures for tests: put together as their formats are, with a size and nothing drawn."""

from __future__ import annotations

import struct
import zlib

from web.harness.tools.pictures import image_block
from web.harness.values.messages import ImageBlock


def png(width: int, height: int, size: int = 0) -> bytes:
    """A PNG of so many pixels, filled up to `size` bytes where it has fewer."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    room = size - len(_png(chunks)) - 12
    return _png([chunks[0], (b"fiLl", bytes(room)), *chunks[1:]] if room >= 0 else chunks)


def _png(chunks: list[tuple[bytes, bytes]]) -> bytes:
    packed = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def picture(name: str = "", width: int = 640, height: int = 480, size: int = 0) -> ImageBlock:
    block = image_block(png(width, height, size), name)
    assert block is not None
    return block
