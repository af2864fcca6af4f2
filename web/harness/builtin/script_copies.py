"""Folders in which copies of skills are, for as long as a script runs from one.

A server holds a lock on each of its own. So one whose server is gone is known, and removed by the
next that makes one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "skill-"
YOUNG_SECONDS = 60.0
"""One that has just been made may not be locked yet."""


@contextmanager
def copy_folder(where: Path | None = None) -> Iterator[Path]:
    """An empty folder, in that of the system for such things unless told; gone at the end. Blocks.

    What its process leaves when it is killed goes with the next one.
    """
    where = where or Path(tempfile.gettempdir())
    sweep(where)
    with tempfile.TemporaryDirectory(
        prefix=PREFIX, dir=where, ignore_cleanup_errors=True
    ) as folder:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(folder)
        finally:
            os.close(descriptor)


def sweep(where: Path) -> None:
    """Removes those of servers that are gone."""
    for folder in where.glob(f"{PREFIX}*"):
        with suppress(OSError):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(folder, flags)
            try:
                status = os.fstat(descriptor)
                if status.st_uid == os.getuid() and time.time() - status.st_mtime > YOUNG_SECONDS:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
