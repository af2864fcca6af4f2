"""What chats are kept with: all of it in memory, or all of it over the stores of one address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from web.chats.hearing import FollowedLog, Hearing
from web.chats.journal import Journal, LoggedJournal
from web.chats.keeping import Kept
from web.chats.records import ChatRecords, InMemoryChatRecords
from web.chats.stored_records import StoredChatRecords
from web.chats.tasks import TaskOwner
from web.chats.turns import Turns
from web.harness.sessions.event_log import EventLog, InMemoryEventLog
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.late import LateStores
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import StoreError
from web.harness.values.events import Event


@dataclass(frozen=True, slots=True)
class ChatStores:
    """`journal` and `kept` are None in memory. `late` is opened when the server starts."""

    sessions: SessionStore
    events: EventLog
    records: ChatRecords
    journal: Journal | None = None
    late: LateStores | None = None

    async def open(self) -> None:
        """Raises ConfigurationError, and StoreError where the database cannot be used."""
        if self.late is not None:
            await self.late.open()

    async def aclose(self) -> None:
        """Writes what waits, and closes; no run is under way any more."""
        if self.late is not None:
            if isinstance(self.records, StoredChatRecords):
                await self.records.flush()
            await self.late.aclose()


class _Listener:
    """The listener of the event log: which chat it tells of is known later."""

    def __init__(self) -> None:
        self.heard: Callable[[str, Sequence[Event]], None] = lambda run_id, events: None

    def __call__(self, run_id: str, events: Sequence[Event]) -> None:
        self.heard(run_id, events)


def in_memory(now: Callable[[], float]) -> tuple[ChatStores, Callable[[Turns], None]]:
    """The stores of this process, and what makes turns known to them. `now` gives seconds since
    the epoch."""
    listener = _Listener()
    stores = ChatStores(
        InMemorySessionStore(), InMemoryEventLog(now, listener), InMemoryChatRecords()
    )

    def connect(turns: Turns) -> None:
        listener.heard = lambda run_id, new: turns.chat_of(run_id).transcript.fold(run_id, new)

    return stores, connect


def at(
    address: str, now: Callable[[], float], tasks: TaskOwner
) -> tuple[ChatStores, Callable[[Turns], Kept]]:
    """The stores of an address, and what makes of them and the turns where chats are kept."""
    listener = _Listener()
    late = LateStores(address, now, listener)
    records = StoredChatRecords(late.records, tasks)
    stores = ChatStores(late.sessions, late.events, records, LoggedJournal(late.events), late)

    def connect(turns: Turns) -> Kept:
        hearing = Hearing(turns, cast(FollowedLog, late.events), late.sessions, tasks)
        listener.heard = hearing
        return Kept(records, hearing, late.blobs, failure)

    def failure() -> StoreError | None:
        waiting: StoreError | None = getattr(late.events, "failure", None)
        return waiting or records.failure

    return stores, connect
