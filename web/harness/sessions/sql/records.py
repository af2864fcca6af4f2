"""Records and blobs of sessions in SQLite or PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from web.harness.sessions.identity import HarnessIdentity, can_be_kept, check_scope
from web.harness.sessions.records import (
    MAX_SESSION_BYTES,
    Change,
    KeptBlob,
    Place,
    Record,
    RecordListener,
)
from web.harness.sessions.sql.database import Database, Row, Transaction
from web.harness.sessions.sql.leases import Scope
from web.harness.sessions.sql.rows import json_row
from web.harness.values.json_form import json_copy
from web.harness.values.messages import JsonObject

TOPIC = "records"

INLINE_ROWS = 50
"""Beyond so many, a thread reads their JSON."""

_WHERE = "tenant_id = :tenant AND user_id = :user AND session_id = :session"

_SELECT = f"SELECT session_id, place, deleted_at, body FROM harness_records WHERE {_WHERE}"

_UPDATE = (
    "UPDATE harness_records SET place = :place, deleted_at = :deleted_at, body = :body "
    f"WHERE {_WHERE}"
)

_INSERT = (
    "INSERT INTO harness_records (tenant_id, user_id, session_id, place, deleted_at, body) "
    "VALUES (:tenant, :user, :session, :place, :deleted_at, :body) "
    "ON CONFLICT (tenant_id, user_id, session_id) DO NOTHING RETURNING session_id"
)


class SqlRecords:
    """The `Records` in a database, which stays its owner's."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._collation = "BINARY" if database.name == "sqlite" else '"C"'
        self._position = "instr" if database.name == "sqlite" else "strpos"

    async def put(self, identity: HarnessIdentity, record: Record) -> None:
        await self.update(identity, record.session_id, lambda _: record)

    async def update(
        self, identity: HarnessIdentity, session_id: str, change: Change
    ) -> Record | None:
        check_scope(identity, session_id)
        scope = Scope(identity, session_id)

        async def work(transaction: Transaction) -> Record | None:
            while True:
                row = await transaction.row(_SELECT + self._database.locked, scope.values)
                before = None if row is None else _record(row)
                after = change(before)
                if after is None:
                    return before
                values = {**scope.values, **_columns(after)}
                if before is not None:
                    await transaction.do(_UPDATE, values)
                elif await transaction.row(_INSERT, values) is None:
                    continue  # Another one has made it at this moment.
                transaction.signal(TOPIC, scope.key)
                return replace(after, body=json.loads(values["body"]))

        return await self._database.write(work)

    async def get(self, identity: HarnessIdentity, session_id: str) -> Record | None:
        check_scope(identity, session_id)
        values = Scope(identity, session_id).values
        row = await self._database.read(lambda each: each.row(_SELECT, values))
        return None if row is None else _record(row)

    async def list(
        self, identity: HarnessIdentity, *, after: Place | None = None, limit: int | None = None
    ) -> list[Record]:
        check_scope(identity, "any")
        sql = (
            "SELECT session_id, place, deleted_at, body FROM harness_records "
            "WHERE tenant_id = :tenant AND user_id = :user"
        )
        values: dict[str, object] = {"tenant": identity.tenant_id, "user": identity.user_id}
        if after is not None:
            sql += (
                " AND (place < :place OR (place = :place AND session_id "
                f"COLLATE {self._collation} < :after))"
            )
            values |= {"place": float(after.place), "after": after.session_id}
        sql += f" ORDER BY place DESC, session_id COLLATE {self._collation} DESC"
        if limit is not None:
            sql += " LIMIT :limit"
            values["limit"] = limit
        rows = await self._database.read(lambda each: each.rows(sql, values))
        if len(rows) > INLINE_ROWS:
            return await asyncio.to_thread(lambda: [_record(row) for row in rows])
        return [_record(row) for row in rows]

    async def identities(self) -> Sequence[HarnessIdentity]:
        rows = await self._database.read(
            lambda each: each.rows("SELECT DISTINCT tenant_id, user_id FROM harness_records")
        )
        return [
            HarnessIdentity(*row) for row in sorted((str(each[0]), str(each[1])) for each in rows)
        ]

    async def having(self, field: str, text: str) -> Sequence[tuple[HarnessIdentity, str]]:
        # As text: what JSON may hold, and PostgreSQL's own JSON may not, costs nobody the rest.
        values = {"part": json_row({field: text})[1:-1]}
        rows = await self._database.read(
            lambda each: each.rows(
                "SELECT tenant_id, user_id, session_id FROM harness_records "
                f"WHERE {self._position}(body, :part) > 0",
                values,
            )
        )
        return [(HarnessIdentity(str(row[0]), str(row[1])), str(row[2])) for row in rows]

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        check_scope(identity, session_id)
        scope = Scope(identity, session_id)

        async def work(transaction: Transaction) -> None:
            await transaction.do(f"DELETE FROM harness_records WHERE {_WHERE}", scope.values)
            transaction.signal(TOPIC, scope.key)

        await self._database.write(work)

    def listen(self, listener: RecordListener) -> Callable[[], None]:
        def heard(key: str | None) -> None:
            if key is None:
                listener(None)
                return
            tenant, user, session_id = json.loads(key)
            listener((HarnessIdentity(tenant, user), session_id))

        return self._database.signals.listen(TOPIC, heard)


