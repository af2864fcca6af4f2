"""A chat's folder under its lock: files, log and objects, changed together.

A change goes like this: what somebody did with an editor becomes a version first, the new content
goes among the objects, the plan goes into the log, then the file is replaced, and the log says that
it is done. Killed anywhere in between, nothing is lost, and the next one who holds the lock finds
out how far it came.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from web.harness.builtin.contents import Contents
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.folder_lock import FolderLock
from web.harness.builtin.objects import (
    NOTHING,
    Content,
    Incoming,
    checked_chunks,
    opened_object,
    remove_objects,
    remove_unused,
)
from web.harness.builtin.reserved import made_folder, remove_temporaries, reserved_folder
from web.harness.builtin.rooted import RootedFolder, Stamp
from web.harness.builtin.version_log import VersionLog
from web.harness.builtin.versions import (
    OUTSIDE,
    Deed,
    History,
    Origin,
    Version,
    in_calendar,
    referenced,
)
from web.harness.tools.beneath import chunks_of
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded, NotFound, ToolError

T = TypeVar("T")

CHANGE_ATTEMPTS = 20
"""Times somebody else may change a file at the same moment before that is an error."""


RETRIED_BYTES = 256 * 1024 * 1024
"""So much is read of such a file, again and again, before that is an error."""

CHANGING = "file_changing"
"""The code of that error."""

_UNKNOWN = Content("?", 0, "")
"""Stands for the content of a file that is too large to be looked at: it is no version's."""


class ChangedMeanwhileError(Exception):
    """Somebody else has changed the file between the look at it, of `size` bytes, and its
    replacement."""

    def __init__(self, size: int = 0) -> None:
        super().__init__()
        self.size = size


@dataclass(frozen=True, slots=True)
class Room:
    """The lock is held: a descriptor of the reserved folder, and the log, up to date.

    Where there is no such folder yet the descriptor is -1 and the log empty.
    """

    reserved: int
    log: VersionLog


