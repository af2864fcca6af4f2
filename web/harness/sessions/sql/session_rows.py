"""Reads and writes the rows of one session within a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from web.harness.sessions.sql.database import Database, Row, Transaction, Values
from web.harness.sessions.sql.leases import Scope
from web.harness.sessions.sql.rows import Changes

_WHERE = "tenant_id = :tenant AND user_id = :user AND session_id = :session"


@dataclass(frozen=True, slots=True)
class Head:
    """The row of a session; `key` is what its other rows name it by."""

    key: int
    revision: int
    replayable: bool
    token: str


async def head_of(transaction: Transaction, scope: Scope) -> Head | None:
    row = await transaction.row(
        f"SELECT id, revision, replayable, token FROM harness_sessions WHERE {_WHERE}",
        scope.values,
    )
    return None if row is None else Head(int(row[0]), int(row[1]), bool(row[2]), str(row[3]))


async def state_of(transaction: Transaction, key: int) -> str:
    row = await transaction.row(
        "SELECT body FROM harness_states WHERE session = :key", {"key": key}
    )
    return "{}" if row is None else str(row[0])


async def names_of(transaction: Transaction, key: int) -> list[str]:
    rows = await transaction.rows(
        "SELECT name FROM harness_conversations WHERE session = :key ORDER BY name", {"key": key}
    )
    return [str(row[0]) for row in rows]


async def messages_of(transaction: Transaction, key: int) -> list[Row]:
    """`(conversation, body)` in order."""
    return list(
        await transaction.rows(
            "SELECT conversation, body FROM harness_messages WHERE session = :key "
            "ORDER BY conversation, position",
            {"key": key},
        )
    )


async def pictures_of(transaction: Transaction, key: int) -> dict[str, bytes]:
    rows = await transaction.rows(
        "SELECT sha256, data FROM harness_pictures WHERE session = :key", {"key": key}
    )
    return {str(row[0]): bytes(row[1]) for row in rows}


async def write(
    transaction: Transaction,
    database: Database,
    scope: Scope,
    head: Head | None,
    changes: Changes,
    token: str,
    replayable: bool,
    whole: bool,
) -> int:
    """Writes what is new and returns the revision. `whole`: what is stored is not known."""
    values: dict[str, Any] = {"token": token, "replayable": int(replayable)}
    if head is None:
        await transaction.do(
            "INSERT INTO harness_sessions (tenant_id, user_id, session_id, revision, replayable, "
            f"token, updated_at) VALUES (:tenant, :user, :session, 1, :replayable, :token, "
            f"{database.now})",
            {**scope.values, **values},
        )
        head = await head_of(transaction, scope)
        assert head is not None  # noqa: S101 - it was written in this transaction
        revision = 1
    else:
        revision = head.revision + 1
        await transaction.do(
            "UPDATE harness_sessions SET revision = :revision, replayable = :replayable, "
            f"token = :token, updated_at = {database.now} WHERE id = :key",
            {**values, "revision": revision, "key": head.key},
        )
    if whole and head.revision:
        await _clear(transaction, head.key)
    await _write_state(transaction, head.key, changes, whole)
    await _write_messages(transaction, head.key, changes)
    if whole or changes.cuts or changes.gone:
        await _drop_pictures(transaction, head.key, changes)
    return revision


async def remove(transaction: Transaction, scope: Scope) -> None:
    """All rows of a session but its lease; the database takes along what names it."""
    await transaction.do(f"DELETE FROM harness_sessions WHERE {_WHERE}", scope.values)


async def rename(transaction: Transaction, key: int, new_id: str) -> None:
    await transaction.do(
        "UPDATE harness_sessions SET session_id = :new WHERE id = :key", {"new": new_id, "key": key}
    )


async def ids_of(
    transaction: Transaction, values: Values, collation: str, limit: int | None
) -> list[str]:
    """Ids in rising order of their characters, whatever the database takes for an order."""
    rows = await transaction.rows(
        "SELECT session_id FROM harness_sessions WHERE tenant_id = :tenant AND user_id = :user "
        f"AND session_id COLLATE {collation} > :after ORDER BY session_id COLLATE {collation}"
        + ("" if limit is None else " LIMIT :limit"),
        {**values, **({} if limit is None else {"limit": limit})},
    )
    return [str(row[0]) for row in rows]


async def _clear(transaction: Transaction, key: int) -> None:
    for table in ("harness_messages", "harness_conversations"):
        await transaction.do(f"DELETE FROM {table} WHERE session = :key", {"key": key})


async def _drop_pictures(transaction: Transaction, key: int, changes: Changes) -> None:
    """Those that no message has any more, as where a conversation was made shorter."""
    rows = await transaction.rows(
        "SELECT sha256 FROM harness_pictures WHERE session = :key", {"key": key}
    )
    if stored := {str(row[0]) for row in rows}:
        await transaction.do(
            "DELETE FROM harness_pictures WHERE session = :key AND sha256 = :sha256",
            [{"key": key, "sha256": each} for each in sorted(stored - changes.all_pictures())],
        )


async def _write_state(transaction: Transaction, key: int, changes: Changes, whole: bool) -> None:
    if changes.state_changed or whole:
        await transaction.do(
            "INSERT INTO harness_states (session, body) VALUES (:key, :body) "
            "ON CONFLICT (session) DO UPDATE SET body = excluded.body",
            {"key": key, "body": changes.state},
        )


async def _write_messages(transaction: Transaction, key: int, changes: Changes) -> None:
    for name in changes.gone:
        await transaction.do(
            "DELETE FROM harness_conversations WHERE session = :key AND name = :name",
            {"key": key, "name": name},
        )
    for name, position in [*changes.cuts.items(), *((name, 0) for name in changes.gone)]:
        await transaction.do(
            "DELETE FROM harness_messages WHERE session = :key AND conversation = :name "
            "AND position >= :position",
            {"key": key, "name": name, "position": position},
        )
    await transaction.do(
        "INSERT INTO harness_conversations (session, name) VALUES (:key, :name) "
        "ON CONFLICT (session, name) DO NOTHING",
        [{"key": key, "name": name} for name in changes.new_names],
    )
    await transaction.do(
        "INSERT INTO harness_pictures (session, sha256, data) VALUES (:key, :sha256, :data) "
        "ON CONFLICT (session, sha256) DO NOTHING",
        [{"key": key, "sha256": sha256, "data": data} for sha256, data in changes.pictures.items()],
    )
    await transaction.do(
        "INSERT INTO harness_messages (session, conversation, position, body) "
        "VALUES (:key, :name, :position, :body)",
        [
            {"key": key, "name": name, "position": position, "body": body}
            for name, position, body in changes.messages
        ],
    )
