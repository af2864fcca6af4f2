"""A zip's bytes, read so that its own claims cannot fill the memory."""

from __future__ import annotations

import io
from typing import BinaryIO

from web.harness.values.errors import LimitExceeded


class ArchiveFile(io.RawIOBase):
    """A file in which no single read takes more than `max_read` bytes.

    `zipfile` reads an archive's whole list of files at once, as large as the archive says it is;
    a few megabytes of it make hundreds of megabytes of objects.
    """

    def __init__(self, content: BinaryIO, max_read: int) -> None:
        super().__init__()
        self._content = content
        self._max_read = max_read

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            here = self._content.tell()
            size = self._content.seek(0, io.SEEK_END) - here
            self._content.seek(here)
        if size > self._max_read:
            raise LimitExceeded(
                f"The zip's list of files has {size:,} bytes; at most {self._max_read:,} are read.",
                code="too_large",
            )
        return self._content.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._content.seek(offset, whence)

    def tell(self) -> int:
        return self._content.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True
