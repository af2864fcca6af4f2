"""What every keeper of records and blobs of sessions promises: one body over all of them."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

import pytest

from tests.support.stores import MemoryPlace, SqlPlace
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.opening import Stores
from web.harness.sessions.records import Blobs, KeptBlob, Place, Record, Records
from web.harness.values.errors import HarnessError
from web.harness.values.json_form import NotSerialisable

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")
BOB = HarnessIdentity("there", "ann")


@pytest.fixture
async def records(any_place: MemoryPlace | SqlPlace) -> Records:
    return await any_place.records()


@pytest.fixture
async def blobs(any_place: MemoryPlace | SqlPlace) -> Blobs:
    return await any_place.blobs(10)


def blob(data: bytes) -> KeptBlob:
    return KeptBlob(hashlib.sha256(data).hexdigest(), "image/png", data)


async def test_a_record_comes_back_as_it_was_written(records: Records) -> None:
    body = {"title": "Ünïcode \x00 \ud800", "settings": {"tools": [1, None, 2.5]}}
    written = Record("a", 1.25, body, deleted_at=3.5)
    await records.put(ANN, written)
    assert await records.get(ANN, "a") == written
    await records.put(ANN, replace(written, body={}, deleted_at=None))
    assert await records.get(ANN, "a") == Record("a", 1.25)
    assert len(await records.list(ANN)) == 1


async def test_nobody_changes_a_record_by_changing_what_was_written_or_read(
    records: Records,
) -> None:
    body = {"list": [1]}
    await records.put(ANN, Record("a", 1.0, body))
    body["list"].append(2)
    read = await records.get(ANN, "a")
    assert read is not None
    read.body["list"].append(3)
    assert await records.get(ANN, "a") == Record("a", 1.0, {"list": [1]})


async def test_records_are_listed_highest_place_first_and_in_pages(records: Records) -> None:
    places = {"a": 1.0, "b": 3.0, "c": 2.0, "B": 2.0, "ä": 2.0, "d": -1.5}
    for session_id, place in places.items():
        await records.put(ANN, Record(session_id, place))
    expected = ["b", "ä", "c", "B", "a", "d"]
    assert [each.session_id for each in await records.list(ANN)] == expected
    seen: list[str] = []
    after: Place | None = None
    while page := await records.list(ANN, after=after, limit=2):
        assert len(page) <= 2
        seen += [each.session_id for each in page]
        after = Place(page[-1].place, page[-1].session_id)
    assert seen == expected


async def test_records_of_two_identities_never_meet(records: Records) -> None:
    await records.put(ANN, Record("a", 1.0))
    assert await records.get(BOB, "a") is None
    assert await records.list(BOB) == []
    await records.delete(BOB, "a")
    assert await records.get(ANN, "a") is not None
    await records.put(BOB, Record("a", 2.0))
    assert await records.identities() == [ANN, BOB]


async def test_a_deleted_record_is_gone_and_deleting_twice_is_fine(records: Records) -> None:
    await records.put(ANN, Record("a", 1.0))
    await records.delete(ANN, "a")
    await records.delete(ANN, "a")
    assert await records.get(ANN, "a") is None


async def test_a_record_that_is_no_json_or_has_no_id_is_refused(records: Records) -> None:
    with pytest.raises(NotSerialisable):
        await records.put(ANN, Record("a", 1.0, {"x": object()}))
    with pytest.raises(HarnessError):
        await records.put(ANN, Record("", 1.0))
    assert await records.list(ANN) == []


async def test_two_writers_of_one_record_lose_nothing_of_each_other(
    any_place: MemoryPlace | SqlPlace, records: Records
) -> None:
    other = await any_place.records()

    def counted(before: Record | None) -> Record:
        return Record("a", 1.0, {"count": 1 + (before.body["count"] if before else 0)})

    # The record is not there at first: both may make it at the same moment.
    both = [(records, other)[number % 2].update(ANN, "a", counted) for number in range(20)]
    found = await asyncio.gather(*both)
    assert sorted(each.body["count"] for each in found if each) == list(range(1, 21))
    assert await records.get(ANN, "a") == Record("a", 1.0, {"count": 20})


@pytest.mark.parametrize("body", ["{", "[]", "[" * 10_000])
async def test_a_record_that_is_damaged_costs_no_other_and_can_be_written_anew(
    place: SqlPlace, here: Stores, body: str
) -> None:
    damaged, other = Record("a", 2.0, {"title": "A"}), Record("b", 1.0, {"title": "B"})
    for each in (damaged, other):
        await here.records.put(ANN, each)
    await place.run(f"UPDATE harness_records SET body = '{body}' WHERE session_id = 'a'")
    assert await here.records.list(ANN) == [replace(damaged, body={}), other]
    assert await here.records.get(ANN, "a") == replace(damaged, body={})
    await here.records.put(ANN, damaged)
    assert await here.records.get(ANN, "a") == damaged


async def test_a_change_that_gives_nothing_writes_nothing_and_a_bad_one_neither(
    records: Records,
) -> None:
    assert await records.update(ANN, "a", lambda _: None) is None
    await records.put(ANN, Record("a", 1.0))
    assert await records.update(ANN, "a", lambda _: None) == Record("a", 1.0)
    with pytest.raises(NotSerialisable):
        await records.update(ANN, "a", lambda _: Record("a", 2.0, {"x": object()}))
    assert await records.list(ANN) == [Record("a", 1.0)]


async def test_who_listens_hears_of_every_change_also_of_another_server(
    any_place: MemoryPlace | SqlPlace, records: Records
) -> None:
    told: list[tuple[HarnessIdentity, str] | None] = []
    heard = asyncio.Event()

    def listener(changed: tuple[HarnessIdentity, str] | None) -> None:
        told.append(changed)
        # A database that cannot say what changed says that anything may have.
        if changed in ((BOB, "b"), None):
            heard.set()

    stop = records.listen(listener)
    await records.put(ANN, Record("a", 1.0))
    assert (ANN, "a") in told
    if isinstance(any_place, SqlPlace):
        await any_place.heard_by_all()
    heard.clear()
    other = await any_place.records()
    await other.put(BOB, Record("b", 1.0))
    await asyncio.wait_for(heard.wait(), 10)
    stop()
    before = len(told)
    await records.delete(BOB, "b")
    assert len(told) == before


async def test_blobs_come_back_by_their_sum_and_belong_to_one_session(blobs: Blobs) -> None:
    kept = blob(b"\x00\xff")
    assert await blobs.keep(ANN, "s", kept)
    assert await blobs.keep(ANN, "s", kept)
    assert await blobs.get(ANN, "s", kept.sha256) == kept
    assert await blobs.get(BOB, "s", kept.sha256) is None
    assert await blobs.get(ANN, "t", kept.sha256) is None
    for odd in ("", "\x00", "\ud800"):
        assert await blobs.get(ANN, "s", odd) is None
    await blobs.delete(ANN, "s")
    await blobs.delete(ANN, "s")
    assert await blobs.get(ANN, "s", kept.sha256) is None


async def test_the_oldest_blob_makes_room_and_one_that_is_too_large_is_not_kept(
    blobs: Blobs,
) -> None:
    first, second, third = blob(b"1111"), blob(b"2222"), blob(b"3333")
    assert not await blobs.keep(ANN, "s", blob(b"x" * 11))
    for each in (first, second, first, third):
        assert await blobs.keep(ANN, "s", each)
    assert await blobs.get(ANN, "s", second.sha256) is None
    assert await blobs.get(ANN, "s", first.sha256) == first
    assert await blobs.get(ANN, "s", third.sha256) == third


async def test_records_of_everybody_are_found_by_a_field_of_their_body(records: Records) -> None:
    body = {"title": 'no "state":"asking" \x00 100%', "state": "working", "more": {"a": 1}}
    await records.put(ANN, Record("a", 1.0, body))
    await records.put(BOB, Record("b", 2.0, {"state": "working"}, deleted_at=1.0))
    await records.put(ANN, Record("c", 3.0, {"state": "idle", "title": "working"}))
    assert set(await records.having("state", "working")) == {(ANN, "a"), (BOB, "b")}
    assert list(await records.having("state", "asking")) == []
    await records.put(ANN, Record("a", 1.0, {"state": "idle"}))
    assert list(await records.having("state", "working")) == [(BOB, "b")]
