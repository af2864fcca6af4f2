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
    rebased,
    record_form,
    record_from,
    with_blocks,
)
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.sessions.records import Change, InMemoryRecords, Record
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

    async def update(
        self, identity: HarnessIdentity, session_id: str, change: Change
    ) -> Record | None:
        self.writes += 1
        if self.fails:
            raise StoreError("The disk is full.", code="store_full")
        return await super().update(identity, session_id, change)


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


async def test_what_waits_for_the_store_undoes_nothing_that_others_write_meanwhile(
    tasks: TaskOwner,
) -> None:
    failing = FailingRecords()
    stored = StoredChatRecords(failing, tasks)
    await stored.put(LOCAL_IDENTITY, FULL)
    mine = await stored.get(LOCAL_IDENTITY, "c1")
    assert mine is not None
    failing.fails = True
    await stored.put(LOCAL_IDENTITY, replace(mine, draft="typed"))
    failing.fails = False
    theirs = replace(record_form(FULL), deleted_at=99.0)
    theirs.body.update(title="Other", grants=[])
    await failing.put(LOCAL_IDENTITY, theirs)
    await stored.flush()
    kept = await stored.get(LOCAL_IDENTITY, "c1")
    assert kept is not None
    assert (kept.draft, kept.title, kept.grants, kept.deleted_at) == ("typed", "Other", (), 99.0)


async def test_a_record_that_another_server_deleted_for_good_is_not_brought_back(
    tasks: TaskOwner,
) -> None:
    records = InMemoryRecords()
    here, there = StoredChatRecords(records, tasks), StoredChatRecords(records, tasks)
    await here.put(LOCAL_IDENTITY, FULL)
    mine = await here.get(LOCAL_IDENTITY, "c1")
    assert mine is not None
    await there.delete(LOCAL_IDENTITY, "c1")
    await here.put(LOCAL_IDENTITY, replace(mine, draft="typed"))
    assert not here.is_waiting(LOCAL_IDENTITY, "c1")
    assert await records.get(LOCAL_IDENTITY, "c1") is None


async def test_what_is_not_stored_is_not_said_to_be_where_more_was_put_meanwhile(
    tasks: TaskOwner,
) -> None:
    records = FailingRecords()
    stored = StoredChatRecords(records, tasks)
    records.fails = True
    new = replace(FULL, title="New")
    storing, _ = await asyncio.gather(
        stored.store(LOCAL_IDENTITY, new),
        stored.put(LOCAL_IDENTITY, replace(new, draft="typed")),
        return_exceptions=True,
    )
    assert isinstance(storing, StoreError)
    assert storing.code == "store_full"


async def test_a_store_that_refused_what_is_given_up_by_now_is_not_said_to_fail(
    tasks: TaskOwner,
) -> None:
    records = FailingRecords()
    stored = StoredChatRecords(records, tasks)
    records.fails = True
    with pytest.raises(StoreError):
        await stored.store(LOCAL_IDENTITY, FULL)
    assert stored.failure is not None
    stored.drop(LOCAL_IDENTITY, "c1")
    assert stored.failure is None


def test_what_is_changed_back_while_the_change_is_written_stays_changed_back() -> None:
    row = record_form(replace(FULL, draft="a"))
    base = replace(FULL, draft="a", stored=row)
    # Of the row that both were made from each may have its own copy.
    written = replace(base, draft="ab", stored=replace(row))
    assert rebased(base, record_form(written), written).draft == "a"
