"""Facts: short things worth knowing, by category, each with an id."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from web.harness.memory import fact_lines, folder as disk
from web.harness.memory.arguments import as_limit, as_text
from web.harness.memory.fact_lines import GENERAL, Fact, Lines
from web.harness.memory.folder import MemoryFolder
from web.harness.memory.limits import MAX_CATEGORY_CHARS, MemoryLimits
from web.harness.memory.word_index import WordIndex
from web.harness.memory.words import fold
from web.harness.tools.beneath import Mark, mark_of
from web.harness.tools.words import clean, did_you_mean, shown
from web.harness.values.errors import LimitExceeded, MemoryRefused, NotFound, ToolError

FILE = "facts.jsonl"
CHANGED = "memory_changed"
"""The code of the refusal to write over a change of somebody else's."""

_TEXT_COUNTS, _CATEGORY_COUNTS = 1.0, 0.5


@dataclass(frozen=True, slots=True)
class FactFault:
    """A line of the file, counted from 1, that is no fact; it stays as it is."""

    line: int
    fault: str
    text: str = field(repr=False)


Facts = list[Fact]
FactFaults = list[FactFault]


class LongTermMemory:
    """Facts in a folder, in one file with a line each; several objects and processes may share one.

    The file may be edited by hand as well: changes are noticed at the next call. A line that cannot
    be read is told of by `faults`, kept as it is and harms no other. All methods block, and may be
    called from any thread. They raise NotFound, LimitExceeded, and MemoryRefused for what a fact
    cannot be and where the disk or another program is in the way; then all is as it was.
    `now` gives seconds since 1970.
    """

    def __init__(
        self,
        storage_dir: str | os.PathLike[str],
        *,
        limits: MemoryLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.limits = limits or MemoryLimits()
        self._folder = MemoryFolder(Path(storage_dir), "facts", self.limits)
        self._now = now
        self._lock = threading.RLock()
        self._mark: Mark | None = None
        self._lines: Lines = []
        self._facts: dict[str, Fact] = {}
        self._index = WordIndex()
        self._version = 0

    @property
    def folder(self) -> Path:
        return self._folder.root

    def look(self) -> int:
        """A number that grows whenever the facts have changed."""
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            return self._version

    def save(self, text: str, category: str = GENERAL) -> str:
        """Keeps a fact and returns its id, that of the fact there is if it says the same."""
        text, category = self._checked(text), _category(category)
        with self._folder.writing() as folder, self._lock:
            self._refresh(folder)
            for fact in self._facts.values():
                if fact.category == category and fold(fact.text) == fold(text):
                    return fact.id
            now = self._now()
            return self._add(folder, Fact("", category, text, now, now))

    def update(
        self, id: str, text: str | None = None, *, category: str | None = None, seen: str = ""
    ) -> Fact:
        """Changes what is given; `seen` is the `digest` of the fact that was edited, and where
        another one stands there by now, that is refused (code `memory_changed`)."""
        text = None if text is None else self._checked(text)
        with self._folder.writing() as folder, self._lock:
            self._refresh(folder)
            fact = self._known(id)
            if seen and seen != fact.digest:
                raise MemoryRefused(
                    "This fact was changed meanwhile.",
                    hint="Your text is not saved. Look at the fact as it is now.",
                    code=CHANGED,
                )
            changed = replace(
                fact,
                text=fact.text if text is None else text,
                category=fact.category if category is None else _category(category),
                updated=self._now(),
            )
            lines = [
                fact_lines.revised(line, changed) if line.fact and line.fact.id == id else line
                for line in self._lines
            ]
            self._write(folder, lines)
            return self._facts[id]

    def get(self, id: str) -> Fact:
        """A fact by its id."""
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            return self._known(id)

    def list(self, category: str | None = None) -> Facts:
        """All facts, or those of a category, the one changed last first."""
        wanted = None if category is None else _category(category)
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            found = [fact for fact in self._facts.values() if wanted in (None, fact.category)]
        # Of facts of the same second the one that was written later comes first.
        found.reverse()
        return sorted(found, key=lambda fact: -fact.updated)

    def search(self, query: str, *, category: str | None = None, limit: int = 10) -> Facts:
        """The facts that have words of the query, the one that fits best first."""
        query, limit = as_text(query, "The query"), as_limit(limit)
        wanted = None if category is None else _category(category)
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            facts = self._facts
            keep = None if wanted is None else lambda id: facts[id].category == wanted
            return [
                replace(facts[id], score=score)
                for id, score in self._index.search(query, limit, keep)
            ]

    def delete(self, id: str) -> Fact:
        """Removes a fact for good; what is returned can bring it back."""
        with self._folder.writing() as folder, self._lock:
            self._refresh(folder)
            fact = self._known(id)
            lines = [line for line in self._lines if line.fact is None or line.fact.id != id]
            self._write(folder, lines)
            return fact

    def restore(self, fact: Fact) -> str:
        """Brings a deleted fact back as it was; its id, another one where that is taken by now."""
        if not isinstance(fact, Fact):
            raise MemoryRefused("Only what `delete` returned can be brought back.")
        with self._folder.writing() as folder, self._lock:
            self._refresh(folder)
            return self._add(folder, replace(fact, score=0.0))

    def faults(self) -> FactFaults:
        """The lines of the file that are no facts."""
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            return [
                FactFault(number, line.fault, line.raw.decode("utf-8", "replace"))
                for number, line in enumerate(self._lines, 1)
                if line.fault
            ]

    def _add(self, folder: int, fact: Fact) -> str:
        if len(self._facts) >= self.limits.max_facts:
            raise LimitExceeded(
                f"There are {len(self._facts):,} facts, which is the limit.",
                hint="Nothing was saved. Delete some that are no longer needed.",
            )
        id = fact.id
        while not id or id in self._facts:
            id = secrets.token_hex(4)
        self._write(folder, [*self._lines, fact_lines.made(replace(fact, id=id))])
        return id

    def _write(self, folder: int, lines: Lines) -> None:
        content = b"".join(line.raw + b"\n" for line in lines)
        if len(content) > self.limits.max_facts_bytes:
            raise LimitExceeded(
                f"The facts would take more than {self.limits.max_facts_bytes:,} bytes.",
                hint="Nothing was saved. Delete some that are no longer needed.",
            )
        self._mark = self._folder.write(folder, FILE, content)
        # A line that was at fault for another one may be a fact now.
        self._hold(fact_lines.read(content, lines))

    def _refresh(self, folder: int | None) -> None:
        """Brings what is held up to the disk.

        Raises MemoryRefused for a file that cannot be read, so that nobody writes over it.
        """
        try:
            if folder is None:
                raise NotFound("There is no folder yet.")
            status = os.stat(FILE, dir_fd=folder, follow_symlinks=False)
            if self._mark is not None and mark_of(status) == self._mark:
                return
            content, _, self._mark = disk.read(folder, FILE, self.limits.max_facts_bytes)
        except (NotFound, FileNotFoundError):
            self._mark = None
            if self._lines:
                self._hold([])
            return
        except (LimitExceeded, ToolError) as error:
            self._mark = None
            raise MemoryRefused(f"The facts cannot be read: {error.message}") from error
        self._hold(fact_lines.read(content, self._lines))

    def _hold(self, lines: Lines) -> None:
        """Takes over the lines of the file as they are now."""
        facts = {line.fact.id: line.fact for line in lines if line.fact is not None}
        if [line.raw for line in lines] != [line.raw for line in self._lines]:
            self._version += 1
        for id in self._facts.keys() - facts.keys():
            self._index.remove(id)
        for id, fact in facts.items():
            if self._facts.get(id) != fact:
                fields = [(fact.text, _TEXT_COUNTS), (fact.category, _CATEGORY_COUNTS)]
                self._index.put(id, fields)
        self._lines, self._facts = lines, facts

    def _known(self, id: str) -> Fact:
        fact = self._facts.get(as_text(id, "The id"))
        if fact is None:
            raise NotFound(f"There is no fact {shown(id)}.{did_you_mean(id, self._facts)}")
        return fact

    def _checked(self, text: str) -> str:
        text = clean(as_text(text, "The fact")).strip()
        if not text:
            raise MemoryRefused("A fact needs a text.")
        if len(text) > self.limits.max_fact_chars:
            raise LimitExceeded(
                f"The fact has {len(text):,} characters; at most {self.limits.max_fact_chars:,} "
                "are kept.",
                hint="Nothing was saved. Write a note for what is longer.",
                code="too_long",
            )
        return text


def _category(text: str | None) -> str:
    """A category on one line, in small letters; that of most facts where there is none."""
    category = " ".join(clean(as_text(text or "", "The category")).split()).casefold() or GENERAL
    if len(category) > MAX_CATEGORY_CHARS:
        raise LimitExceeded(
            f"A category has at most {MAX_CATEGORY_CHARS} characters.", code="too_long"
        )
    return category
