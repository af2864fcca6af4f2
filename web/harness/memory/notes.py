"""Notes: what an agent or a person wrote down, one markdown file each."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from web.harness.memory import folder as disk
from web.harness.memory.arguments import as_limit, as_text
from web.harness.memory.folder import MemoryFolder
from web.harness.memory.folder_watch import FolderWatch
from web.harness.memory.limits import MemoryLimits
from web.harness.memory.note import (
    SUFFIX,
    DeletedNote,
    Note,
    NoteInfo,
    checked_id,
    free_id,
    info_of,
    slug,
    understood,
)
from web.harness.memory.note_text import (
    NoteText,
    checked_content,
    checked_tags,
    checked_title,
    render,
    revise,
)
from web.harness.memory.word_index import WordIndex
from web.harness.tools.beneath import Mark, mark_of
from web.harness.tools.words import did_you_mean, shown
from web.harness.values.errors import HarnessError, LimitExceeded, MemoryRefused, NotFound

CHANGED = "memory_changed"
"""The code of the refusal to write over a change of somebody else's."""

_TITLE_COUNTS, _TAG_COUNTS, _CONTENT_COUNTS = 3.0, 2.0, 1.0

FEW = 1_000
"""Of so many notes each file is looked at every time."""
_LOOK_SECONDS = 1.0
"""Between looks at every file of more: there are writers that the system does not tell of."""


NoteInfos = list[NoteInfo]
Notes = list[Note]


@dataclass(slots=True)
class _Held:
    """A file as it was read last; without a mark it is read again."""

    mark: Mark | None
    digest: str
    info: NoteInfo


