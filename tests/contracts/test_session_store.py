"""What every session store promises: one body over all of them."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from tests.support.steps import saying
from tests.support.stores import MemoryPlace, SqlPlace
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import HarnessError, LeaseLost, NotFound, SessionConflict
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

pytestmark = pytest.mark.anyio

ANN = HarnessIdentity("here", "ann")
BOB = HarnessIdentity("here", "bob")


@pytest.fixture
async def store(session_place: MemoryPlace | SqlPlace) -> SessionStore:
    return await session_place.sessions()


async def test_a_new_session_is_empty(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as lease:
        assert await lease.read() == SessionSnapshot()


async def test_a_commit_is_read_by_the_next_holder_with_its_revision(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as lease:
        first = await lease.commit(SessionSnapshot(saying("a"), state={"n": 1}))
        second = await lease.commit(SessionSnapshot(saying("a", "b"), replayable=False))
    assert (first.revision, second.revision) == (1, 2)
    async with await store.acquire(ANN, "s") as lease:
        assert await lease.read() == SessionSnapshot(saying("a", "b"), revision=2, replayable=False)


async def test_what_was_read_or_given_can_be_changed_without_touching_the_store(
    store: SessionStore,
) -> None:
    given = SessionSnapshot(saying("a"), {"sub": saying("x")}, {"list": [1]})
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(given)
        given.state["list"].append(2)
        read = await lease.read()
        read.state["list"].append(3)
        read.conversations["other"] = ()
        again = await lease.read()
    assert again.state == {"list": [1]}
    assert set(again.conversations) == {"sub"}


async def test_a_second_acquisition_is_refused_at_once(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s"):
        with pytest.raises(SessionConflict) as caught:
            await store.acquire(ANN, "s")
    assert caught.value.code == "session_conflict"


async def test_an_acquisition_may_wait_for_the_holder(store: SessionStore) -> None:
    lease = await store.acquire(ANN, "s")
    waiting = asyncio.ensure_future(store.acquire(ANN, "s", wait=20))
    await asyncio.sleep(0)
    await lease.release()
    second = await asyncio.wait_for(waiting, 20)
    await second.release()


async def test_waiting_for_a_holder_that_stays_ends_in_a_conflict(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s"):
        with pytest.raises(SessionConflict):
            await store.acquire(ANN, "s", wait=0.01)


async def test_one_of_many_waiters_gets_the_lease_at_a_time(store: SessionStore) -> None:
    holders, most = 0, 0

    async def hold() -> None:
        nonlocal holders, most
        async with await store.acquire(ANN, "s", wait=20):
            holders += 1
            most = max(most, holders)
            await asyncio.sleep(0)
            holders -= 1

    await asyncio.gather(*(hold() for _ in range(20)))
    assert most == 1


async def test_sessions_of_two_identities_never_meet(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as mine, await store.acquire(BOB, "s") as other:
        await mine.commit(SessionSnapshot(saying("ann")))
        assert await other.read() == SessionSnapshot()
    assert await store.list(ANN) == ["s"]
    assert await store.list(BOB) == []


async def test_a_released_lease_can_do_nothing_more(store: SessionStore) -> None:
    lease = await store.acquire(ANN, "s")
    await lease.release()
    await lease.release()
    with pytest.raises(LeaseLost):
        await lease.read()
    with pytest.raises(LeaseLost):
        await lease.commit(SessionSnapshot())


async def test_a_late_release_does_not_end_the_lease_of_another(store: SessionStore) -> None:
    old = await store.acquire(ANN, "s")
    await old.release()
    async with await store.acquire(ANN, "s"):
        await old.release()
        with pytest.raises(SessionConflict):
            await store.acquire(ANN, "s")


async def test_a_deleted_session_is_forgotten_and_a_leased_one_is_not_deleted(
    store: SessionStore,
) -> None:
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot(saying("a")))
        with pytest.raises(SessionConflict):
            await store.delete(ANN, "s")
    await store.delete(ANN, "s")
    await store.delete(ANN, "s")
    async with await store.acquire(ANN, "s") as lease:
        assert await lease.read() == SessionSnapshot()


async def test_sessions_are_listed_in_order_and_in_pages(store: SessionStore) -> None:
    ids = ["a", "B", "ä", "b", "c-1", "c_1", "日"]
    for session_id in ids:
        async with await store.acquire(ANN, session_id) as lease:
            await lease.commit(SessionSnapshot(saying("x")))
    async with await store.acquire(ANN, "only leased"):
        assert await store.list(ANN) == sorted(ids)
    pages, after = [], ""
    while page := await store.list(ANN, after=after, limit=3):
        pages.append(page)
        after = page[-1]
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [each for page in pages for each in page] == sorted(ids)


async def test_a_renamed_session_is_the_same_under_another_id(store: SessionStore) -> None:
    async with await store.acquire(ANN, "old") as lease:
        await lease.commit(SessionSnapshot(saying("a"), state={"n": 1}))
    async with await store.acquire(BOB, "new") as lease:
        await lease.commit(SessionSnapshot(saying("bob")))
    await store.rename(ANN, "old", "new")
    assert await store.list(ANN) == ["new"]
    async with await store.acquire(ANN, "new") as lease:
        assert await lease.read() == SessionSnapshot(saying("a"), state={"n": 1}, revision=1)
        await lease.commit(SessionSnapshot(saying("a", "b")))
    async with await store.acquire(ANN, "old") as lease:
        assert await lease.read() == SessionSnapshot()


async def test_a_session_is_not_renamed_while_it_is_leased_or_over_another(
    store: SessionStore,
) -> None:
    for session_id in ("a", "b"):
        async with await store.acquire(ANN, session_id) as lease:
            await lease.commit(SessionSnapshot(saying(session_id)))
    with pytest.raises(SessionConflict) as exists:
        await store.rename(ANN, "a", "b")
    assert exists.value.code == "session_exists"
    async with await store.acquire(ANN, "a"):
        with pytest.raises(SessionConflict):
            await store.rename(ANN, "a", "c")
    async with await store.acquire(ANN, "c"):
        with pytest.raises(SessionConflict):
            await store.rename(ANN, "a", "c")
    with pytest.raises(NotFound):
        await store.rename(ANN, "unknown", "d")
    with pytest.raises(NotFound):
        await store.rename(BOB, "a", "d")
    assert await store.list(ANN) == ["a", "b"]
    async with await store.acquire(ANN, "a") as lease:
        assert (await lease.read()).history == saying("a")


async def test_a_conversation_that_was_changed_anywhere_is_read_as_it_was_committed(
    store: SessionStore,
) -> None:
    long = saying(*(f"text {number}" for number in range(60)))
    changed = (*long[:20], Message("other", "user", (TextBlock("changed"),)), *long[30:])
    for history in (long, changed, changed[:5], (), long):
        snapshot = SessionSnapshot(history, {"sub": history[:3], "empty": ()})
        async with await store.acquire(ANN, "s") as lease:
            await lease.commit(snapshot)
            read = await lease.read()
        assert (read.history, read.conversations) == (history, snapshot.conversations)
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot(long, {"other": long[:1]}))
        assert set((await lease.read()).conversations) == {"other"}


async def test_every_kind_of_message_comes_back_equal_with_its_pictures(
    store: SessionStore,
) -> None:
    data = bytes(range(256)) * 4
    picture = ImageBlock("image/png", hashlib.sha256(data).hexdigest(), data, "p.png", 4, 4)
    use = ToolUseBlock("c", "t", {"a": [1, None, {"b": "\x00 \ud800 日"}]})
    history = (
        Message("u", "user", (TextBlock("look \x00 \ud83d"), picture)),
        Message("a", "assistant", (ThinkingBlock("hm", "seal"), use), "u"),
        Message("t", "tool", (ToolResultBlock("c", (TextBlock("done"), picture)),), "a"),
    )
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot(history, state={"\x00": ["\udfff"]}))
        await lease.commit(SessionSnapshot(history, state={"\x00": ["\udfff"]}))
    async with await store.acquire(ANN, "s") as lease:
        read = await lease.read()
    assert (read.history, read.state) == (history, {"\x00": ["\udfff"]})
    (_, seen) = read.history[0].content
    assert isinstance(seen, ImageBlock)
    assert seen.data == data


async def test_nobody_changes_what_others_read_by_changing_arguments(store: SessionStore) -> None:
    use = ToolUseBlock("c", "t", {"list": [1]})
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot((Message("a", "assistant", (use,)),)))
    use.arguments["list"].append(2)
    for _ in range(2):
        async with await store.acquire(ANN, "s") as lease:
            (read,) = (await lease.read()).history[0].tool_uses
            assert read.arguments == {"list": [1]}
            read.arguments["list"].append(3)


async def test_what_json_cannot_hold_is_refused_and_the_session_is_as_before(
    store: SessionStore,
) -> None:
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot(saying("a"), state={"n": 1}))
        with pytest.raises(NotSerialisable):
            await lease.commit(SessionSnapshot(saying("a", "b"), state={"n": object()}))
        assert await lease.read() == SessionSnapshot(saying("a"), state={"n": 1}, revision=1)
        await lease.commit(SessionSnapshot(saying("a", "b")))


async def test_a_commit_by_one_who_has_not_read_replaces_all(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot(saying("a", "b"), {"sub": saying("x")}, {"n": 1}))
    async with await store.acquire(ANN, "s") as lease:
        kept = await lease.commit(SessionSnapshot(saying("z")))
        assert kept.revision == 2
        assert await lease.read() == SessionSnapshot(saying("z"), revision=2)


async def test_legacy_messages_are_there_to_be_shown_only(store: SessionStore) -> None:
    async with await store.acquire(ANN, "s") as lease:
        await lease.import_legacy(
            [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
        )
        read = await lease.read()
        assert [message.text for message in read.history] == ["hello", "hi"]
        assert (read.state, read.conversations, read.replayable) == ({}, {}, False)
        with pytest.raises(SessionConflict) as refused:
            await lease.import_legacy(saying("again"))
        assert refused.value.code == "session_exists"
        assert await lease.read() == read


@pytest.mark.parametrize(
    "messages", [[{"role": "system", "content": "x"}], [{"role": "user", "content": 1}]]
)
async def test_legacy_messages_of_another_shape_are_refused(
    store: SessionStore, messages: list[dict[str, object]]
) -> None:
    async with await store.acquire(ANN, "s") as lease:
        with pytest.raises(HarnessError, match=r"messages\[0\]"):
            await lease.import_legacy(messages)
        assert await lease.read() == SessionSnapshot()


@pytest.mark.parametrize("session_id", ["", "a\x00b", "x" * 201, "\ud800"])
async def test_an_id_that_cannot_be_kept_everywhere_is_refused(
    store: SessionStore, session_id: str
) -> None:
    with pytest.raises(HarnessError) as refused:
        await store.acquire(ANN, session_id)
    assert refused.value.code == "invalid_id"
    with pytest.raises(HarnessError):
        await store.list(HarnessIdentity("here", session_id))


async def test_a_waiter_that_was_cancelled_leaves_the_session_to_the_next(
    store: SessionStore,
) -> None:
    lease = await store.acquire(ANN, "s")
    waiting = [asyncio.ensure_future(store.acquire(ANN, "s", wait=20)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await lease.release()
    second = await asyncio.wait_for(waiting[1], 20)
    await second.release()
    third = await asyncio.wait_for(waiting[2], 20)
    await third.release()
    async with await store.acquire(ANN, "s", wait=20):
        pass


async def test_a_commit_whose_caller_was_cancelled_is_whole_or_not_there(
    store: SessionStore,
) -> None:
    async with await store.acquire(ANN, "s") as lease:
        await lease.commit(SessionSnapshot(saying("a")))
        for steps in range(12):
            committing = asyncio.ensure_future(
                lease.commit(SessionSnapshot(saying("a", *"b" * steps)))
            )
            for _ in range(steps):
                await asyncio.sleep(0)
            committing.cancel()
            await asyncio.gather(committing, return_exceptions=True)
        await lease.commit(SessionSnapshot(saying("a", "end")))
        assert (await lease.read()).history == saying("a", "end")


async def test_arguments_of_calls_that_json_cannot_hold_are_refused(store: SessionStore) -> None:
    use = ToolUseBlock("c", "t", {"x": object()})
    async with await store.acquire(ANN, "s") as lease:
        with pytest.raises(NotSerialisable, match="call c"):
            await lease.commit(SessionSnapshot((Message("a", "assistant", (use,)),)))
        assert await lease.read() == SessionSnapshot()


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 201])
async def test_a_conversation_has_a_name_that_every_store_can_keep(
    store: SessionStore, name: str
) -> None:
    async with await store.acquire(ANN, "s") as lease:
        with pytest.raises(HarnessError) as refused:
            await lease.commit(SessionSnapshot(saying("a"), {name: saying("b")}))
        assert refused.value.code == "invalid_id"
        assert await lease.read() == SessionSnapshot()
