"""The folder of a store: written to by one at a time, each file whole or as it was.

A file is written beside its place, brought to the disk, and renamed into it, so that a crash at any
moment leaves the old one or the new one. What a crash left beside is removed by the next writer.
Nothing in the folder is reached through a link.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from web.harness.memory.limits import MemoryLimits
from web.harness.tools.beneath import Mark, chunks_of, flush_names, mark_of, open_plain
from web.harness.tools.file_lock import FileLock
from web.harness.values.errors import LimitExceeded, MemoryRefused, NotFound

BUSY = "memory_busy"

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
"""What is remembered of a person is that person's."""

_YOUNG_NANOSECONDS = 20_000_000
"""Two changes of a file so close together may have the same time."""
_COARSE_NANOSECONDS = 2_000_000_000
"""The same on disks that keep whole seconds."""


def is_young(mark: Mark) -> bool:
    """Whether one more change right now may leave the mark as it is."""
    coarse = not any(at % 1_000_000_000 for at in mark[2:])
    return time.time_ns() - max(mark[2:]) < (_COARSE_NANOSECONDS if coarse else _YOUNG_NANOSECONDS)


class MemoryFolder:
    """One folder on disk, made when something is first written, for the store of that name.

    All methods block. They raise MemoryRefused where the disk refuses, or another program holds the
    folder for too long (code `BUSY`).
    """

    def __init__(self, root: Path, name: str, limits: MemoryLimits) -> None:
        self.root = root
        self._temporary = f".new-{name}-"
        self._lock = FileLock(f".{name}.lock", limits.busy_seconds, _busy)

    @contextmanager
    def opened(self) -> Iterator[int | None]:
        """A descriptor of the folder to read from; None where there is none yet."""
        with _disk(self.root):
            try:
                descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                descriptor = None
            try:
                yield descriptor
            finally:
                if descriptor is not None:
                    os.close(descriptor)

    @contextmanager
    def writing(self) -> Iterator[int]:
        """The same to write to, which nobody else does meanwhile."""
        with _disk(self.root):
            # The folder is the application's to name, links on the way to it too.
            if not self.root.is_dir():
                self.root.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
                flush_names(self.root.parent)
        with self.opened() as folder:
            if folder is None:
                raise MemoryRefused(f"The folder {self.root} was removed meanwhile.")
            with self._lock.held(folder):
                self._remove_leftovers(folder)
                yield folder

    def write(self, folder: int, name: str, content: bytes) -> Mark:
        """Makes or replaces a file in one step, within `writing`; its mark. Raises OSError."""
        temporary = f"{self._temporary}{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, _FILE_MODE, dir_fd=folder), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)
        return mark_of(os.stat(name, dir_fd=folder, follow_symlinks=False))

    def _remove_leftovers(self, folder: int) -> None:
        """Whoever holds the lock knows that nobody is writing them any more. Those of another store
        in the same folder are not its own."""
        for name in os.listdir(folder):
            if name.startswith(self._temporary):
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)


class Content(NamedTuple):
    """What was read of a file, and when that was written, in seconds since 1970. There is no mark
    where it is so young that one more change may not show."""

    data: bytes
    written: float
    mark: Mark | None


def read(folder: int, name: str, limit: int) -> Content:
    """A file as it is now.

    Raises NotFound, ToolError for what is no plain file, LimitExceeded, and OSError.
    """
    descriptor = open_plain(folder, name, name, linked=True)
    try:
        status = os.fstat(descriptor)
        content = b"".join(chunks_of(descriptor, limit + 1))
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise LimitExceeded(f"{name} is larger than {limit:,} bytes.", code="too_large")
    mark = mark_of(status)
    return Content(content, status.st_mtime_ns / 1e9, None if is_young(mark) else mark)


def remove(folder: int, name: str) -> None:
    """Removes a file for good; for who holds the lock. Raises NotFound and OSError."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        raise NotFound(f"There is no {name}.") from None
    os.fsync(folder)


@contextmanager
def _disk(root: Path) -> Iterator[None]:
    """Errors of the disk in words."""
    try:
        yield
    except OSError as error:
        raise MemoryRefused(
            f"The folder {root} cannot be used: {error.strerror}.",
            hint="What was there before is as it was.",
            code="memory_disk",
        ) from error


def _busy(why: str) -> MemoryRefused:
    return MemoryRefused(
        f"What is remembered cannot be changed just now: {why}.",
        hint="Nothing was changed. Try again.",
        code=BUSY,
    )
