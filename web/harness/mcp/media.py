"""What binary data is, by its first bytes: a server may say anything."""

from __future__ import annotations

import re
from typing import Literal

UNKNOWN = "application/octet-stream"

_STARTS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"fLaC"), "audio/flac"),
    (re.compile(rb"OggS"), "audio/ogg"),
    # With a tag before it, or the sync of a frame of layer III.
    (re.compile(rb"ID3[\x02-\x04]|\xff[\xfa\xfb\xf2\xf3\xe2\xe3]"), "audio/mpeg"),
)


def media_type_of(data: bytes) -> str:
    """One of the types that the page shows, or `UNKNOWN`."""
    for start, media_type in _STARTS:
        if start.match(data):
            return media_type
    return UNKNOWN


def kind_of(media_type: str) -> Literal["image", "audio", "file"]:
    """How data of a type from `media_type_of` is shown; a file is only offered."""
    if media_type.startswith("image/"):
        return "image"
    return "audio" if media_type.startswith("audio/") else "file"


def amount(size: int) -> str:
    """A number of bytes as a person says it: `940 bytes`, `34 KB`, `1.2 MB` (of thousands)."""
    if size < 1000:
        return f"{size} bytes"
    if size < 999_500:
        return f"{size / 1000:.0f} KB"
    return f"{size / 1_000_000:.1f} MB"
