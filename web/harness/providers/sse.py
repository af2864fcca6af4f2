"""Server-sent events from bytes, without I/O."""

from __future__ import annotations

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""A single event above this size is no answer of a model."""


class SseEvent(NamedTuple):
    """One event: its type ('' if the server named none) and its data lines joined by newlines."""

    type: str
    data: str


class SseDecoder:
    """Turns the bytes of an event stream into events; fed with pieces of any size.

    httpx-sse has a decoder too, but it is driven line by line through an async generator and makes
    an object for every line, which costs more than parsing the JSON inside. A server that relays
    20,000 tokens a second has some 20 microseconds for each, so this one cuts a whole read at its
    blank lines at once, decodes UTF-8 once a read, and looks at single lines only where an event
    is more than one `data:` line. Ids and retry times are left out: model APIs use neither.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._last_byte = b""
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes. Raises ValueError for one that is far too large."""
        if self._at_start:
            data = self._without_bom(data)
        data = self._normalised(data)
        if not data:
            return []
        if b"\n\n" not in data and not (self._last_byte == b"\n" and data[0] == 10):
            self._keep(data)
            return []
        self._pieces.append(data)
        whole, _, rest = b"".join(self._pieces).rpartition(b"\n\n")
        self._pieces.clear()
        self._size = 0
        self._last_byte = b""
        if rest:
            self._keep(rest)
        else:
            # A further line end would only be one more blank line; it completes nothing.
            self._last_byte = b"\n"
        return _events(whole.decode("utf-8", "replace"))

    def finish(self) -> list[SseEvent]:
        """The event that the end of the stream left open.

        The standard drops it; some servers close right after their last line, so it is given out
        and the caller decides whether its data is whole.
        """
        rest = b"".join(self._pieces)
        self._pieces.clear()
        return _events(rest.decode("utf-8", "replace"))

    def _keep(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        self._last_byte = data[-1:]
        if self._size > MAX_EVENT_BYTES:
            raise ValueError("an event is too large")

    def _without_bom(self, data: bytes) -> bytes:
        """Drops a byte order mark, which may itself come in pieces."""
        data = b"".join((*self._pieces, data))
        self._pieces.clear()
        if len(data) < len(BOM) and BOM.startswith(data):
            self._pieces.append(data)
            return b""
        self._at_start = False
        return data.removeprefix(BOM)

    def _normalised(self, data: bytes) -> bytes:
        """Makes every line end a newline; a CR counts at once, an LF that follows it is dropped."""
        if self._after_cr:
            if not data:
                return data
            self._after_cr = False
            if data[0] == 10:
                data = data[1:]
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data


def _events(text: str) -> list[SseEvent]:
    events: list[SseEvent] = []
    for block in text.split("\n\n"):
        if block.startswith("data: ") and "\n" not in block:
            events.append(SseEvent("", block[6:]))
        elif block:
            event = _event(block)
            if event is not None:
                events.append(event)
    return events


def _event(block: str) -> SseEvent | None:
    """The event of a block of lines, None if it holds only comments and unknown fields."""
    kind = ""
    data: list[str] = []
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
    if not data:
        return None
    return SseEvent(kind, "\n".join(data))
