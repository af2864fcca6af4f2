"""What binary data is, by its first bytes: a server may say anything."""

from __future__ import annotations

from typing import Literal

from web.harness.tools import sniff

UNKNOWN = sniff.UNKNOWN

_ACTIVE = "image/svg+xml"


def media_type_of(data: bytes) -> str:
    """One of the types that the page shows, or `UNKNOWN`. A picture that can act is not shown."""
    media_type = sniff.media_type_of(data)
    shown = kind_of(media_type) != "file" and media_type != _ACTIVE
    return media_type if shown else UNKNOWN


def kind_of(media_type: str) -> Literal["image", "audio", "file"]:
    """How data of a type from `media_type_of` is shown; a file is only offered."""
    if media_type.startswith("image/"):
        return "image"
    return "audio" if media_type.startswith("audio/") else "file"
