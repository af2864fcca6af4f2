"""What chats are kept with: all of it in memory, or all of it over the stores of one address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from web.chats.journal.journal import Journal, LoggedJournal, WaitingLog
from web.chats.records.records import ChatRecords, InMemoryChatRecords
from web.chats.runs.durability import Durability
from web.chats.runs.interrupted_runs import InterruptedRuns
from web.chats.runs.supervisor import Supervisor
from web.chats.runs.turns import Turns
from web.chats.runs.written_runs import WrittenRuns
from web.chats.storage.loading import Kept
from web.chats.storage.log_follower import LogFollower
from web.chats.storage.log_progress import FollowedLog
from web.chats.storage.request_claims import Claims
from web.chats.storage.stored_records import StoredChatRecords
from web.chats.tasks import TaskOwner
from web.harness.runtime.backend import Backend
from web.harness.sessions.event_log import EventLog, InMemoryEventLog, Listener
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
    backend: Backend | None = None
    """Where runs are written down at each step; None where they are not."""

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
    address: str,
    now: Callable[[], float],
    tasks: TaskOwner,
    make_backend: Callable[[Listener], Backend] | None = None,
) -> tuple[ChatStores, Callable[[Turns], Kept]]:
    """The stores of an address, and what makes of them and the turns where chats are kept.

    With a backend, which opens the stores of that address, runs are written down.
    """
    listener = _Listener()
    backend = make_backend(listener) if make_backend is not None else None
    late = LateStores(address, now, listener, opened_by=backend)
    records = StoredChatRecords(late.records, tasks)
    stores = ChatStores(
        late.sessions,
        late.events,
        records,
        LoggedJournal(cast(WaitingLog, late.events)),
        late,
        backend,
    )

    def connect(turns: Turns) -> Kept:
        follower = LogFollower(turns, cast(FollowedLog, late.events), late.sessions, tasks)
        listener.heard = follower
        kept = Kept(records, follower, late.blobs, Claims(late.events), failure)
        return kept if turns.durable is None else with_runs(kept, turns, turns.durable)

    def with_runs(kept: Kept, turns: Turns, durable: Durability) -> Kept:
        supervisor = Supervisor(
            durable, turns, InterruptedRuns(late.events, late.sessions), turns.abandoning, tasks
        )
        kept.follower.supervisor = supervisor
        written = WrittenRuns(durable, turns, supervisor)
        return replace(kept, written=written, survey=supervisor.survey)

    def failure() -> StoreError | None:
        waiting: StoreError | None = getattr(late.events, "failure", None)
        of_runs: StoreError | None = getattr(backend, "failure", None)
        return waiting or records.failure or late.failure or of_runs

    return stores, connect
