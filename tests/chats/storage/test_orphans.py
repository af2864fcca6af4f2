"""Chats that a server left under way when it died, found by one that has not loaded them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from web.chats.parts.kinds import ChatState
from web.chats.records.records import ChatRecord
from web.chats.storage.orphans import Orphans
from web.chats.storage.stored_records import StoredChatRecords
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.process import ProcessLease
from web.harness.sessions.records import InMemoryRecords
from web.harness.values.errors import SessionConflict

pytestmark = pytest.mark.anyio


class Watched(InMemorySessionStore):
    """Sessions that count who looks for one that is in use."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = asyncio.Semaphore(0)

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> ProcessLease:
        try:
            return await super().acquire(identity, session_id, wait=wait)
        except SessionConflict:
            self._looks.release()
            raise

    async def looked_at(self, times: int) -> None:
        for _ in range(times):
            await self._looks.acquire()


@dataclass
class Stage:
    """`here` are the chats that are loaded, `found` says which was loaded last."""

    orphans: Orphans
    sessions: Watched
    records: StoredChatRecords
    here: set[str]
    found: asyncio.Queue[str]

    async def put(self, chat: str, state: ChatState, deleted_at: float | None = None) -> None:
        await self.put_unheard(chat, state, deleted_at)
        self.orphans.heard((LOCAL_IDENTITY, chat))

    async def put_unheard(
        self, chat: str, state: ChatState, deleted_at: float | None = None
    ) -> None:
        record = ChatRecord(chat, "demo:demo", 1.0, 1.0, state=state, deleted_at=deleted_at)
        await self.records.put(LOCAL_IDENTITY, record)


@pytest.fixture
def around() -> float:
    """Seconds between two looks at all chats."""
    return 1_000.0


@pytest.fixture
async def stage(around: float) -> AsyncIterator[Stage]:
    here, found = set[str](), asyncio.Queue[str]()

    async def load(identity: HarnessIdentity, chat_id: str) -> None:
        here.add(chat_id)
        found.put_nowait(chat_id)

    async with TaskOwner() as tasks:
        sessions, records = Watched(), StoredChatRecords(InMemoryRecords(), tasks)
        orphans = Orphans(
            tasks,
            sessions,
            records,
            lambda key: key[1] in here,
            load,
            look_seconds=0.01,
            around_seconds=around,
        )
        tasks.create_task(orphans.look_around())
        yield Stage(orphans, sessions, records, here, found)


async def test_a_chat_that_is_under_way_and_run_by_nobody_is_loaded(stage: Stage) -> None:
    await stage.put("idle", "idle")
    await stage.put("gone", "working", deleted_at=1.0)
    stage.here.add("here")
    await stage.put("here", "working")
    await stage.put("left", "working")
    await stage.put("asked", "asking")
    found = {await asyncio.wait_for(stage.found.get(), 10) for _ in range(2)}
    assert found == {"left", "asked"}
    assert stage.found.empty()
    # It is free for whoever runs it next.
    await (await stage.sessions.acquire(LOCAL_IDENTITY, "left")).release()


async def test_a_chat_that_somebody_runs_is_left_alone_until_nobody_does(stage: Stage) -> None:
    async with await stage.sessions.acquire(LOCAL_IDENTITY, "run"):
        await stage.put("run", "working")
        await stage.put("left", "working")
        assert await asyncio.wait_for(stage.found.get(), 10) == "left"
        assert stage.found.empty()
    assert await asyncio.wait_for(stage.found.get(), 10) == "run"


async def test_a_chat_that_was_run_for_long_is_found_as_soon_as_any_other(stage: Stage) -> None:
    async with await stage.sessions.acquire(LOCAL_IDENTITY, "run"):
        await stage.put("run", "working")
        async with asyncio.timeout(10):
            await stage.sessions.looked_at(12)
    assert await asyncio.wait_for(stage.found.get(), 10) == "run"


async def test_a_chat_whose_change_nobody_heard_of_is_found_once_something_was_missed(
    stage: Stage,
) -> None:
    await stage.put_unheard("idle", "idle")
    await stage.put_unheard("left", "working")
    stage.orphans.missed()
    assert await asyncio.wait_for(stage.found.get(), 10) == "left"
    # Again and again, as a connection may be lost more than once.
    await stage.put_unheard("asked", "asking")
    stage.orphans.missed()
    assert await asyncio.wait_for(stage.found.get(), 10) == "asked"
    assert stage.found.empty()


@pytest.mark.parametrize("around", [0.01])
async def test_a_chat_whose_change_nobody_heard_of_is_found_by_and_by(stage: Stage) -> None:
    await stage.put_unheard("left", "working")
    assert await asyncio.wait_for(stage.found.get(), 10) == "left"
