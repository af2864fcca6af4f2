"""Parts with versions: what a page shows, kept so that a reader can ask for what changed.

All channels of a server (one a chat, one for the side bar) count versions on one `Clock`, so one
cursor serves a reader of several channels. A reader never has a queue: it asks a channel for the
parts whose version is above its cursor, whole, as often as it likes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from web.chats.parts.kinds import PartData

LOOK_AGAIN_SECONDS = 0.03
"""A reader waits no longer for a change while there is still something to settle."""

FEW = 64
"""The place of each of so many changes is looked up; of more, all places are listed."""

TOMBSTONES = 500
"""Removed parts a channel remembers; a reader from before them gets the whole channel."""


class Clock:
    """The version counter of one server epoch. Versions rise by one and are used once."""

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        self.version = 0

    def tick(self) -> int:
        self.version += 1
        return self.version


@dataclass(slots=True, eq=False)
class Part:
    """One element of the page. `slot` is the id of the part, or the region, that it lies in.

    `rank` orders the parts of a slot. `rendered` is whatever the one who shows the part wants to
    keep of its last rendering.
    """

    id: str
    slot: str
    rank: float
    data: PartData
    version: int
    rendered: Any = None


class Change(NamedTuple):
    """One part as a reader needs it: `part` is None where it was removed.

    `after` is the id of the part that it follows in its slot, None at the slot's start.
    """

    id: str
    version: int
    part: Part | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed after a cursor. `full` means: this is all there is, remove what is not named."""

    version: int
    full: bool
    changes: list[Change]


@dataclass(slots=True)
class Channel:
    """The parts of one chat, or of the side bar, in order.

    `refreshers` and `settle` are called before the channel is read, and what is made only for
    readers gets its parts and versions there. A refresher does all of its own; `settle` (text that
    streams) does so much at a time and says whether more is `left`: nobody wakes a reader for that,
    so it has to look again by itself.
    """

    name: str
    clock: Clock
    settle: Callable[[], bool] | None = None
    refreshers: list[Callable[[], None]] = field(default_factory=list)
    left: bool = False
    gone: str | None = None
    """Why the channel has ended, in words; None while it lives."""
    _parts: OrderedDict[str, Part] = field(default_factory=OrderedDict)
    """By version, oldest change first."""
    _slots: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    _tombstones: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _horizon: int = 0
    _watchers: set[Watcher] = field(default_factory=set)
    _settling: bool = False

    def put(self, id: str, slot: str, data: PartData, *, rank: float | None = None) -> None:
        """Adds a part, at the end of its slot or at `rank`, or gives a known one new data.

        Equal data at the same place changes nothing. A known part keeps its place unless `rank`
        says another.
        """
        part = self._parts.get(id)
        if part is None:
            if slot == id:
                raise ValueError(f"The part {id} cannot lie in itself.")
            self._tombstones.pop(id, None)
            part = Part(id, slot, self._place(slot, id, rank), data, self.clock.tick())
            self._parts[id] = part
        else:
            moved = rank is not None and rank != part.rank
            if part.data == data and not moved:
                return
            if moved:
                self._slots[part.slot].remove((part.rank, id))
                part.rank = self._place(part.slot, id, rank)
            part.data, part.version = data, self.clock.tick()
            self._parts.move_to_end(id)
        self.touch()

    def remove(self, id: str) -> None:
        """Removes a part and all that lies in it; an unknown one is fine."""
        part = self._parts.pop(id, None)
        if part is None:
            return
        for _, child in self._slots.pop(id, []).copy():
            self.remove(child)
        siblings = self._slots.get(part.slot)
        if siblings is not None:
            siblings.remove((part.rank, id))
        self._tombstones[id] = self.clock.tick()
        while len(self._tombstones) > TOMBSTONES:
            self._horizon = self._tombstones.popitem(last=False)[1]
        self.touch()

    def begin_anew(self) -> None:
        """Has readers who saw another channel in this one's place get all of it."""
        self._horizon = self.clock.tick()

    @property
    def is_watched(self) -> bool:
        """Whether a reader waits for changes."""
        return bool(self._watchers)

    def end(self, why: str) -> None:
        """Tells every reader that the channel is gone, and why."""
        self.gone = why
        self.clock.tick()
        self.touch()

    def get(self, id: str) -> Part | None:
        return self._parts.get(id)

    def slot(self, slot: str) -> list[Part]:
        """The parts of a slot in order, for a page that shows them all."""
        self.settled()
        return [self._parts[id] for _, id in self._slots.get(slot, ())]

    def parts(self) -> list[Part]:
        """All parts, in no order that means anything."""
        return list(self._parts.values())

    def settled(self) -> int:
        """Folds what waits to be folded and returns the version that all parts now have."""
        # Readers were woken when the news came in: no need to wake them once more.
        self._settling = True
        try:
            for refresh in self.refreshers:
                refresh()
            if self.settle is not None:
                self.left = self.settle()
        finally:
            self._settling = False
        return self.clock.version

    def changes(self, after: int) -> Changes:
        """Everything above a cursor, parents before what lies in them, siblings in order."""
        version = self.settled()
        full = after < self._horizon
        changed: list[Part] = []
        for part in reversed(self._parts.values()):
            if part.version <= after and not full:
                break
            changed.append(part)
        depths = {slot: self._depth(slot) for slot in {part.slot for part in changed}}
        changed.sort(key=lambda part: (depths[part.slot], part.rank, part.id))
        before = self._all_before(depths) if len(changed) > FEW else None
        found = [
            Change(part.id, part.version, part, before[part.id] if before else self._before(part))
            for part in changed
        ]
        if full:
            return Changes(version, True, found)
        for id, removed in reversed(self._tombstones.items()):
            if removed <= after:
                break
            found.append(Change(id, removed, None, None))
        return Changes(version, False, found)

    def touch(self) -> None:
        """Wakes the readers: something changed, or will when it is settled."""
        if not self._settling:
            for watcher in self._watchers:
                watcher.wake()

    def _place(self, slot: str, id: str, rank: float | None) -> float:
        siblings = self._slots.setdefault(slot, [])
        if rank is None:
            rank = siblings[-1][0] + 1 if siblings else 0
            siblings.append((rank, id))
        else:
            insort(siblings, (rank, id))
        return rank

    def _before(self, part: Part) -> str | None:
        siblings = self._slots[part.slot]
        index = bisect_left(siblings, (part.rank, part.id))
        return siblings[index - 1][1] if index > 0 else None

    def _all_before(self, slots: Iterable[str]) -> dict[str, str | None]:
        """For every part of some slots what `_before` says, in one walk."""
        before: dict[str, str | None] = {}
        for slot in slots:
            ids = [id for _, id in self._slots[slot]]
            before.update(zip(ids, [None, *ids], strict=False))
        return before

    def _depth(self, slot: str) -> int:
        depth, parent = 0, self._parts.get(slot)
        while parent is not None:
            depth, parent = depth + 1, self._parts.get(parent.slot)
        return depth


class Watcher:
    """Waits for a change in any of several channels. Use as a context manager."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._channels = list(channels)
        self._event = asyncio.Event()

    def __enter__(self) -> Watcher:
        for channel in self._channels:
            channel._watchers.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels:
            channel._watchers.discard(self)

    def wake(self) -> None:
        self._event.set()

    async def changed(self) -> None:
        """Returns when something changed since the last return, or soon if something is `left`."""
        left = any(channel.left for channel in self._channels)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_SECONDS if left else None):
                await self._event.wait()
        self._event.clear()
