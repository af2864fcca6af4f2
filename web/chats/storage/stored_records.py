"""Chat records in a durable store: written as they change, the newest of each, without hurry."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias, get_args

from web.chats.parts.kinds import ChatState
from web.chats.records.attachments import PendingAttachment
from web.chats.records.merging import merged
from web.chats.records.records import ChatRecord
from web.chats.setup import Setup
from web.chats.storage.locks import Locks
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Place, Record, RecordListener, Records
from web.harness.values.errors import StoreError
from web.harness.values.json_form import Fields, JsonRefused
from web.harness.values.messages import JsonObject, ResourceBlock

log = logging.getLogger(__name__)

PUT_SECONDS = 2.0
"""A person waits no longer for a store that does not work; it is written later."""

STORE_SECONDS = 4.0
"""And no longer for one that has to work."""

AGAIN_SECONDS = 2.0
"""After the store failed."""

MOST_GONE = 1_000
"""Chats that were deleted, whose last writes may still be on their way."""

INLINE_ROWS = 50
"""Beyond so many, a thread makes records of rows."""

_Records: TypeAlias = list[ChatRecord]
_Key = tuple[HarnessIdentity, str]
Written = Callable[[HarnessIdentity, ChatRecord, Record | None], None]


@dataclass(slots=True)
class _Waiting:
    """What was put, until it is written or another is put. `failure` is why it is not yet."""

    record: ChatRecord
    failure: StoreError | None = None


class StoredChatRecords:
    """The `ChatRecords` over the records of a session store.

    A write changes of the row what was changed here, and leaves what other servers changed. One
    that fails is tried again until it succeeds; `failure` says why it has not yet.
    """

    def __init__(self, records: Records, tasks: TaskOwner) -> None:
        self._records = records
        self._tasks = tasks
        self._waiting: dict[_Key, _Waiting] = {}
        self._locks: Locks[_Key] = Locks()
        self._gone: dict[_Key, None] = {}
        """The newest of what was deleted, or never to be: nothing brings it back."""
        self._soon: dict[_Key, asyncio.Task[None]] = {}
        self.written: Written = _unheard
        """Called with each record that was written, and the row as it is then; with None where
        others had deleted it for good."""

    @property
    def failure(self) -> StoreError | None:
        """Why something is not written yet, as far as that is known."""
        return next((each.failure for each in self._waiting.values() if each.failure), None)

    def listen(self, listener: RecordListener) -> None:
        """Calls it with each record that was written or deleted, here or by another server."""
        # A store that is opened when the server starts is there by now.
        self._records.listen(listener)

    def is_waiting(self, identity: HarnessIdentity, chat_id: str) -> bool:
        """Whether something newer than what is stored is about to be written."""
        return (identity, chat_id) in self._waiting

    def put_now(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        """Has it written at once; nobody waits for it."""
        self._put((identity, record.id), record)
        with suppress(RuntimeError):  # The server ends, and `flush` writes it.
            self._tasks.create_task(self._write((identity, record.id)))

    async def put(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        """Returns when it is written, or when that failed for now."""
        key = (identity, record.id)
        self._put(key, record)
        writing = self._tasks.create_task(self._write(key))
        await asyncio.wait({writing}, timeout=PUT_SECONDS)

    async def store(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        """Returns when it is written. Raises StoreError where that fails or takes too long: it is
        still written later, unless another is put or it is dropped."""
        key = (identity, record.id)
        self._gone.pop(key, None)
        waiting = self._put(key, record)
        writing = self._tasks.create_task(self._write(key))
        done, _ = await asyncio.wait({writing}, timeout=STORE_SECONDS)
        left = self._waiting.get(key)
        # Another may have been put since, and this one be written, or wait as that does.
        if left is not None and (left is waiting or left.failure is not None or not done):
            raise left.failure or StoreError(
                "The store of chats does not answer.",
                hint="Try again in a moment.",
                code="store_busy",
            )

    def drop(self, identity: HarnessIdentity, chat_id: str) -> None:
        """Has a record that is not written yet never be."""
        self._drop((identity, chat_id))

    async def under_way(self) -> Sequence[_Key]:
        """The chats of everybody whose records say that something is done in them; perhaps some
        more."""
        found = [await self._records.having("state", each) for each in ("working", "asking")]
        return list(dict.fromkeys(key for each in found for key in each))

    async def get(self, identity: HarnessIdentity, chat_id: str) -> ChatRecord | None:
        waiting = self._waiting.get((identity, chat_id))
        if waiting is not None:
            return waiting.record
        found = await self._records.get(identity, chat_id)
        try:
            return record_from(found) if found is not None else None
        except JsonRefused as error:
            raise JsonRefused(
                f"The record of this chat cannot be read: {error.message}",
                hint="It was left as it is; other chats are not touched.",
                code="store_corrupt",
            ) from None

    async def list(self, identity: HarnessIdentity) -> _Records:
        found: _Records = []
        after: Place | None = None
        while True:
            page, after = await self.page(identity, after, 500)
            found += page
            if after is None:
                return found
            await asyncio.sleep(0)

    async def page(
        self, identity: HarnessIdentity, after: Place | None, limit: int
    ) -> tuple[_Records, Place | None]:
        """The next records, highest order first, and where the page after them begins."""
        rows = await self._records.list(identity, after=after, limit=limit)
        if len(rows) > INLINE_ROWS:
            found = await asyncio.to_thread(_read, rows)
        else:
            found = _read(rows)
        if len(rows) < limit:
            return found, None
        return found, Place(rows[-1].place, rows[-1].session_id)

    async def identities(self) -> Sequence[HarnessIdentity]:
        return await self._records.identities()

    async def delete(self, identity: HarnessIdentity, chat_id: str) -> None:
        key = (identity, chat_id)
        self._drop(key)
        async with self._locks.of(key):
            await self._records.delete(identity, chat_id)

    async def flush(self) -> None:
        """Writes what still waits, as far as that can be done: the server ends, and nobody is shown
        what others changed."""
        self.written = _unheard
        for key in list(self._waiting):
            await self._write(key)

    def _put(self, key: _Key, record: ChatRecord) -> _Waiting:
        before = self._waiting.get(key)
        # As far as it is known, it fails as the one before did.
        waiting = _Waiting(record, before.failure if before is not None else None)
        self._waiting[key] = waiting
        return waiting

    def _drop(self, key: _Key) -> None:
        self._gone[key] = None
        while len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]
        self._waiting.pop(key, None)

    def _write_again(self, key: _Key) -> None:
        if key not in self._soon:
            self._soon[key] = self._tasks.create_task(self._later(key))

    async def _later(self, key: _Key) -> None:
        try:
            await asyncio.sleep(AGAIN_SECONDS)
        finally:
            del self._soon[key]
        await self._write(key)

    async def _write(self, key: _Key) -> None:
        async with self._locks.of(key):
            waiting = self._waiting.get(key)
            if waiting is None or key in self._gone:
                return
            record = waiting.record
            try:
                row = await self._records.update(*key, lambda row: _changed(record, row))
                if key in self._gone:
                    await self._records.delete(*key)  # It was dropped meanwhile.
            except StoreError as error:
                log.warning("A chat's record waits to be written: %s", error.message)
                if (left := self._waiting.get(key)) is not None:
                    left.failure = error
                # When the server ends there is nobody left to try.
                with suppress(RuntimeError):
                    self._write_again(key)
                return
            newer = self._waiting.get(key)
            if newer is waiting:
                del self._waiting[key]
            elif newer is not None and row is not None:
                newer.record = rebased(newer.record, row, record)
            for each in self._waiting.values():
                each.failure = None  # The store works again.
            if key not in self._gone:
                self.written(key[0], record, row)


def _unheard(identity: HarnessIdentity, record: ChatRecord, row: Record | None) -> None: ...


def _changed(record: ChatRecord, row: Record | None) -> Record | None:
    """The row with what was changed in a record; None where others deleted it for good."""
    if row is None:
        return None if record.stored is not None else record_form(record)
    return merged(record.stored, record_form(record), row)


def rebased(record: ChatRecord, row: Record, written: ChatRecord | None = None) -> ChatRecord:
    """What a newer row is with what was changed in a record, of whose changes those of `written`
    are in the row already; what is attached has its id alone."""
    base = record.stored
    if written is not None and written.stored == base:
        base = record_form(written)
    return replace(record_from(merged(base, record_form(record), row)), stored=row)


def _read(rows: Sequence[Record]) -> _Records:
    found: _Records = []
    for row in rows:
        try:
            found.append(record_from(row))
        except JsonRefused as error:
            # One that cannot be read costs no other.
            log.error("The record of chat %s cannot be read: %s", row.session_id, error.message)
    return found


def record_form(record: ChatRecord) -> Record:
    """A record as a store keeps it; of what is attached, the ids."""
    body: JsonObject = {
        "model": record.model,
        "created_at": record.created_at,
        "title": record.title,
        "system_prompt": record.system_prompt,
        "draft": record.draft,
        "files_go": record.files_go,
        "tools_off": list(record.tools_off),
        "skills_off": list(record.skills_off),
        "attachments": [each.id for each in record.attachments],
        "setup": asdict(record.setup),
        "memory": record.memory,
        "grants": list(record.grants),
        "servers": list(record.servers),
        "taking_back": list(record.taking_back),
        "state": record.state,
    }
    return Record(record.id, record.order, body, record.deleted_at)


def record_from(row: Record) -> ChatRecord:
    """The record of a row; what is attached has its id and nothing yet. Raises JsonRefused."""
    fields = Fields(row.body, "record")
    return ChatRecord(
        row.session_id,
        fields.text("model"),
        fields.number_or_none("created_at") or 0.0,
        row.place,
        title=fields.text("title", ""),
        system_prompt=fields.text("system_prompt", ""),
        draft=fields.text("draft", ""),
        deleted_at=row.deleted_at,
        files_go=fields.flag("files_go", False),
        tools_off=_texts(fields, "tools_off"),
        skills_off=_texts(fields, "skills_off"),
        attachments=tuple(PendingAttachment(id, _NOT_YET) for id in _texts(fields, "attachments")),
        setup=_setup(fields.mapping("setup", {})),
        memory=fields.flag("memory", False),
        grants=_texts(fields, "grants"),
        servers=tuple(fields.items("servers", [])),
        taking_back=_texts(fields, "taking_back"),
        state=_state(fields.text("state", "idle")),
        stored=row,
    )


_NOT_YET = ResourceBlock("", "", "", "")


def with_blocks(record: ChatRecord, blocks: Callable[[str], Any]) -> ChatRecord:
    """A record whose attachments are there: `blocks` gives each by its id, None for one lost."""
    found = [(each.id, blocks(each.id)) for each in record.attachments]
    kept = tuple(PendingAttachment(id, block) for id, block in found if block is not None)
    stored = record.stored
    if stored is not None and "attachments" in stored.body:
        # What is only not known here yet was not taken off.
        lost = {id for id, block in found if block is None}
        ids = [id for id in stored.body["attachments"] if id not in lost]
        stored = replace(stored, body=stored.body | {"attachments": ids})
    return replace(record, attachments=kept, stored=stored)


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(map(str, fields.items(name, [])))


def _state(text: str) -> ChatState:
    return next((each for each in get_args(ChatState) if each == text), "idle")


def _setup(form: JsonObject) -> Setup:
    known = {name: form.get(name) for name in Setup.__dataclass_fields__}
    return Setup(**known)
