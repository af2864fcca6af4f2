"""A zip that is made while it is sent: neither on disk nor whole in memory."""

from __future__ import annotations

import time
import zipfile
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from web.harness.builtin.chat_files import OpenFile, on_disk
from web.harness.values.errors import HarnessError
from web.ui.files.file_bytes import PIECE_BYTES

_PACKED = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/zip")
"""What gains nothing by being packed once more; nor does sound."""

_LARGE = 2**31 - 1
"""More bytes than this need the longer form of a zip; a file may grow while it is read."""


_PIECE_SECONDS = 0.1
"""So long a piece is worked on, where it does not become large before."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file for a zip: its path in there, and what opens it, in a thread."""

    path: str
    open: Callable[[], AbstractContextManager[OpenFile]]


class _Sink:
    """Takes what a zip writes until it is sent. It cannot go back, and need not."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """All is sent when it is taken."""

    def take(self) -> bytes:
        taken, self._pieces, self.size = self._pieces, [], 0
        return b"".join(taken)


async def zipped(entries: Iterable[ZipEntry]) -> AsyncIterator[bytes]:
    """The zip, piece by piece. A file that is not there any more when its turn comes is left out.

    Raises what reading raises: whoever gets the zip then sees that it is broken.
    """
    sink = _Sink()
    packing = _packing(sink, entries)
    try:
        more = True
        while more:
            more, piece = await on_disk(lambda: _piece(sink, packing))
            if piece:
                yield piece
    finally:
        # It writes what nobody gets any more, of many files for a while.
        await on_disk(packing.close)


def _piece(sink: _Sink, packing: Iterator[None]) -> tuple[bool, bytes]:
    """Whether there may be more, and what is to be sent: of many small files together, so that not
    each needs a thread."""
    until = time.monotonic() + _PIECE_SECONDS
    for _ in packing:
        if sink.size >= PIECE_BYTES or time.monotonic() > until:
            return True, sink.take()
    return False, sink.take()


def _packing(sink: _Sink, entries: Iterable[ZipEntry]) -> Generator[None, None, None]:
    """Writes the zip, some more at each step. Blocks."""
    with zipfile.ZipFile(sink, "w") as archive:  # type: ignore[call-overload]
        for entry in entries:
            with ExitStack() as stack:
                try:
                    file = stack.enter_context(entry.open())
                except (HarnessError, OSError):
                    # It went, or became what is not read here, such as a link.
                    continue
                yield from _member(archive, entry.path, file)


def _member(archive: zipfile.ZipFile, path: str, file: OpenFile) -> Iterator[None]:
    info = zipfile.ZipInfo(path, _moment(file.changed_at))
    packs = file.media_type not in _PACKED and not file.media_type.startswith("audio/")
    info.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
    info.external_attr = 0o644 << 16
    with archive.open(info, "w", force_zip64=file.size > _LARGE) as member:
        start = 0
        while data := file.read_now(start, PIECE_BYTES):
            member.write(data)
            start += len(data)
            if len(data) < PIECE_BYTES:
                break
            yield
    yield


def _moment(at: float) -> tuple[int, int, int, int, int, int]:
    """A time as a zip holds it: of this place, and not before 1980."""
    moment = time.localtime(at)[:6]
    return moment if 1980 <= moment[0] <= 2107 else (1980, 1, 1, 0, 0, 0)
