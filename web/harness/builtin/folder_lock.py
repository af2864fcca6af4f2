"""The lock of a chat's folder: one thread of one process works on its files at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator

from web.harness.values.errors import ToolError

LOCK_NAME = "lock"
BUSY = "files_busy"
"""The code of the error."""
TURN_SECONDS = 30.0
"""So long others of this process may have the lock: their work is known to end."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_PART_OF_WAIT = 0.1
"""The pause between two tries grows with the time that was waited."""


class FolderLock:
    """One a folder. Threads that share it take turns in memory, all others at a lock file.

    Every wait is bounded, that for another program by `busy_seconds`. Whoever waits for one gives
    the turn away meanwhile, so that each waits for that program once and not for those before it,
    and many of them cost little.
    """

    def __init__(self, busy_seconds: float) -> None:
        self._busy_seconds = busy_seconds
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def held(self, reserved: int) -> Iterator[None]:
        """The lock, held; `reserved` is a descriptor of the folder that its file lies in. Blocks.

        Raises ToolError (code `BUSY`) when somebody else keeps it too long.
        """
        descriptor = self._taken(reserved)
        try:
            yield
        finally:
            os.close(descriptor)
            self._turn.release()

    def _taken(self, reserved: int) -> int:
        """A descriptor of the lock file, which holds the lock until it is closed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(LOCK_NAME, flags, 0o644, dir_fd=reserved)
        try:
            refused: float | None = None
            while not self._takes(descriptor):
                now = time.monotonic()
                refused = now if refused is None else refused
                if now - refused > self._busy_seconds:
                    raise _busy("another program holds them")
                pause = _SHORTEST_PAUSE + _PART_OF_WAIT * (now - refused)
                time.sleep(min(pause, _LONGEST_PAUSE))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _takes(self, descriptor: int) -> bool:
        """Takes the turn and the file's lock, or neither."""
        if not self._turn.acquire(timeout=TURN_SECONDS):
            raise _busy("other work on them has not ended yet")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            self._turn.release()
            if isinstance(error, BlockingIOError):
                return False
            raise
        return True


def _busy(why: str) -> ToolError:
    return ToolError(
        f"The chat's files are busy: {why}. Nothing was done; try again later.", code=BUSY
    )