class Ledger:
    """One folder of files and what is written down of them.

    `now` gives seconds since 1970. Raises the errors of `RootedFolder`. Everything here blocks.
    """

    def __init__(self, root: Path, limits: FileLimits, now: Callable[[], float]) -> None:
        self.rooted = RootedFolder(root)
        self.limits = limits
        self.contents = Contents(self.rooted, limits.max_file_bytes)
        self._now = now
        self._lock = FolderLock(limits.busy_seconds)
        self._log = VersionLog()
        self._swept = False

    @contextlib.contextmanager
    def looking(self) -> Iterator[Room]:
        """The lock, held, to look; nothing is made where there is nothing yet."""
        with reserved_folder(self.rooted) as reserved:
            if reserved is None:
                yield Room(-1, VersionLog())
                return
            with self._lock.held(reserved):
                self._catch_up(reserved)
                yield Room(reserved, self._log)

    @contextlib.contextmanager
    def changing(self) -> Iterator[Room]:
        """The lock, held, and what crashes left cleared away."""
        with made_folder(self.rooted) as reserved, self._lock.held(reserved):
            self._catch_up(reserved)
            if not self._swept:
                self._swept = True
                self.rooted.remove_leftovers()
                remove_temporaries(reserved)
                # What a line that is not understood speaks of may be in use.
                if not self._log.foreign:
                    remove_unused(reserved, set(referenced(self._log.histories)))
            yield Room(reserved, self._log)

    def _catch_up(self, reserved: int) -> None:
        """Reads what others have written down, and ends what one of them could not."""
        self._log.refresh(reserved)
        if self._log.open_plan is not None:
            self._settle(reserved)

    def _settle(self, reserved: int) -> None:
        """Finds out whether what was planned has happened."""
        plan = self._log.open_plan
        if plan is None:
            return
        content, stamp = NOTHING, None
        try:
            content = self.contents.look(plan[0])
            stamp = self.contents.stamp(plan[0])
        except LimitExceeded:
            content = _UNKNOWN
        except (NotFound, ToolError):
            pass
        self._log.settle(reserved, content.sha256, stamp)

    def change(self, path: str, change: Callable[[Room, Content | None], T]) -> T:
        """Has `change` do its work on what the file holds now, None where there is none.

        Raises ToolError where something lies there that is no plain file.
        """

        def work(room: Room) -> T:
            before = self._adopt(room, path, None)
            if before is None:
                self.rooted.status(path)
            return change(room, before)

        return self._settled(path, work)

    def adopt(self, path: str, origin: Origin | None = None) -> Version | None:
        """Makes a version of a file as it is, or of its end; None where it is one already.

        `origin` is who made it so, None for somebody outside. Raises LimitExceeded for a file that
        is too large for that, ToolError (code `CHANGING`) for one that does not come to rest.
        """

        def work(room: Room) -> Version | None:
            before = room.log.history(path).last
            self._adopt(room, path, origin)
            last = room.log.history(path).last
            return last if last is not before else None

        return self._settled(path, work)

    def _settled(self, path: str, work: Callable[[Room], T]) -> T:
        """Has the work done under the lock, anew where somebody changes the file meanwhile."""
        left = RETRIED_BYTES
        with self.changing() as room:
            for _ in range(CHANGE_ATTEMPTS):
                try:
                    return work(room)
                except ChangedMeanwhileError as error:
                    left -= error.size
                if left < 0:
                    break
        raise ToolError(
            f"{shown(path)} is being changed by another program. Try again later.", code=CHANGING
        )

    def status(self, path: str) -> os.stat_result | None:
        """The file's status, None where no plain file is: nothing, or a link or folder."""
        try:
            return self.rooted.status(path)
        except ToolError:
            return None

    def _adopt(self, room: Room, path: str, origin: Origin | None) -> Content | None:
        """The file as it is now, None where there is none; a version, if it is none yet."""
        status = self.status(path)
        history = room.log.history(path)
        last = history.last
        if status is None:
            self.contents.forget(path)
            if last is not None and not last.gone:
                found = self.version(history, NOTHING, "found", origin or OUTSIDE)
                self._write_down(room, path, found, None)
            return None
        if status.st_size > self.limits.max_file_bytes:
            return self._large(room, path, status)
        try:
            # Looked at whatever its stamp says: two changes may be too close for the disk's clock.
            content = self.contents.look(path)
            if last is not None and content.sha256 == last.sha256:
                return content
            with self.rooted.open_read(path) as descriptor:
                kept = self.keep(room, chunks_of(descriptor))
        except (NotFound, ToolError) as error:
            # It was there a moment ago.
            raise ChangedMeanwhileError(status.st_size) from error
        if kept != content:
            raise ChangedMeanwhileError(content.size + kept.size)
        found = self.version(history, content, "found", origin or OUTSIDE)
        found = replace(found, at=in_calendar(status.st_mtime))
        self._write_down(room, path, found, self.contents.stamp(path))
        return content

    def _large(self, room: Room, path: str, status: os.stat_result) -> Content:
        """What a file holds that is larger than those that can be kept, where it is the one that
        was kept under another limit. Its stamp has to do."""
        stamp, last = Stamp.of(status), room.log.history(path).last
        content = self.contents.known(room.log, path, stamp)
        if content is None or last is None or content.sha256 != last.sha256:
            raise LimitExceeded(
                f"{shown(path)} was made by another program and has {stamp.size:,} bytes. "
                f"Up to {self.limits.max_file_bytes:,} can be kept as a version; so that "
                "nothing is lost, it is left alone."
            )
        self.contents.put_down(path, stamp, content)
        return content

    def keep(self, room: Room, chunks: Iterable[bytes]) -> Content:
        """Puts content among the objects."""
        incoming = Incoming(room.reserved, self.limits.max_file_bytes)
        try:
            for chunk in chunks:
                incoming.add(chunk)
            return incoming.keep(room.reserved)
        finally:
            incoming.close()

    def _write_down(self, room: Room, path: str, version: Version, stamp: Stamp | None) -> None:
        """A version whose file is as it says already."""
        room.log.plan(room.reserved, path, version)
        room.log.done(room.reserved, path, version.number, stamp)
        self._prune(room, path)

    def place(self, room: Room, path: str, before: Content | None, version: Version) -> Version:
        """Writes down what is to happen, does it, writes down that it has."""
        expected = self.contents.stamp(path) if before is not None else None

        def check(status: os.stat_result | None) -> None:
            if (Stamp.of(status) if status is not None else None) != expected:
                raise ChangedMeanwhileError

        room.log.plan(room.reserved, path, version)
        try:
            stamp = self._carry_out(room, path, version, check)
        except ChangedMeanwhileError:
            room.log.undo(room.reserved)
            raise
        except (NotFound, ToolError, OSError):
            self._settle(room.reserved)
            raise
        room.log.done(room.reserved, path, version.number, stamp)
        self._prune(room, path)
        return version

    def _carry_out(
        self,
        room: Room,
        path: str,
        version: Version,
        check: Callable[[os.stat_result | None], None],
    ) -> Stamp | None:
        if version.gone:
            self.rooted.delete(path, check)
            self.contents.forget(path)
            return None
        with opened_object(room.reserved, version.sha256) as descriptor:
            chunks = checked_chunks(descriptor, version.sha256)
            stamp = Stamp.of(self.rooted.write_atomic(path, chunks, check))
        content = Content(version.sha256, version.size, version.media_type)
        self.contents.put_down(path, stamp, content)
        return stamp

    def version(self, history: History, content: Content, deed: Deed, origin: Origin) -> Version:
        """The next version, made now."""
        return Version(
            number=history.next_number,
            sha256=content.sha256,
            size=content.size,
            at=self._now(),
            media_type=content.media_type,
            deed=deed,
            origin=origin,
        )

    def check_room(self, path: str, size: int, before: Content | None) -> None:
        """Whether the file may have that size. Raises LimitExceeded, ToolError for a twin."""
        listing = self.rooted.walk(self.limits.max_files)
        self.limits.check_room(listing, path, size, new=before is None)

    def _prune(self, room: Room, path: str) -> None:
        """Drops the oldest versions beyond the bounds, and their content where nobody has it."""
        dropped = self.limits.beyond(room.log.histories, path)
        if dropped:
            self._drop(room, dropped)
            room.log.compact(room.reserved)

    def forget(self, room: Room, path: str) -> None:
        """Drops all versions of a path, and what the log says of them, for good."""
        history = room.log.history(path)
        if history.last is not None:
            self._drop(room, {path: history.last.number})
            room.log.compact(room.reserved, spare=0)

    def _drop(self, room: Room, dropped: dict[str, int]) -> None:
        """Drops the versions of each path up to a number, and the content that nobody else has."""
        gone = {
            version.sha256
            for each, number in dropped.items()
            for version in room.log.histories[each].versions
            if version.number <= number and version.sha256
        }
        room.log.drop(room.reserved, dropped)
        remove_objects(room.reserved, gone - set(referenced(room.log.histories)))
