"""What is kept of a session beside its snapshot, by no lease: a record, and blobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from web.harness.sessions.identity import HarnessIdentity, check_scope
from web.harness.values.json_form import json_copy
from web.harness.values.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Record:
    """What an application keeps of a session. `place` sorts the list, highest first.

    `body` is JSON, such as title, draft and settings. `deleted_at` is set, in seconds since the
    epoch, while a deletion can be undone.
    """

    session_id: str
    place: float
    body: JsonObject = field(default_factory=dict)
    deleted_at: float | None = None


class Place(NamedTuple):
    """Where a page of a list ended."""

    place: float
    session_id: str


RecordListener = Callable[[tuple[HarnessIdentity, str] | None], None]
"""Called with whose record was written or deleted, here or by another server on the same database;
with None where that may be any."""


Change = Callable[[Record | None], Record | None]
"""What becomes of a record, None where there is none: a record of the same id, or None to leave it
as it is. It may be called more than once."""


class Records(Protocol):
    """Records by identity and session id. Each call is atomic; identities never meet. The body of
    one that is damaged is empty.

    All raise HarnessError (`invalid_id`), NotSerialisable for a body that is no JSON, StoreError.
    """

    async def put(self, identity: HarnessIdentity, record: Record) -> None:
        """Writes a record, new or known, whole."""
        ...

    async def update(
        self, identity: HarnessIdentity, session_id: str, change: Change
    ) -> Record | None:
        """Writes what `change` makes of a record, which nobody else writes meanwhile. Returns the
        record as it is then, None where there is none."""
        ...

    async def get(self, identity: HarnessIdentity, session_id: str) -> Record | None: ...

    async def list(
        self, identity: HarnessIdentity, *, after: Place | None = None, limit: int | None = None
    ) -> list[Record]:
        """Records of an identity, deleted ones included, highest place first, and of equal places
        the highest id. A page begins `after` the last record of the page before."""
        ...

    async def identities(self) -> Sequence[HarnessIdentity]:
        """Everybody who has a record, in rising order."""
        ...

    async def having(self, field: str, text: str) -> Sequence[tuple[HarnessIdentity, str]]:
        """Of everybody, the records whose body has this text in this field; some that have it
        deeper in their body may be among them."""
        ...

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        """Forgets a record; an unknown one is fine."""
        ...

    def listen(self, listener: RecordListener) -> Callable[[], None]:
        """Calls it after each change, until what is returned is called."""
        ...


class KeptBlob(NamedTuple):
    """Binary data; `media_type` is what its bytes are."""

    sha256: str
    media_type: str
    data: bytes


class Blobs(Protocol):
    """Binary data of sessions by its SHA-256 in hex; the oldest of a session goes first."""

    async def keep(self, identity: HarnessIdentity, session_id: str, blob: KeptBlob) -> bool:
        """False where it alone is more than a session may have."""
        ...

    async def get(
        self, identity: HarnessIdentity, session_id: str, sha256: str
    ) -> KeptBlob | None: ...

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        """Drops all blobs of a session; an unknown one is fine."""
        ...


MAX_SESSION_BYTES = 24_000_000
"""Of the blobs of one session."""

_Key = tuple[HarnessIdentity, str]


class InMemoryRecords:
    """`Records` that are gone with the process."""

    def __init__(self) -> None:
        self._records: dict[_Key, Record] = {}
        self._listeners: list[RecordListener] = []

    async def put(self, identity: HarnessIdentity, record: Record) -> None:
        await self.update(identity, record.session_id, lambda _: record)

    async def update(
        self, identity: HarnessIdentity, session_id: str, change: Change
    ) -> Record | None:
        before = await self.get(identity, session_id)
        after = change(before)
        if after is None:
            return before
        self._records[identity, session_id] = _own(after)
        self._tell(identity, session_id)
        return _own(after)

    async def get(self, identity: HarnessIdentity, session_id: str) -> Record | None:
        check_scope(identity, session_id)
        found = self._records.get((identity, session_id))
        return None if found is None else _own(found)

    async def list(
        self, identity: HarnessIdentity, *, after: Place | None = None, limit: int | None = None
    ) -> list[Record]:
        check_scope(identity, "any")
        mine = [
            each
            for (owner, _), each in self._records.items()
            if owner == identity and (after is None or _place(each) < after)
        ]
        return [_own(each) for each in sorted(mine, key=_place, reverse=True)[:limit]]

    async def identities(self) -> Sequence[HarnessIdentity]:
        owners = {owner for owner, _ in self._records}
        return sorted(owners, key=lambda owner: (owner.tenant_id, owner.user_id))

    async def having(self, field: str, text: str) -> Sequence[tuple[HarnessIdentity, str]]:
        return [key for key, each in self._records.items() if each.body.get(field) == text]

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        check_scope(identity, session_id)
        if self._records.pop((identity, session_id), None) is not None:
            self._tell(identity, session_id)

    def listen(self, listener: RecordListener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _tell(self, identity: HarnessIdentity, session_id: str) -> None:
        for listener in tuple(self._listeners):
            listener((identity, session_id))


class InMemoryBlobs:
    """`Blobs` that are gone with the process."""

    def __init__(self, max_bytes: int = MAX_SESSION_BYTES) -> None:
        self._max_bytes = max_bytes
        self._blobs: dict[_Key, dict[str, KeptBlob]] = {}

    async def keep(self, identity: HarnessIdentity, session_id: str, blob: KeptBlob) -> bool:
        check_scope(identity, session_id)
        if len(blob.data) > self._max_bytes:
            return False
        blobs = self._blobs.setdefault((identity, session_id), {})
        blobs.pop(blob.sha256, None)
        blobs[blob.sha256] = blob
        while sum(len(each.data) for each in blobs.values()) > self._max_bytes:
            del blobs[next(iter(blobs))]
        return True

    async def get(self, identity: HarnessIdentity, session_id: str, sha256: str) -> KeptBlob | None:
        check_scope(identity, session_id)
        return self._blobs.get((identity, session_id), {}).get(sha256)

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        check_scope(identity, session_id)
        self._blobs.pop((identity, session_id), None)


def _place(record: Record) -> tuple[float, str]:
    return record.place, record.session_id


def _own(record: Record) -> Record:
    body: Any = json_copy(record.body, "the body of a record")
    return replace(record, body=body)
