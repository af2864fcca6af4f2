"""How much a server may send at once: what is parsed, and what is kept of its lists.

Parsing holds up everything else, and takes as long as there are values. So they are counted first.
"""

from __future__ import annotations

import re
from typing import Any

import anyio.lowlevel
import pydantic_core

from web.harness.mcp.mending import Report

MAX_VALUES = 100_000
"""Of one message that is read here; some tens of milliseconds of work."""
MAX_SDK_VALUES = 50_000
"""Of one message that the SDK reads, which takes it several times as long."""
MAX_ENTRY_BYTES = 256 * 1024
"""Of one tool, prompt, resource or template, as JSON."""
MAX_LIST_BYTES = 2 * 1024 * 1024
"""Of all entries of a list."""
MAX_LIST_VALUES = 12_000
"""The same; each of them is checked more than once."""
MAX_TOOLS_VALUES = 40_000
"""The same for tools, most of which are schemas, of which little is checked."""

TOO_LARGE = "The answer is too large"
"""How the words begin for an answer that is not read."""

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_SLICE = 64 * 1024


class ValueCount:
    """About how many values a JSON text has that comes in pieces. What is in strings is none."""

    def __init__(self) -> None:
        self.values = 0
        self._in_string = False
        self._held = b""

    def add(self, piece: bytes) -> None:
        """Counts the next piece."""
        piece = self._held + piece
        # Half an escape waits for its other half.
        held = (len(piece) - len(piece.rstrip(b"\\"))) % 2
        self._held = piece[len(piece) - held :]
        piece = piece[: len(piece) - held]
        if b"\\" in piece:
            piece = _ESCAPED.sub(b"", piece)
        parts = piece.split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self.values += sum(map(outside.count, (b",", b"[", b"{")))
        if len(parts) % 2 == 0:
            self._in_string = not self._in_string


class EventCount:
    """The same for a stream of events, whose values are counted one event at a time."""

    def __init__(self) -> None:
        self._count = ValueCount()

    def add(self, piece: bytes) -> int:
        """Counts the next piece; returns the values of the largest event in it, as far as known."""
        most = 0
        for number, part in enumerate(_EVENT_END.split(piece)):
            if number:
                self._count = ValueCount()
            self._count.add(part)
            most = max(most, self._count.values)
        return most


async def has_too_many_values(line: bytes) -> bool:
    """Whether a line has more than `MAX_VALUES`; others get their turn while it is counted."""
    if len(line) <= MAX_VALUES:
        return False
    count = ValueCount()
    for start in range(0, len(line), _SLICE):
        count.add(line[start : start + _SLICE])
        if count.values > MAX_VALUES:
            return True
        await anyio.lowlevel.checkpoint()
    return False


class Room:
    """What is left for the entries of one list, over all of its pages."""

    def __init__(self, values: int = MAX_LIST_VALUES) -> None:
        self._bytes = MAX_LIST_BYTES
        self._values = values
        self._full = False

    def kept(self, entries: list[Any], noun: str, report: Report) -> list[Any]:
        """The entries that there is room for; the rest is reported. Each counts as JSON."""
        kept: list[Any] = []
        large = 0
        for number, entry in enumerate(entries):
            text = b"" if self._full else _as_json(entry)
            if len(text) > MAX_ENTRY_BYTES:
                large += 1
                continue
            self._bytes -= len(text)
            self._values -= sum(map(text.count, (b",", b"[", b"{")))
            if self._full or min(self._bytes, self._values) < 0:
                if not self._full:
                    words = f"The {noun} list is too large: after {number:,} of a page it was cut."
                    report("warning", words)
                self._full = True
                break
            kept.append(entry)
        if large:
            limit = f"{MAX_ENTRY_BYTES // 1024} KiB"
            report("warning", f"{large:,} of the {noun} list were left out: over {limit} each.")
        return kept


def _as_json(entry: Any) -> bytes:
    try:
        return pydantic_core.to_json(entry)
    except ValueError:
        # Too deep for that; nothing that is so deep is kept.
        return b" " * (MAX_ENTRY_BYTES + 1)
