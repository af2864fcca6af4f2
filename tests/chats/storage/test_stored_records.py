"""Chat records in a store: each as it was, the newest of several, and written once it works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.support.kept import until
from web.chats.records.attachments import PendingAttachment
from web.chats.records.records import ChatRecord
from web.chats.setup import Setup
from web.chats.storage.stored_records import (
    MOST_GONE,
    StoredChatRecords,
    record_form,
    record_from,
    with_blocks,
)
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.records import InMemoryRecords, Record
from web.harness.values.errors import StoreError
from web.harness.values.json_form import JsonRefused
from web.harness.values.messages import ResourceBlock

pytestmark = pytest.mark.anyio

BLOCK = ResourceBlock("a.txt", "a.txt", "text/plain", "text")
FULL = ChatRecord(
    "c1",
    "openai:one",
    10.0,
    20.0,
    title="Title",
    system_prompt="Be short.",
    draft="half",
    deleted_at=30.0,
    files_go=True,
    tools_off=("s__a",),
    skills_off=("b",),
    attachments=(PendingAttachment("x1", BLOCK),),
    setup=Setup(max_iterations=3, max_cost_dollars=0.5),
    memory=True,
    grants=("write_file",),
    servers=({"name": "demo", "demo": True},),
    state="failed",
)


class FailingRecords(InMemoryRecords):
    """Records whose writes fail while they are told to, and are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.writes = 0

    async def put(self, identity: HarnessIdentity, record: Record) -> None:
        self.writes += 1
        if self.fails:
            raise StoreError("The disk is full.", code="store_full")
        await super().put(identity, record)


@pytest.fixture
async def tasks() -> AsyncIterator[TaskOwner]:
    async with TaskOwner() as tasks:
        yield tasks


def test_a_record_comes_back_as_it_was_and_attachments_by_their_ids() -> None:
    back = record_from(record_form(FULL))
    assert with_blocks(back, lambda id: BLOCK if id == "x1" else None) == FULL
    assert with_blocks(back, lambda id: None) == replace(FULL, attachments=())


def test_a_record_that_is_broken_is_refused() -> None:
    with pytest.raises(JsonRefused):
        record_from(Record("c1", 1.0, {"model": 3}))


async def test_of_many_changes_at_once_the_newest_is_written_and_not_each(tasks: TaskOwner) -> None:
    records = FailingRecords()
    stored = StoredChatRecords(records, tasks)
    drafts = [replace(FULL, draft=f"draft {number}") for number in range(50)]
    await asyncio.gather(*(stored.store(LOCAL_IDENTITY, draft) for draft in drafts))
    kept = await records.get(LOCAL_IDENTITY, "c1")
    assert kept is not None
    assert kept.body["draft"] == "draft 49"
    assert records.writes == 1


async def test_what_could_not_be_written_is_written_when_the_store_works_again(
    tasks: TaskOwner,
) -> None:
    records = FailingRecords()
    stored = StoredChatRecords(records, tasks)
    records.fails = True
    await stored.put(LOCAL_IDENTITY, FULL)
    assert stored.failure is not None
    assert stored.failure.code == "store_full"
    assert stored.is_waiting(LOCAL_IDENTITY, "c1")
    records.fails = False

    async def written() -> bool:
        return await records.get(LOCAL_IDENTITY, "c1") is not None

    await until(written)
    assert not stored.is_waiting(LOCAL_IDENTITY, "c1")


async def test_a_record_that_was_deleted_is_not_written_again(tasks: TaskOwner) -> None:
    records = FailingRecords()
    stored = StoredChatRecords(records, tasks)
    await stored.put(LOCAL_IDENTITY, FULL)
    stored.put_now(LOCAL_IDENTITY, FULL)
    await stored.delete(LOCAL_IDENTITY, "c1")
    await stored.put(LOCAL_IDENTITY, FULL)
    await stored.flush()
    assert await records.get(LOCAL_IDENTITY, "c1") is None


async def test_one_record_that_cannot_be_read_hides_no_other(tasks: TaskOwner) -> None:
    records = InMemoryRecords()
    stored = StoredChatRecords(records, tasks)
    await stored.put(LOCAL_IDENTITY, FULL)
    await records.put(LOCAL_IDENTITY, Record("broken", 99.0, {"model": 1}))
    assert [each.id for each in await stored.list(LOCAL_IDENTITY)] == ["c1"]


async def test_of_chats_that_are_written_and_deleted_nothing_is_kept_for_ever(
    tasks: TaskOwner,
) -> None:
    stored = InMemoryRecords()
    records = StoredChatRecords(stored, tasks)
    for number in range(MOST_GONE + 10):
        await records.store(LOCAL_IDENTITY, replace(FULL, id=f"c{number}"))
        await records.delete(LOCAL_IDENTITY, f"c{number}")
    assert len(records._locks) == 0
    assert len(records._gone) == MOST_GONE
    # What still wants to write one of the newest brings nothing back.
    await records.put(LOCAL_IDENTITY, replace(FULL, id=f"c{MOST_GONE}"))
    assert await stored.get(LOCAL_IDENTITY, f"c{MOST_GONE}") is None
