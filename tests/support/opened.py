"""Files that are open, as a chat's files are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from web.harness.builtin.chat_files import OpenFile


@contextmanager
def opened(path: Path, data: bytes, media_type: str = "text/plain") -> Iterator[OpenFile]:
    """Writes a file and opens it."""
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield OpenFile(descriptor, len(data), 0.0, hashlib.sha256(data).hexdigest(), media_type)
    finally:
        os.close(descriptor)
