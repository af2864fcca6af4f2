"""Pictures for tests: a head that says a size, and no more than that."""

from __future__ import annotations

import struct

from web.harness.tools.pictures import image_block
from web.harness.values.messages import ImageBlock


def png(width: int, height: int, size: int = 0) -> bytes:
    """The start of a PNG of so many pixels, filled up to `size` bytes."""
    start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return (start + b"\x08\x02\0\0\0" + bytes(20)).ljust(size, b"\0")


def picture(name: str = "", width: int = 640, height: int = 480, size: int = 0) -> ImageBlock:
    block = image_block(png(width, height, size), name)
    assert block is not None
    return block
