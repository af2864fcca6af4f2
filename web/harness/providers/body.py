"""Where an HTTP/1.1 response body ends, decided from bytes without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

MAX_SIZE_LINE = 4096


class Body(Protocol):
    """Takes raw bytes of a connection and gives those of the body."""

    ended: bool
    """The body is whole; whatever follows is not part of it."""
    until_close: bool
    """The end of the connection is the end of the body."""

    def feed(self, data: bytes) -> bytes:
        """The body bytes in `data`. Raises ValueError where the framing is broken."""
        ...


class ChunkedBody:
    """`Transfer-Encoding: chunked`. All chunks of one read come out as one piece.

    Trailers are not waited for: nobody reads them, and the connection is closed after the body.
    """

    until_close = False

    def __init__(self) -> None:
        self.ended = False
        self._left = 0
        self._line = b""

    def feed(self, data: bytes) -> bytes:
        if self._line:
            data = self._line + data
            self._line = b""
        pieces: list[bytes] = []
        at, end = 0, len(data)
        while at < end and not self.ended:
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                continue
            line_end = data.find(b"\n", at)
            if line_end < 0:
                self._hold(data[at:])
                break
            line = data[at:line_end].strip()
            at = line_end + 1
            # The line end that closes the chunk before is an empty line here.
            if line:
                self._left = _chunk_size(line)
                self.ended = self._left == 0
        return b"".join(pieces)

    def _hold(self, line: bytes) -> None:
        if len(line) > MAX_SIZE_LINE:
            raise ValueError("a chunk has no size")
        self._line = line


class SizedBody:
    """`Content-Length: size`."""

    until_close = False

    def __init__(self, size: int) -> None:
        self._left = size
        self.ended = size == 0

    def feed(self, data: bytes) -> bytes:
        data = data[: self._left]
        self._left -= len(data)
        self.ended = self._left == 0
        return data


class OpenBody:
    """Neither length nor chunks: all that comes until the connection ends."""

    until_close = True
    ended = False

    def feed(self, data: bytes) -> bytes:
        return data


def body_of(headers: Mapping[str, str]) -> Body:
    """The body that these response headers announce."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return ChunkedBody()
    length = headers.get("content-length", "")
    return SizedBody(int(length)) if length.isdecimal() else OpenBody()


def _chunk_size(line: bytes) -> int:
    size = int(line.partition(b";")[0], 16)
    if size < 0:
        raise ValueError("a chunk has a negative size")
    return size