class AgentMemory:
    """Titled, tagged notes in a folder; several objects and processes may share one.

    The files may be written by hand as well: changes are noticed at the next call. One that cannot
    be read is listed with its fault and harms no other. All methods block, and may be called from
    any thread. They raise NotFound, LimitExceeded, and MemoryRefused for what a note cannot be and
    where the disk or another program is in the way; then all is as it was.
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
        self._folder = MemoryFolder(Path(storage_dir), "notes", self.limits)
        self._now = now
        self._lock = threading.RLock()
        self._held: dict[str, _Held] = {}
        self._index = WordIndex()
        self._version = 0
        self._names: Mark | None = None
        self._watch: FolderWatch | None = None
        self._look_at_all = 0.0

    @property
    def folder(self) -> Path:
        return self._folder.root

    def look(self) -> int:
        """A number that grows whenever the notes have changed."""
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            return self._version

    def save(self, title: str, content: str, tags: Sequence[str] = ()) -> str:
        """Writes a new note and returns its id. One of the same title stays beside it."""
        now = self._now()
        text = NoteText(
            checked_title(title),
            checked_tags(tags),
            checked_content(content, self.limits.max_note_chars),
            now,
            now,
        )
        with self._folder.writing() as folder, self._lock:
            self._refresh(folder)
            return self._add(folder, slug(text.title), render(text).encode())

    def update(
        self,
        id: str,
        *,
        title: str | None = None,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        seen: str = "",
    ) -> Note:
        """Changes what is given; `seen` is the `digest` of the note that was edited, and where
        another one stands there by now, that is refused (code `memory_changed`)."""
        with self._folder.writing() as folder, self._lock:
            note, source = self._read(folder, id)
            if note.fault:
                raise MemoryRefused(
                    f"The note {shown(id)} cannot be read: {note.fault}",
                    hint="Mend its file, or delete it.",
                )
            if seen and seen != note.digest:
                raise MemoryRefused(
                    f"The note “{note.title}” was changed meanwhile.",
                    hint="Your text is not saved. Look at the note as it is now.",
                    code=CHANGED,
                )
            limit = self.limits.max_note_chars
            text = NoteText(
                note.title if title is None else checked_title(title),
                note.tags if tags is None else checked_tags(tags),
                note.content if content is None else checked_content(content, limit),
                note.created,
                self._now(),
            )
            self._write(folder, id, revise(source, text).encode())
            return self._read(folder, id)[0]

    def get(self, id: str) -> Note:
        """A note by its id, also one with a fault."""
        with self._lock, self._folder.opened() as folder:
            return self._read(folder, id)[0]

    def list(self, tags: Sequence[str] = ()) -> NoteInfos:
        """All notes, those with all the tags if some are given, the one changed last first."""
        wanted = set(checked_tags(tags))
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            infos = [held.info for held in self._held.values() if wanted <= {*held.info.tags}]
        return sorted(infos, key=lambda info: (-info.updated, info.id))

    def search(self, query: str, *, limit: int = 10, tags: Sequence[str] = ()) -> Notes:
        """The notes that have words of the query, and all of the tags if some are given, the one
        that fits best first. Title and tags count more."""
        query, limit = as_text(query, "The query"), as_limit(limit)
        wanted = set(checked_tags(tags))
        notes: Notes = []
        with self._lock, self._folder.opened() as folder:
            self._refresh(folder)
            if folder is None:
                return notes
            held = self._held
            keep = (lambda id: wanted <= {*held[id].info.tags}) if wanted else None
            for id, score in self._index.search(query, limit, keep):
                # Another program may take it away just now.
                with suppress(NotFound):
                    notes.append(replace(self._read(folder, id)[0], score=score))
        return [note for note in notes if not note.fault]

    def delete(self, id: str) -> DeletedNote:
        """Removes a note for good, also one with a fault; what is returned can bring it back."""
        with self._folder.writing() as folder, self._lock:
            info, data = self._read(folder, id)[0], None
            with suppress(HarnessError, OSError):
                data = disk.read(folder, id + SUFFIX, self.limits.max_note_bytes).data
            disk.remove(folder, id + SUFFIX)
            self._drop(id)
            return DeletedNote(id, info.title, data)

    def restore(self, deleted: DeletedNote) -> str:
        """Brings a deleted note back as it was; its id, another one where that is taken by now."""
        if not isinstance(deleted, DeletedNote):
            raise MemoryRefused("Only what `delete` returned can be brought back.")
        if deleted.data is None:
            raise NotFound("This note could not be read, so it cannot be brought back.")
        with self._folder.writing() as folder, self._lock:
            self._refresh(folder)
            return self._add(folder, deleted.id, deleted.data)

    def _add(self, folder: int, wanted: str, data: bytes) -> str:
        if len(self._held) >= self.limits.max_notes:
            raise LimitExceeded(
                f"There are {len(self._held):,} notes, which is the limit.",
                hint="Nothing was saved. Delete some that are no longer needed.",
            )
        names = {name.casefold() for name in os.listdir(folder)}
        id = free_id(wanted, names)
        self._write(folder, id, data)
        return id

    def _write(self, folder: int, id: str, data: bytes) -> None:
        mark = self._folder.write(folder, id + SUFFIX, data)
        self._keep(mark, understood(id, data, mark[2] / 1e9))

    def _read(self, folder: int | None, id: str) -> tuple[Note, str]:
        """A note and its file's text, as they are now."""
        checked_id(id)
        if folder is None:
            raise self._unknown(id)
        try:
            content = disk.read(folder, id + SUFFIX, self.limits.max_note_bytes)
        except NotFound:
            self._drop(id)
            raise self._unknown(id) from None
        except (HarnessError, OSError) as error:
            # One that may not be opened, say, harms no other.
            words = error.message if isinstance(error, HarnessError) else f"{error.strerror}."
            note = Note(id, id, fault=words)
            self._keep(None, note)
            return note, ""
        note = understood(id, content.data, content.written)
        self._keep(content.mark, note)
        return note, content.data.decode("utf-8-sig", "replace")

    def _refresh(self, folder: int | None) -> None:
        """Brings what is held up to the disk; only what changed is read.

        A change of names shows in the folder itself. To see what was written into a file in its
        place, each is looked at, which takes some 2 microseconds; of very many those that the
        system tells of, and all of them once a second.
        """
        if folder is None:
            for id in list(self._held):
                self._drop(id)
            self._names = None
            return
        suspects = self._suspects(folder)
        names = mark_of(os.fstat(folder))
        if names != self._names:
            self._names = None if disk.is_young(names) else names
            self._look_at_names(folder)
        for id in self._written(folder, suspects):
            self._read_again(folder, id)

    def _suspects(self, folder: int) -> set[str] | None:
        """The notes that may have changed since the last call; None where it may be any."""
        if len(self._held) <= FEW:
            return None
        if self._watch is None or not self._watch.is_of(folder):
            # From here on it is told what changes; what was before has to be looked at.
            self._watch = FolderWatch.of(folder)
            return None
        told, now = self._watch.changed(), time.monotonic()
        if told is None or now >= self._look_at_all:
            self._look_at_all = now + _LOOK_SECONDS
            return None
        young = {id for id, held in self._held.items() if held.mark is None}
        return young | {name[: -len(SUFFIX)] for name in told if name.endswith(SUFFIX)}

    def _written(self, folder: int, suspects: set[str] | None) -> set[str]:
        """Those whose file changed since it was read. Done for thousands: kept short."""
        changed: set[str] = set()
        status, held_ids = os.stat, self._held
        for id in held_ids if suspects is None else suspects & held_ids.keys():
            mark = held_ids[id].mark
            try:
                now = status(id + SUFFIX, dir_fd=folder, follow_symlinks=False)
                # The last of the times changes with any other, and nobody can set it.
                if mark is None or now.st_ctime_ns != mark[3] or now.st_ino != mark[0]:
                    changed.add(id)
            except OSError:
                changed.add(id)
        return changed

    def _look_at_names(self, folder: int) -> None:
        """Finds files that are new, gone, or another one than before."""
        held, found = self._held, set()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if not name.endswith(SUFFIX) or name.startswith("."):
                    continue
                id = name[: -len(SUFFIX)]
                found.add(id)
                known = held.get(id)
                if known is None and len(held) >= self.limits.max_notes:
                    continue
                if known is None or known.mark is None or known.mark[0] != entry.inode():
                    self._read_again(folder, id)
        for id in held.keys() - found:
            self._drop(id)

    def _read_again(self, folder: int, id: str) -> None:
        # One that went away meanwhile was dropped; one whose name is no text is nobody's note.
        with suppress(NotFound):
            self._read(folder, id)

    def _keep(self, mark: Mark | None, note: Note) -> None:
        """Holds a note as it was just read; nothing is done where it was held as it is."""
        known = self._held.get(note.id)
        info = info_of(note)
        if known is not None and (known.digest, known.info) == (note.digest, info):
            known.mark = mark
            return
        self._held[note.id] = _Held(mark, note.digest, info)
        self._version += 1
        if note.fault:
            self._index.remove(note.id)
        else:
            fields = [(note.title, _TITLE_COUNTS), (" ".join(note.tags), _TAG_COUNTS)]
            self._index.put(note.id, [*fields, (note.content, _CONTENT_COUNTS)])

    def _drop(self, id: str) -> None:
        if self._held.pop(id, None) is not None:
            self._index.remove(id)
            self._version += 1

    def _unknown(self, id: str) -> NotFound:
        return NotFound(f"There is no note {shown(id)}.{did_you_mean(id, self._held)}")
