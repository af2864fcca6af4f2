"""The reserved folder `.harness/` beside a chat's files, and the record that lies in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from web.harness.builtin.paths import RESERVED_FOLDER, TEMPORARY_PREFIX
from web.harness.builtin.rooted import RootedFolder, make_temporary, write_all
from web.harness.tools.beneath import FILE_MODE, open_folder, open_plain
from web.harness.values.errors import NotFound

RECORD = "record"


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
