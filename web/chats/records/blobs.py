"""Binary data that tools of a chat returned: pictures, sound, files."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Protocol

from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Blobs, KeptBlob
from web.harness.tools.tool import Blob
from web.harness.values.errors import StoreError

log = logging.getLogger(__name__)

PUT_SECONDS = 2.0
"""A person waits no longer for a store that does not work; it is written later."""

AGAIN_SECONDS = 2.0
"""After the store failed."""

MAX_BLOB_BYTES = 8_000_000
MAX_CHAT_BYTES = 24_000_000


class BlobStore(Protocol):
    """The data of one chat, by the SHA-256 of its content in hex.

    It is a convenience: what was kept may be gone at any later time, and the page says so.
    """

    def keep(self, blob: Blob) -> bool:
        """Keeps data, perhaps in the place of older; False where it is too much for that."""
        ...

    def get(self, sha256: str) -> Blob | None:
        """What is in memory."""
        ...

    async def fetch(self, sha256: str) -> Blob | None:
        """What is anywhere. Raises StoreError."""
        ...

    async def flush(self) -> None:
        """Returns when what was kept is where it stays, or when that fails for now."""
        ...

    @property
    def is_stored(self) -> bool:
        """Whether all that was kept is where it stays."""
        ...


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

    async def fetch(self, sha256: str) -> Blob | None:
        return self.get(sha256)

    async def flush(self) -> None:
        """Memory is where it stays."""

    @property
    def is_stored(self) -> bool:
        return True


class StoredBlobs(InMemoryBlobs):
    """A `BlobStore` whose data outlives the process, too; some of it is in memory.

    A write that fails is tried again for as long as the data is in memory.
    """

    def __init__(
        self,
        blobs: Blobs,
        identity: HarnessIdentity,
        chat_id: str,
        tasks: TaskOwner,
        *,
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        super().__init__()
        self._stored = blobs
        self._whose = (identity, chat_id)
        self._tasks = tasks
        self._again_seconds = again_seconds
        self._writing: set[asyncio.Task[None]] = set()

    def keep(self, blob: Blob) -> bool:
        known = self.get(blob.sha256) is not None
        kept = super().keep(blob)
        if kept and not known:
            writing = self._tasks.create_task(self._write(blob))
            self._writing.add(writing)
            writing.add_done_callback(self._writing.discard)
        return kept

    async def fetch(self, sha256: str) -> Blob | None:
        blob = self.get(sha256)
        if blob is None:
            found = await self._stored.get(*self._whose, sha256)
            if found is not None:
                blob = Blob(found.sha256, found.media_type, found.data)
                super().keep(blob)
        return blob

    async def flush(self) -> None:
        if self._writing:
            await asyncio.wait(self._writing.copy(), timeout=PUT_SECONDS)

    @property
    def is_stored(self) -> bool:
        return not self._writing

    async def _write(self, blob: Blob) -> None:
        kept = KeptBlob(blob.sha256, blob.media_type, blob.data)
        while self.get(blob.sha256) is not None:
            try:
                await self._stored.keep(*self._whose, kept)
                return
            except StoreError as error:
                log.warning("A picture or file waits to be written: %s", error.message)
                await asyncio.sleep(self._again_seconds)
