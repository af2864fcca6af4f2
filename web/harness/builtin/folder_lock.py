"""The lock of a chat's folder: one thread of one process works on its files at a time."""

from __future__ import annotations

from web.harness.tools.file_lock import FileLock
from web.harness.values.errors import ToolError

LOCK_NAME = "lock"
BUSY = "files_busy"
"""The code of the error."""


class FolderLock(FileLock):
    """A lock whose errors are ToolErrors (code `BUSY`); `held` takes the reserved folder."""

    def __init__(self, busy_seconds: float) -> None:
        super().__init__(LOCK_NAME, busy_seconds, _busy)


def _busy(why: str) -> ToolError:
    return ToolError(
        f"The chat's files are busy: {why}. Nothing was done; try again later.", code=BUSY
    )