class SqlBlobs:
    """The `Blobs` in a database; `max_bytes` is what a session may have."""

    def __init__(self, database: Database, max_bytes: int = MAX_SESSION_BYTES) -> None:
        self._database = database
        self._max_bytes = max_bytes

    async def keep(self, identity: HarnessIdentity, session_id: str, blob: KeptBlob) -> bool:
        check_scope(identity, session_id)
        if len(blob.data) > self._max_bytes:
            return False
        values = Scope(identity, session_id).values

        async def work(transaction: Transaction) -> None:
            times = await transaction.row(
                f"SELECT {self._database.now}, "
                f"(SELECT max(kept_at) FROM harness_blobs WHERE {_WHERE})",
                values,
            )
            now, newest = times or (0.0, None)
            await transaction.do(
                "INSERT INTO harness_blobs (tenant_id, user_id, session_id, sha256, media_type, "
                "kept_at, size, data) VALUES (:tenant, :user, :session, :sha256, :media_type, "
                ":kept_at, :size, :data) "
                "ON CONFLICT (tenant_id, user_id, session_id, sha256) DO UPDATE SET "
                "kept_at = excluded.kept_at, media_type = excluded.media_type",
                {
                    **values,
                    "sha256": blob.sha256,
                    "media_type": blob.media_type,
                    # A clock of milliseconds may say the same twice, and the order counts.
                    "kept_at": max(float(now), float(newest or 0.0) + 0.000_001),
                    "size": len(blob.data),
                    "data": blob.data,
                },
            )
            await self._make_room(transaction, values, blob.sha256)

        await self._database.write(work)
        return True

    async def get(self, identity: HarnessIdentity, session_id: str, sha256: str) -> KeptBlob | None:
        check_scope(identity, session_id)
        if not can_be_kept(sha256):
            return None
        values = {**Scope(identity, session_id).values, "sha256": sha256}
        row = await self._database.read(
            lambda each: each.row(
                f"SELECT sha256, media_type, data FROM harness_blobs WHERE {_WHERE} "
                "AND sha256 = :sha256",
                values,
            )
        )
        return None if row is None else KeptBlob(str(row[0]), str(row[1]), bytes(row[2]))

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        check_scope(identity, session_id)
        values = Scope(identity, session_id).values
        await self._database.write(
            lambda each: each.do(f"DELETE FROM harness_blobs WHERE {_WHERE}", values)
        )

    async def _make_room(
        self, transaction: Transaction, values: dict[str, str], newest: str
    ) -> None:
        rows = await transaction.rows(
            f"SELECT sha256, size FROM harness_blobs WHERE {_WHERE} ORDER BY kept_at", values
        )
        excess = sum(int(row[1]) for row in rows) - self._max_bytes
        gone = []
        for sha256, size in rows:
            if excess > 0 and sha256 != newest:
                excess -= int(size)
                gone.append({**values, "sha256": sha256})
        await transaction.do(f"DELETE FROM harness_blobs WHERE {_WHERE} AND sha256 = :sha256", gone)


def _columns(record: Record) -> dict[str, Any]:
    return {
        "place": float(record.place),
        "deleted_at": None if record.deleted_at is None else float(record.deleted_at),
        "body": json_row(json_copy(record.body, "the body of a record")),
    }


def _record(row: Row) -> Record:
    session_id, place, deleted_at, body = row
    return Record(
        str(session_id),
        float(place),
        _body(body),
        None if deleted_at is None else float(deleted_at),
    )


def _body(text: str) -> JsonObject:
    """Empty for one that is damaged: it costs no other record."""
    with contextlib.suppress(ValueError, RecursionError):
        form = json.loads(text)
        if isinstance(form, dict):
            return form
    return {}
