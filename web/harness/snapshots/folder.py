"""A folder of snapshots, each in the file `ID.json`."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from web.harness.snapshots.form import (
    MAX_SNAPSHOT_BYTES,
    check_size,
    read_snapshot,
    write_snapshot,
)
from web.harness.snapshots.snapshot import Snapshot, checked_session_id
from web.harness.tools.beneath import chunks_of, open_plain
from web.harness.values.errors import NotFound, SnapshotRefused, ToolError

FILE_MODE = 0o600
FOLDER_MODE = 0o700

STALE_SECONDS = 3_600
"""After so long a file that was being written belongs to a process that is gone."""

_ENDING = ".json"
_TEMPORARY = re.compile(r"\.[A-Za-z0-9._-]+\.[0-9a-f]{16}\.tmp")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SnapshotFolder:
    """Snapshots in `storage_dir`, which the first save makes, for this user alone.

    All methods block, and may be called from several threads and processes: a file is replaced
    in one step, so that a reader or a crash finds the old snapshot or the new one, whole.
    """

    def __init__(
        self, storage_dir: str | os.PathLike[str], *, max_bytes: int = MAX_SNAPSHOT_BYTES
    ) -> None:
        self.storage_dir = Path(storage_dir)
        self._max_bytes = max_bytes

    def save(self, snapshot: Snapshot) -> str:
        """Writes a snapshot, in the place of an earlier one with its id, and returns the id.

        Raises as `write_snapshot`, and SnapshotRefused where the disk refuses; whatever was saved
        before is then as it was.
        """
        data = write_snapshot(snapshot, self._max_bytes)
        name = snapshot.session_id + _ENDING
        try:
            self.storage_dir.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            with self._opened() as folder:
                _sweep(folder)
                _write(folder, name, data)
        except OSError as error:
            raise SnapshotRefused(
                f"The session could not be saved in {self.storage_dir}: {error.strerror}.",
                hint="What was saved before is as it was, and the conversation goes on.",
                code="snapshot_not_saved",
            ) from error
        return snapshot.session_id

    def load(self, session_id: str) -> Snapshot:
        """Raises NotFound, LimitExceeded, and SnapshotRefused with what is wrong with it."""
        name = checked_session_id(session_id) + _ENDING
        snapshot = read_snapshot(self._read(name, session_id), self._max_bytes)
        if snapshot.session_id != session_id:
            raise SnapshotRefused(
                f"{name} holds another session: {snapshot.session_id}.",
                hint=f"Give it the name {snapshot.session_id}{_ENDING} to load it.",
            )
        return snapshot

    def list(self) -> list[str]:
        """The ids of all that is saved, in the order of the alphabet; none without a folder."""
        try:
            names = os.listdir(self.storage_dir)
        except FileNotFoundError:
            return []
        found = (name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))
        return sorted(each for each in found if _is_id(each))

    def delete(self, session_id: str) -> None:
        """Forgets a snapshot; one that is not there is fine."""
        name = checked_session_id(session_id) + _ENDING
        with contextlib.suppress(FileNotFoundError), self._opened() as folder:
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        descriptor = os.open(self.storage_dir, _FOLDER_FLAGS)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _read(self, name: str, session_id: str) -> bytes:
        try:
            with self._opened() as folder:
                descriptor = open_plain(folder, name, name, linked=True)
                try:
                    check_size(os.fstat(descriptor).st_size, self._max_bytes)
                    # It may grow while it is read.
                    return b"".join(chunks_of(descriptor, self._max_bytes + 1))
                finally:
                    os.close(descriptor)
        except (NotFound, FileNotFoundError):
            raise NotFound(
                f"There is no session {session_id} in {self.storage_dir}.",
                hint="Look at the id and the folder it was saved in.",
            ) from None
        except ToolError as error:
            raise SnapshotRefused(error.message) from None
        except OSError as error:
            raise SnapshotRefused(
                f"{name} in {self.storage_dir} cannot be read: {error.strerror}."
            ) from error


def _is_id(text: str) -> bool:
    try:
        return bool(checked_session_id(text))
    except SnapshotRefused:
        return False


def _write(folder: int, name: str, data: bytes) -> None:
    """Replaces a file in one step, and is back when it is on the disk."""
    temporary = f".{name}.{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, _WRITE_FLAGS, FILE_MODE, dir_fd=folder)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _sweep(folder: int) -> None:
    """Removes what writers left that were killed."""
    for name in os.listdir(folder):
        if not _TEMPORARY.fullmatch(name):
            continue
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if time.time() - status.st_mtime > STALE_SECONDS:
                os.unlink(name, dir_fd=folder)
