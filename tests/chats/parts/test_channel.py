"""Parts and versions: a reader that asks for what changed ends with what is there."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings, strategies as st

from web.chats.parts import channel as parts_module
from web.chats.parts.channel import FEW, Changes, Channel, Clock, Watcher
from web.chats.parts.kinds import Notice

pytestmark = pytest.mark.anyio


def channel(clock: Clock | None = None) -> Channel:
    return Channel("c", clock or Clock("e"))


class Reader:
    """Applies changes as a page does: by id, only upward in version, moved to their place."""

    def __init__(self) -> None:
        self.cursor = 0
        self.versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.slots: dict[str, list[str]] = {}

    def apply(self, changes: Changes) -> None:
        named = set()
        for change in changes.changes:
            named.add(change.id)
            if change.version <= self.versions.get(change.id, 0):
                continue
            self.versions[change.id] = change.version
            if change.part is None:
                self.drop(change.id)
                continue
            assert isinstance(change.part.data, Notice)
            self.texts[change.id] = change.part.data.text
            for siblings in self.slots.values():
                if change.id in siblings:
                    siblings.remove(change.id)
            siblings = self.slots.setdefault(change.part.slot, [])
            at = 0 if change.after is None else siblings.index(change.after) + 1
            siblings.insert(at, change.id)
        if changes.full:
            for id in [id for id in self.texts if id not in named]:
                self.drop(id)
        self.cursor = max(self.cursor, changes.version)

    def drop(self, id: str) -> None:
        self.texts.pop(id, None)
        for child in self.slots.pop(id, []):
            self.drop(child)
        for siblings in self.slots.values():
            if id in siblings:
                siblings.remove(id)

    def shown(self) -> dict[str, list[tuple[str, str]]]:
        return {
            slot: [(id, self.texts[id]) for id in ids] for slot, ids in self.slots.items() if ids
        }


def kept(channel: Channel) -> dict[str, list[tuple[str, str]]]:
    slots = {part.slot for part in channel.parts()}
    return {
        slot: [
            (part.id, part.data.text)
            for part in channel.slot(slot)
            if isinstance(part.data, Notice)
        ]
        for slot in slots
    }


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.sampled_from("abcdef"),
            st.sampled_from(["log", "a", "b"]),
            st.text("xyz", max_size=2),
            st.sampled_from([None, None, -1.0, 2.5]),
        ),
        st.tuples(st.just("remove"), st.sampled_from("abcdef")),
        st.tuples(st.just("read"), st.integers(0, 2)),
        st.tuples(st.just("again"), st.integers(0, 2)),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_readers_at_any_pace_end_with_what_is_there(taken: list[tuple[object, ...]]) -> None:
    shared = channel()
    readers = [Reader() for _ in range(3)]
    for step in taken:
        match step:
            case ("put", str(id), str(slot), str(text), rank):
                known = shared.get(id)
                parent = known.slot if known else slot
                if (parent != "log" and shared.get(parent) is None) or parent == id:
                    continue
                if parent in "ab" and shared.get(parent) and shared.get(parent).slot != "log":  # type: ignore[union-attr]
                    continue
                shared.put(id, parent, Notice(text), rank=rank)  # type: ignore[arg-type]
            case ("remove", str(id)):
                shared.remove(id)
            case ("read", int(number)):
                reader = readers[number]
                reader.apply(shared.changes(reader.cursor))
            case ("again", int(number)):
                # A frame that comes twice, or one that overlaps with another, changes nothing.
                reader = readers[number]
                before = reader.shown()
                version = reader.cursor
                changes = shared.changes(max(0, version - 3))
                if changes.version == version:
                    reader.apply(changes)
                    assert reader.shown() == before
    for reader in readers:
        reader.apply(shared.changes(reader.cursor))
        assert reader.shown() == kept(shared)


def test_equal_data_at_the_same_place_is_no_change() -> None:
    shared = channel()
    shared.put("a", "log", Notice("x"))
    version = shared.clock.version
    shared.put("a", "log", Notice("x"))
    assert shared.clock.version == version
    assert shared.changes(version).changes == []


def test_versions_are_counted_across_channels() -> None:
    clock = Clock("e")
    one, other = Channel("one", clock), Channel("other", clock)
    one.put("a", "log", Notice("x"))
    other.put("a", "log", Notice("x"))
    assert [part.version for part in (*one.parts(), *other.parts())] == [1, 2]


def test_a_part_that_moves_says_where_to() -> None:
    shared = channel()
    for id in "abc":
        shared.put(id, "log", Notice(id))
    cursor = shared.clock.version
    shared.put("c", "log", Notice("c"), rank=-1)
    (change,) = shared.changes(cursor).changes
    assert (change.id, change.after) == ("c", None)


def test_what_lies_in_a_removed_part_goes_with_it() -> None:
    shared = channel()
    shared.put("a", "log", Notice("a"))
    shared.put("b", "a", Notice("b"))
    cursor = shared.clock.version
    shared.remove("a")
    assert {(change.id, change.part) for change in shared.changes(cursor).changes} == {
        ("a", None),
        ("b", None),
    }
    assert shared.parts() == []


def test_a_reader_from_before_the_forgotten_tombstones_gets_everything() -> None:
    shared = channel()
    shared.put("stays", "log", Notice("x"))
    for number in range(parts_module.TOMBSTONES + 1):
        shared.put(f"p{number}", "log", Notice("x"))
    cursor = shared.clock.version
    for number in range(parts_module.TOMBSTONES + 1):
        shared.remove(f"p{number}")
    changes = shared.changes(cursor)
    assert changes.full
    assert [change.id for change in changes.changes] == ["stays"]
    assert not shared.changes(cursor + 1).full


async def test_a_watcher_wakes_for_any_of_its_channels_and_only_while_it_watches() -> None:
    clock = Clock("e")
    one, other = Channel("one", clock), Channel("other", clock)
    with Watcher([one, other]) as watcher:
        other.put("a", "log", Notice("x"))
        await asyncio.wait_for(watcher.changed(), 5)
        waiting = asyncio.ensure_future(watcher.changed())
        await asyncio.sleep(0)
        assert not waiting.done()
        one.end("deleted")
        await asyncio.wait_for(waiting, 5)
    assert not one._watchers


async def test_settling_does_not_wake_the_reader_that_settles() -> None:
    shared = channel()

    def settle() -> bool:
        shared.put("a", "log", Notice(str(shared.clock.version)))
        return False

    shared.settle = settle
    with Watcher([shared]) as watcher:
        shared.changes(0)
        waiting = asyncio.ensure_future(watcher.changed())
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()


async def test_a_reader_looks_again_by_itself_while_more_is_left_to_settle() -> None:
    shared = channel()
    left = ["b", "a"]

    def settle() -> bool:
        shared.put(left.pop(), "log", Notice(""))
        return bool(left)

    shared.settle = settle
    with Watcher([shared]) as watcher:
        assert [change.id for change in shared.changes(0).changes] == ["a"]
        await asyncio.wait_for(watcher.changed(), 5)
        assert [change.id for change in shared.changes(0).changes] == ["a", "b"]


def test_a_great_change_names_the_same_places_as_small_ones() -> None:
    shared = channel()
    for number in range(3 * FEW):
        shared.put(f"p{number}", "log", Notice("p"))
        shared.put(f"c{number}", f"p{number // 4}", Notice("c"))
    reader = Reader()
    reader.apply(shared.changes(0))
    assert reader.shown() == kept(shared)
    for number in range(0, 3 * FEW, 2):
        shared.put(f"p{number}", "log", Notice("moved"), rank=-1 - number % 7)
    reader.apply(shared.changes(reader.cursor))
    assert reader.shown() == kept(shared)
