"""What is remembered of one person, as it was when somebody looked last, for all chats of that
person."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from web.chats.parts.memory_kinds import MemoryOf, ShownMemory
from web.harness.memory.excerpts import excerpt
from web.harness.memory.fact_lines import Fact
from web.harness.memory.facts import LongTermMemory
from web.harness.memory.note import DeletedNote, NoteInfo
from web.harness.memory.notes import AgentMemory
from web.harness.tools.threads import run_in_thread
from web.harness.tools.words import shorten
from web.harness.values.errors import HarnessError, NotFound

log = logging.getLogger(__name__)

SHOWN = 50
"""Memories that a page lists, since every open chat has the list; a search finds the others."""
FOUND = 20
SHOWN_FAULTS = 5
_EXCERPT_CHARS = 240


@dataclass(frozen=True, slots=True)
class Listing:
    """The newest memories, how many there are, and what could not be read."""

    memories: tuple[ShownMemory, ...] = ()
    facts: int = 0
    notes: int = 0
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """A whole one. `seen` tells one state of it from another, for whoever changes it."""

    shown: ShownMemory
    text: str
    seen: str


Deleted = DeletedNote | Fact


class MemoryShelf:
    """The facts and notes in one folder. Works on the disk in threads; `listing` costs nothing.

    Methods that are awaited raise what the stores raise; then nothing was changed.
    """

    def __init__(self, folder: Path) -> None:
        self.facts = LongTermMemory(folder)
        self.notes = AgentMemory(folder)
        self.listing = Listing()
        self.version = 0
        """Rises with each look that found something new; 0 before the first one."""
        self._looking = asyncio.Lock()
        self._stores = (-1, -1, "")
        self._known: dict[str, tuple[MemoryOf, str]] = {}

    async def look(self) -> bool:
        """Brings the listing up to what is on disk; says whether it is another."""
        async with self._looking:
            found = await run_in_thread(self._look)
            if found is None or (found == self.listing and self.version):
                return False
            self.listing = found
            self.version += 1
            return True

    async def search(self, words: str) -> tuple[ShownMemory, ...]:
        """Facts and notes with these words, the best of each first."""
        return await run_in_thread(lambda: self._search(words))

    async def read(self, ref: str) -> Memory:
        """A whole memory, by what names it in addresses."""
        return await run_in_thread(lambda: self._read(ref))

    async def add(self, text: str, *, title: str = "", tags: Sequence[str] = ()) -> ShownMemory:
        """A note if there is a title, else a fact, whose category is the first of the tags."""

        def save() -> ShownMemory:
            if title.strip():
                return _of_note(self.notes.get(self.notes.save(title, text, tags)))
            category = next(iter(tags), "")
            id = self.facts.save(text, category) if category else self.facts.save(text)
            return _of_fact(self.facts.get(id))

        return await run_in_thread(save, finish=True)

    async def edit(
        self,
        ref: str,
        *,
        text: str | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        seen: str = "",
    ) -> None:
        """Changes what is given; refused where it is not as it was `seen`."""

        def change() -> None:
            of, id = self._find(ref)
            if of == "note":
                self.notes.update(id, title=title, content=text, tags=tags, seen=seen)
            else:
                category = None if tags is None else next(iter(tags), "")
                self.facts.update(id, text, category=category, seen=seen)

        await run_in_thread(change, finish=True)

    async def delete(self, ref: str) -> tuple[str, Deleted]:
        """Removes one for good; a name for it, and what brings it back."""

        def remove() -> tuple[str, Deleted]:
            of, id = self._find(ref)
            if of == "note":
                note = self.notes.delete(id)
                return note.title, note
            fact = self.facts.delete(id)
            return shorten(" ".join(fact.text.split()), 60), fact

        return await run_in_thread(remove, finish=True)

    async def restore(self, deleted: Deleted) -> None:
        """Brings one back."""

        def put_back() -> None:
            if isinstance(deleted, DeletedNote):
                self.notes.restore(deleted)
            else:
                self.facts.restore(deleted)

        await run_in_thread(put_back, finish=True)

    def _look(self) -> Listing | None:
        """What is there now; None where nothing has changed since the last time."""
        facts, notes, faults = 0, 0, [""]
        try:
            facts = self.facts.look()
        except Exception as error:
            faults = [_words(error)]
        try:
            notes = self.notes.look()
        except Exception as error:
            faults.append(_words(error))
        stores = (facts, notes, "\n".join(faults))
        if stores == self._stores:
            return None
        listing = self._listed()
        self._stores = stores
        return listing

    def _listed(self) -> Listing:
        faults: list[str] = []
        facts: list[Fact] = []
        notes: list[NoteInfo] = []
        try:
            facts = self.facts.list()
            faults += [
                f"Line {each.line} of {self.facts.folder.name}/facts.jsonl: {each.fault}"
                for each in self.facts.faults()
            ]
        except Exception as error:
            faults.append(_words(error))
        try:
            notes = self.notes.list()
        except Exception as error:
            faults.append(_words(error))
        known: dict[str, tuple[MemoryOf, str]] = {
            ref_of("fact", f.id): ("fact", f.id) for f in facts
        }
        known.update({ref_of("note", note.id): ("note", note.id) for note in notes})
        self._known = known
        # Only the newest of either can be among the newest of both.
        newest = [*map(_of_fact, facts[:SHOWN]), *map(_of_note, notes[:SHOWN])]
        newest.sort(key=lambda each: -each.updated)
        more = len(faults) - SHOWN_FAULTS
        if more > 0:
            faults[SHOWN_FAULTS:] = [f"{more:,} more lines that cannot be read."]
        return Listing(tuple(newest[:SHOWN]), len(facts), len(notes), tuple(faults))

    def _search(self, words: str) -> tuple[ShownMemory, ...]:
        facts = [_of_fact(fact) for fact in self.facts.search(words, limit=FOUND)]
        notes = [
            _of_note(note, excerpt(note.content, words, _EXCERPT_CHARS))
            for note in self.notes.search(words, limit=FOUND)
        ]
        return (*facts, *notes)

    def _read(self, ref: str) -> Memory:
        of, id = self._find(ref)
        if of == "note":
            note = self.notes.get(id)
            return Memory(_of_note(note), note.content, note.digest)
        fact = self.facts.get(id)
        return Memory(_of_fact(fact), fact.text, fact.digest)

    def _find(self, ref: str) -> tuple[MemoryOf, str]:
        if ref not in self._known:
            self._listed()
        found = self._known.get(ref)
        if found is None:
            raise NotFound("This memory is not there any more.", hint="It was changed or deleted.")
        return found


def _words(error: Exception) -> str:
    """What a page says of a store that cannot be read; of one that broke the log says more."""
    if isinstance(error, HarnessError):
        return error.message
    log.warning("What is remembered cannot be read.", exc_info=error)
    return "What is remembered cannot be read; the server's log says why."


def ref_of(of: MemoryOf, id: str) -> str:
    """What stands for a memory in addresses."""
    return hashlib.sha256(f"{of}/{id}".encode()).hexdigest()[:16]


def _of_fact(fact: Fact) -> ShownMemory:
    ref = ref_of("fact", fact.id)
    return ShownMemory(ref, "fact", "", fact.text, (fact.category,), fact.updated)


def _of_note(note: NoteInfo, text: str = "") -> ShownMemory:
    ref = ref_of("note", note.id)
    return ShownMemory(
        ref, "note", note.title, text or note.excerpt, note.tags, note.updated, note.fault
    )
