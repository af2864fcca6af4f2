"""Which files of a folder were written, told by the system (Linux has `inotify`), so that not all
of very many have to be looked at."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
import weakref
from typing import Any

_MODIFIED, _ATTRIBUTES, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x40, 0x80
_CREATED, _DELETED, _DELETED_SELF, _MOVED_SELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNTED, _OVERFLOW, _IGNORED, _ONLY_FOLDER = 0x2000, 0x4000, 0x8000, 0x1000000
_ASKED = (_MODIFIED | _ATTRIBUTES | _MOVED_FROM | _MOVED_TO | _CREATED | _DELETED) | (
    _DELETED_SELF | _MOVED_SELF | _ONLY_FOLDER
)
_LOST = _DELETED_SELF | _MOVED_SELF | _UNMOUNTED | _OVERFLOW | _IGNORED
_HEAD = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class FolderWatch:
    """Collects what is written in one folder from now on, by any program on this machine.

    It is not told of what another machine writes to a shared disk, of a file that is written by a
    name it has elsewhere, and of memory that is mapped: whoever needs those looks now and then.
    """

    def __init__(self, descriptor: int, place: tuple[int, int]) -> None:
        """For `of`, which makes it."""
        self._descriptor = descriptor
        self._place = place
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def of(cls, folder: int) -> FolderWatch | None:
        """A watch over an open folder; None where the system has none, or none left."""
        libc = _libc()
        if libc is None:
            return None
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        watch = cls(descriptor, _place(folder))
        # By its descriptor, so that it is this folder whatever has its name by now.
        path = f"/proc/self/fd/{folder}".encode()
        return watch if libc.inotify_add_watch(descriptor, path, _ASKED) >= 0 else None

    def is_of(self, folder: int) -> bool:
        return self._place == _place(folder)

    def changed(self) -> set[str] | None:
        """The names in the folder that changed since the last call; None where any may have."""
        names: set[str] = set()
        known = True
        while True:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return names if known else None
            except OSError:
                return None
            at = 0
            while at < len(data):
                _, mask, _, size = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                known = known and not mask & _LOST
                names.add(os.fsdecode(data[at : at + size].rstrip(b"\0")))
                at += size


def _place(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


@functools.cache
def _libc() -> Any:
    """The C library if it has what is needed, else None."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.inotify_init1.argtypes = (ctypes.c_int,)
        libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    except (OSError, AttributeError):
        return None
    return libc
