"""Binary data that tools of a chat returned: pictures, sound, files."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from web.harness.tools.tool import Blob

MAX_BLOB_BYTES = 8_000_000
MAX_CHAT_BYTES = 24_000_000


class BlobStore(Protocol):
    """The data of one chat, by the SHA-256 of its content in hex.

    It is a convenience: what was kept may be gone at any later time, and the page says so.
    """

    def keep(self, blob: Blob) -> bool:
        """Keeps data, perhaps in the place of older; False where it is too much for that."""
        ...

    def get(self, sha256: str) -> Blob | None: ...


class InMemoryBlobs:
    """A `BlobStore` that lives as long as its chat; sizes are in bytes."""

    def __init__(
        self, max_bytes: int = MAX_CHAT_BYTES, max_blob_bytes: int = MAX_BLOB_BYTES
    ) -> None:
        self._max_bytes = max_bytes
        self._max_blob_bytes = max_blob_bytes
        self._blobs: OrderedDict[str, Blob] = OrderedDict()
        self._bytes = 0

    def keep(self, blob: Blob) -> bool:
        if len(blob.data) > min(self._max_blob_bytes, self._max_bytes):
            return False
        if blob.sha256 not in self._blobs:
            self._blobs[blob.sha256] = blob
            self._bytes += len(blob.data)
        self._blobs.move_to_end(blob.sha256)
        while self._bytes > self._max_bytes:
            _, oldest = self._blobs.popitem(last=False)
            self._bytes -= len(oldest.data)
        return True

    def get(self, sha256: str) -> Blob | None:
        return self._blobs.get(sha256)
