"""Text that can be sent anywhere: no half characters, no endless nesting.

Models and tools write JSON escapes as they like; half of a surrogate pair is no character, and
every encoder after us would refuse the whole page, message or file for it.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 64
"""Nesting of a call's arguments beyond which they are refused."""


def sayable(text: str) -> str:
    """The text with halves of surrogate pairs replaced by U+FFFD; whole pairs are joined."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def amount(size: int) -> str:
    """A number of bytes as a person says it: `1 byte`, `940 bytes`, `34 KB`, `1.2 MB`, `100 MB`.

    These are thousands, everywhere on pages and in messages.
    """
    if size < 1000:
        return f"{size} byte" if size == 1 else f"{size} bytes"
    if size < 999_500:
        return f"{size / 1000:.0f} KB"
    if size < 99_950_000:
        return f"{size / 1_000_000:.1f} MB"
    return f"{size / 1_000_000:.0f} MB" if size < 999_500_000 else f"{size / 1e9:.1f} GB"


def sayable_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The JSON value with all its texts sayable. Raises ValueError where it is nested deeper."""
    if isinstance(value, str):
        return sayable(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth <= 0:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        return {sayable(str(key)): sayable_json(each, depth - 1) for key, each in value.items()}
    return [sayable_json(each, depth - 1) for each in value]
