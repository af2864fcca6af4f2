"""A lock that one thread of one process holds at a time, kept by a file in a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator

TURN_SECONDS = 30.0
"""So long others of this process may have the lock: their work is known to end."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_PART_OF_WAIT = 0.1
"""The pause between two tries grows with the time that was waited."""


class FileLock:
    """One a folder. Threads that share it take turns in memory, all others at the file `name`.

    Every wait is bounded, that for another program by `busy_seconds`. Whoever waits for one gives
    the turn away meanwhile, so that each waits for that program once and not for those before it,
    and many of them cost little. `busy` makes the error of who waited in vain, from words on why.
    """

    def __init__(self, name: str, busy_seconds: float, busy: Callable[[str], Exception]) -> None:
        self._name = name
        self._busy_seconds = busy_seconds
        self._busy = busy
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def held(self, folder: int) -> Iterator[None]:
        """The lock, held; `folder` is a descriptor of the one that its file lies in. Blocks.

        Raises the error of `busy` when somebody else keeps it too long.
        """
        descriptor = self._taken(folder)
        try:
            yield
        finally:
            os.close(descriptor)
            self._turn.release()

    def _taken(self, folder: int) -> int:
        """A descriptor of the lock file, which holds the lock until it is closed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self._name, flags, 0o644, dir_fd=folder)
        try:
            refused: float | None = None
            while not self._takes(descriptor):
                now = time.monotonic()
                refused = now if refused is None else refused
                if now - refused > self._busy_seconds:
                    raise self._busy("another program holds them")
                pause = _SHORTEST_PAUSE + _PART_OF_WAIT * (now - refused)
                time.sleep(min(pause, _LONGEST_PAUSE))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _takes(self, descriptor: int) -> bool:
        """Takes the turn and the file's lock, or neither."""
        if not self._turn.acquire(timeout=TURN_SECONDS):
            raise self._busy("other work on them has not ended yet")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            self._turn.release()
            if isinstance(error, BlockingIOError):
                return False
            raise
        return True
