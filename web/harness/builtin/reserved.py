"""The reserved folder `.harness/` beside a chat's files, and the lock that lies in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator

from web.harness.builtin.paths import RESERVED_FOLDER, TEMPORARY_PREFIX
from web.harness.builtin.rooted import (
    FILE_MODE,
    RootedFolder,
    make_temporary,
    open_folder,
    open_plain,
    write_all,
)
from web.harness.values.errors import NotFound, ToolError

LOCK_NAME, RECORD = "lock", "record"
LOCK_SECONDS = 30.0
"""So long somebody else may hold the lock before that is an error."""
_LOCK_PAUSE = 0.005


@contextlib.contextmanager
def made_folder(rooted: RootedFolder) -> Iterator[int]:
    """A descriptor of the reserved folder, which is made where it is missing."""
    with rooted.folder([RESERVED_FOLDER], RESERVED_FOLDER, create=True) as descriptor:
        yield descriptor


@contextlib.contextmanager
def reserved_folder(rooted: RootedFolder) -> Iterator[int | None]:
    """A descriptor of the reserved folder; None where there is none."""
    with contextlib.ExitStack() as stack:
        descriptor = None
        with contextlib.suppress(NotFound):
            folder = rooted.folder([RESERVED_FOLDER], RESERVED_FOLDER, create=False)
            descriptor = stack.enter_context(folder)
        yield descriptor


@contextlib.contextmanager
def locked(reserved: int) -> Iterator[None]:
    """Holds the lock of a folder's files: one thread of one process does at a time.

    Raises ToolError when somebody else keeps it too long.
    """
    descriptor = _hold(reserved)
    try:
        yield
    finally:
        os.close(descriptor)


def _hold(reserved: int) -> int:
    """A descriptor of the lock file, which holds the lock until it is closed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(LOCK_NAME, flags, 0o644, dir_fd=reserved)
    end = time.monotonic() + LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                if time.monotonic() > end:
                    raise ToolError(
                        f"Another program has been writing to the chat's files for "
                        f"{LOCK_SECONDS:g} seconds. Try again later."
                    ) from None
            time.sleep(_LOCK_PAUSE)
    except BaseException:
        os.close(descriptor)
        raise


def write_record_files(reserved: int, files: Iterable[tuple[str, Iterable[bytes]]]) -> None:
    """Makes or replaces files of the readable record: all, or none where one cannot be made."""
    folder = open_folder(reserved, RECORD, create=True)
    made: dict[str, str] = {}
    try:
        for name, chunks in files:
            made[name] = _written_aside(folder, chunks)
        for name in tuple(made):
            os.replace(made[name], name, src_dir_fd=folder, dst_dir_fd=folder)
            del made[name]
        os.fsync(folder)
    finally:
        for temporary in made.values():
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
        os.close(folder)


def _written_aside(folder: int, chunks: Iterable[bytes]) -> str:
    """The name of a temporary file with that content."""
    name, descriptor = make_temporary(folder)
    try:
        for chunk in chunks:
            write_all(descriptor, chunk)
        os.fchmod(descriptor, FILE_MODE)
        os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
    return name


@contextlib.contextmanager
def open_record_file(reserved: int, name: str) -> Iterator[int]:
    """A descriptor of one file of the record. Raises NotFound where there is none."""
    try:
        folder = open_folder(reserved, RECORD, create=False)
    except FileNotFoundError:
        raise NotFound("No record of this chat was written yet.") from None
    try:
        descriptor = open_plain(folder, name, name)
    finally:
        os.close(folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove_temporaries(reserved: int) -> None:
    """Removes what a crash left of a log or a record that was being written."""
    _remove_temporaries(reserved)
    with contextlib.suppress(OSError):
        folder = open_folder(reserved, RECORD, create=False)
        try:
            _remove_temporaries(folder)
        finally:
            os.close(folder)


def _remove_temporaries(folder: int) -> None:
    for name in os.listdir(folder):
        if name.startswith(TEMPORARY_PREFIX):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
