"""Whether the file under a SQLite database is still the one that was opened.

A connection goes on with a file that was moved, deleted or replaced, and what it writes is lost to
whoever opens the path again. So each transaction that writes looks at the path before it commits.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from web.harness.values.errors import StoreError

FINGERPRINT = (
    "SELECT (SELECT group_concat(version || ':' || applied_at) FROM harness_schema), "
    "(SELECT count(*) FROM harness_runs), (SELECT total(last) FROM harness_runs), "
    "(SELECT count(*) FROM harness_records), (SELECT total(place) FROM harness_records), "
    "(SELECT count(*) FROM harness_sessions), (SELECT total(revision) FROM harness_sessions)"
)
"""One row that two databases have in common only if one is a whole copy of the other."""


class SqliteFile:
    """The file at a path, known again by its device and number."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._opened = _number_of(path)
        self._refused: tuple[int, ...] | None = None

    def fault(self) -> StoreError | None:
        """Why what is written now would not be found at the path; None where it would."""
        found = _number_of(self.path)
        if found is None:
            return _moved()
        # A file that was not there when it was to be opened has failed in its own way.
        return _replaced() if self._opened not in (None, found) else None

    def log_fault(self) -> StoreError | None:
        """The same of the log beside it, which is there during every transaction that writes."""
        return None if self._log.exists() else _moved()

    @property
    def is_another(self) -> bool:
        """Whether another file lies at the path, which was not found to be another database."""
        found = _number_of(self.path)
        return found not in (None, self._opened) and _state_of(self.path) != self._refused

    def take_if(self, ours: tuple[object, ...]) -> bool:
        """Takes what lies at the path for the database if it is a whole copy of it, by the row that
        `FINGERPRINT` gives for ours. Blocks."""
        found = _number_of(self.path)
        if _fingerprint(self.path) == ours and found == _number_of(self.path):
            self._opened = found
            return True
        self._refused = _state_of(self.path)
        return False


def _number_of(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _state_of(path: Path) -> tuple[int, ...] | None:
    """The number of a file that is gone may be another one's, which was changed at another time."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _fingerprint(path: Path) -> tuple[object, ...] | None:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=1)
        try:
            return tuple(connection.execute(FINGERPRINT).fetchone())
        finally:
            connection.close()
    except sqlite3.Error:
        return None


def _moved() -> StoreError:
    return StoreError(
        "The file of the database was moved or deleted while the server runs.",
        hint="Nothing of this was written. Put the file back, with those beside it whose names "
        "begin alike; if it is lost, restart the server.",
        code="store_unavailable",
    )


def _replaced() -> StoreError:
    return StoreError(
        "The file of the database was replaced by another one while the server runs.",
        hint="Nothing of this was written, to neither. Put the file back, or restart the server to "
        "go on with the new one.",
        code="store_unavailable",
    )
