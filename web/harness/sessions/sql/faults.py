"""What went wrong in a database, in words: what happened, what was kept, what to do."""

from __future__ import annotations

import sqlite3

from web.harness.values.errors import StoreError

KEPT = "Nothing of this was written, and all that was stored before is as it was."

_SQLITE = {
    "SQLITE_FULL": (
        "store_full",
        "The disk, or the room that the database may take, is full.",
        f"{KEPT} Make room and try again.",
    ),
    "SQLITE_IOERR": (
        "store_failed",
        "The disk could not be read or written.",
        f"{KEPT} Make room, or look at the disk, and try again.",
    ),
    "SQLITE_BUSY": (
        "store_locked",
        "Another program has locked the database.",
        f"{KEPT} Close that program, or try again in a moment.",
    ),
    "SQLITE_LOCKED": (
        "store_locked",
        "Another program has locked the database.",
        f"{KEPT} Close that program, or try again in a moment.",
    ),
    "SQLITE_READONLY": (
        "store_read_only",
        "The database can be read only.",
        f"{KEPT} Let this user write the file and its folder.",
    ),
    "SQLITE_CORRUPT": (
        "store_corrupt",
        "The file of the database is damaged.",
        "Nothing was written. Copy the file away, and use a backup or `sqlite3 FILE .recover`.",
    ),
    "SQLITE_NOTADB": (
        "store_corrupt",
        "The file is no SQLite database, or its beginning is damaged.",
        "Nothing was written. Name another file, or use a backup.",
    ),
    "SQLITE_CANTOPEN": (
        "store_unavailable",
        "The file of the database cannot be opened.",
        "Nothing was written. Check its folder, and that this user may write there.",
    ),
}

_LOST = ("08", "57P")
"""SQLSTATEs of a connection, or a server, that is gone or not yet there."""

_REPEATED = ("40001", "40P01", "55P03")
"""Of transactions that lost against others and may just be tried again."""


def sqlite_fault(error: BaseException) -> StoreError:
    """What an error of SQLite means; a code that is not known is told as it is."""
    name = getattr(error, "sqlite_errorname", None) or ""
    family = "_".join(name.split("_")[:2])
    if family in _SQLITE:
        code, message, hint = _SQLITE[family]
        return StoreError(message, hint=hint, code=code)
    if isinstance(error, sqlite3.DatabaseError | OSError):
        return StoreError(f"The database refused: {error}", hint=KEPT)
    return StoreError(f"The database failed: {type(error).__name__}", hint=KEPT)


def postgres_fault(error: BaseException) -> StoreError:
    """What an error of PostgreSQL or of the way to it means."""
    state = str(getattr(error, "sqlstate", None) or "")
    if state.startswith("22"):
        # What the driver says of it quotes the value.
        return StoreError("A value cannot be kept in PostgreSQL.", hint=KEPT)
    if not state or state.startswith(_LOST):
        return StoreError(
            "The database cannot be reached.",
            hint="Whether the last change was written is not known; all before it is kept. It is "
            "tried again by itself; check that PostgreSQL runs.",
            code="store_unavailable",
            transient=True,
        )
    if state in _REPEATED:
        return StoreError("Another transaction came first.", hint=KEPT, transient=True)
    if state in ("53100", "53200"):
        return StoreError(
            "The database has no room left.",
            hint=f"{KEPT} Make room and try again.",
            code="store_full",
        )
    if state == "53300":
        return StoreError(
            "The database takes no more connections.",
            hint=f"{KEPT} Raise max_connections, or run fewer servers.",
            code="store_busy",
            transient=True,
        )
    if state == "25006":
        return StoreError(
            "The database can be read only.",
            hint=f"{KEPT} Name the primary, not a replica.",
            code="store_read_only",
        )
    if state in ("XX001", "XX002"):
        return StoreError(
            "The database is damaged.",
            hint="Nothing was written. Look into its log, and use a backup.",
            code="store_corrupt",
        )
    if state.startswith("28") or state == "3D000" or state == "42501":
        return StoreError(
            f"PostgreSQL refuses: {_first_line(error)}",
            hint="Check user, password, database and rights in the address of the store.",
            code="store_refused",
        )
    return StoreError(f"PostgreSQL refused ({state}): {_first_line(error)}", hint=KEPT)


def unreachable() -> StoreError:
    """Of a server that was not there when it was to be opened."""
    return StoreError(
        "PostgreSQL cannot be reached at the start.",
        hint="Nothing was read or written. Check that it runs, and host, port and name in the "
        "address of the store; then start again.",
        code="store_unavailable",
    )


def _first_line(error: BaseException) -> str:
    """Of the server's own words; what it quotes from our data stands in further lines."""
    told = error.__cause__ or error
    return str(told).partition("\n")[0].rpartition(">: ")[2][:200]
