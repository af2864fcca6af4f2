"""What every keeper of chat records promises: one body over all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from web.chats.records.records import ChatRecord, ChatRecords, InMemoryChatRecords
from web.harness.sessions.identity import HarnessIdentity

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")
BOB = HarnessIdentity("there", "ann")


@pytest.fixture(params=[InMemoryChatRecords], ids=["memory"])
def records(request: pytest.FixtureRequest) -> ChatRecords:
    made: ChatRecords = request.param()
    return made


def record(chat_id: str, order: float = 0.0) -> ChatRecord:
    return ChatRecord(chat_id, "demo:demo", 1.0, order)


async def test_a_record_comes_back_as_it_was_written(records: ChatRecords) -> None:
    written = replace(record("a"), title="Ünïcode", draft="typed", deleted_at=3.5)
    await records.put(ANN, written)
    assert await records.get(ANN, "a") == written


async def test_writing_again_replaces_the_whole_record(records: ChatRecords) -> None:
    await records.put(ANN, replace(record("a"), draft="typed"))
    await records.put(ANN, record("a", 2.0))
    assert await records.get(ANN, "a") == record("a", 2.0)
    assert len(await records.list(ANN)) == 1


async def test_records_are_listed_with_the_highest_order_first(records: ChatRecords) -> None:
    for chat_id, order in (("a", 1.0), ("b", 3.0), ("c", 2.0)):
        await records.put(ANN, record(chat_id, order))
    assert [found.id for found in await records.list(ANN)] == ["b", "c", "a"]


async def test_records_of_two_identities_never_meet(records: ChatRecords) -> None:
    await records.put(ANN, record("a"))
    assert await records.get(BOB, "a") is None
    assert await records.list(BOB) == []
    await records.delete(BOB, "a")
    assert await records.get(ANN, "a") is not None


async def test_a_deleted_record_is_gone_and_deleting_twice_is_fine(records: ChatRecords) -> None:
    await records.put(ANN, record("a"))
    await records.delete(ANN, "a")
    await records.delete(ANN, "a")
    assert await records.get(ANN, "a") is None
