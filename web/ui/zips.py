"""A zip that is made while it is sent: neither on disk nor whole in memory."""

from __future__ import annotations

import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import IO

from web.harness.builtin.chat_files import OpenFile, on_disk
from web.harness.values.errors import HarnessError
from web.ui.file_bytes import PIECE_BYTES

_PACKED = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/zip")
"""What gains nothing by being packed once more; nor does sound."""

_LARGE = 2**31 - 1
"""More bytes than this need the longer form of a zip; a file may grow while it is read."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file for a zip: its path in there, and what opens it."""

    path: str
    open: Callable[[], AbstractAsyncContextManager[OpenFile]]


class _Sink:
    """Takes what a zip writes until it is sent. It cannot go back, and need not."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """All is sent when it is taken."""

    def take(self) -> bytes:
        taken, self._pieces = self._pieces, []
        return b"".join(taken)


async def zipped(entries: Iterable[ZipEntry]) -> AsyncIterator[bytes]:
    """The zip, piece by piece. A file that is not there any more when its turn comes is left out.

    Raises what reading raises: whoever gets the zip then sees that it is broken.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:  # type: ignore[call-overload]
        for entry in entries:
            try:
                async with entry.open() as file:
                    async for piece in _member(archive, sink, entry.path, file):
                        yield piece
            except HarnessError:
                # It went, or became what is not read here, such as a link.
                continue
    yield sink.take()


async def _member(
    archive: zipfile.ZipFile, sink: _Sink, path: str, file: OpenFile
) -> AsyncIterator[bytes]:
    info = zipfile.ZipInfo(path, _moment(file.changed_at))
    packs = file.media_type not in _PACKED and not file.media_type.startswith("audio/")
    info.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
    info.external_attr = 0o644 << 16
    with archive.open(info, "w", force_zip64=file.size > _LARGE) as member:
        start = 0
        while True:
            size = await on_disk(partial(_add, member, file, start))
            start += size
            taken = sink.take()
            if taken:
                yield taken
            if size < PIECE_BYTES:
                break


def _add(member: IO[bytes], file: OpenFile, start: int) -> int:
    """Packs a piece, in a thread; returns its size in bytes."""
    data = file.read_now(start, PIECE_BYTES)
    member.write(data)
    return len(data)


def _moment(at: float) -> tuple[int, int, int, int, int, int]:
    """A time as a zip holds it: of this place, and not before 1980."""
    moment = time.localtime(at)[:6]
    return moment if 1980 <= moment[0] <= 2107 else (1980, 1, 1, 0, 0, 0)
