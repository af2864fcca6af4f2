"""How others can tell that a server is running: a file in `generated/.servers/`, which it holds
locked. The lock goes with the process, however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path

SERVERS = ".servers"

STORED = "stored"
"""Stands for a server in the markers of chats that outlive it: their folders are never left
behind while they are not deleted."""

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Presence:
    """One running server. `token` names it in the markers of its chats' folders."""

    def __init__(self, root: Path) -> None:
        self.token = secrets.token_hex(8)
        self._path = root / SERVERS / self.token
        self._descriptor = -1

    def begin(self) -> None:
        """Takes the lock. Raises OSError where the folder cannot be written to."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            self._descriptor = os.open(self._path, _FLAGS, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            if _is_at(self._descriptor, self._path):
                return
            # Somebody who looked before it was locked took it for one that was left behind.
            os.close(self._descriptor)

    def end(self) -> None:
        """Gives it back; more than once is fine."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._descriptor)
            self._descriptor = -1


def running_servers(root: Path) -> frozenset[str]:
    """The tokens of the servers that run now over this folder."""
    found: set[str] = set()
    with contextlib.suppress(OSError), os.scandir(root / SERVERS) as entries:
        for entry in entries:
            if _is_held(entry.path):
                found.add(entry.name)
    return frozenset(found)


def _is_held(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return True
    # Left by a server that was killed: nobody needs it any more. It goes while it is locked, so
    # that a server that begins with it sees it go.
    with contextlib.suppress(OSError):
        if _is_at(descriptor, path):
            os.unlink(path)
    os.close(descriptor)
    return False


def _is_at(descriptor: int, path: str | Path) -> bool:
    """Whether an open file is the one that others find."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
