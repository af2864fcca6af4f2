"""What can be done to the files of one chat, on disk. Everything here blocks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from web.harness.builtin.contents import Stopped, never
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.foreign_changes import Changed, Noted, keep_changes, note_folder
from web.harness.builtin.ledger import CHANGING, Ledger, Room
from web.harness.builtin.marker import write_marker
from web.harness.builtin.objects import NOTHING, Content, Incoming, opened_object
from web.harness.builtin.paths import parse_path
from web.harness.builtin.reserved import (
    made_folder,
    open_record_file,
    reserved_folder,
    write_record_files,
)
from web.harness.builtin.rooted import FileEntry, Listing, Stamp
from web.harness.builtin.version_log import VersionLog, opened_log
from web.harness.builtin.versions import (
    PERSON,
    FileInfo,
    History,
    Origin,
    Version,
    in_calendar,
    referenced,
)
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded, NotFound, ToolError
from web.harness.values.messages import JsonObject

HASHED_BYTES = 64 * 1024 * 1024
"""So much of files that are not known is looked into by one listing."""


class FileStore:
    """All that is done to the files of one chat; `ChatFiles` calls it in threads.

    `now` gives seconds since 1970. Raises the errors of `RootedFolder`.
    """

    def __init__(self, root: Path, limits: FileLimits, now: Callable[[], float]) -> None:
        self.limits = limits
        self._ledger = Ledger(root, limits, now)
        self.rooted = self._ledger.rooted
        self._contents = self._ledger.contents

    # What is there

    def list(self, stopped: Stopped = never) -> tuple[Listing, tuple[FileInfo, ...]]:
        """What lies in the folder, and what is known of each file."""
        with self._ledger.looking() as room:
            listing = self.rooted.walk(self.limits.max_files)
            left = HASHED_BYTES
            found = []
            for entry in listing.files:
                content = self._contents.known(room.log, entry.path, entry.stamp)
                if content is None and entry.size <= left:
                    left -= entry.size
                    with contextlib.suppress(LimitExceeded, NotFound, ToolError):
                        content = self._contents.look(entry.path, stopped)
                found.append(_info(entry, content, room.log.history(entry.path)))
            self._contents.keep_only({info.path for info in found})
            return listing, tuple(found)

    def info(self, path: str, descriptor: int, stopped: Stopped = never) -> FileInfo:
        """The same of one open file; what it holds is looked at, unless it is too large."""
        path = _written(path)
        status = os.fstat(descriptor)
        stamp = Stamp.of(status)
        with self._ledger.looking() as room:
            content = self._contents.known(room.log, path, stamp)
            history = room.log.history(path)
        if content is None:
            content = self._contents.look_into(path, descriptor, stopped)
        return _info(FileEntry(path, stamp.size, status.st_mtime, stamp), content, history)

    def versions(self, path: str) -> tuple[Version, ...]:
        """The kept versions of a file, oldest first. What was made outside becomes one first,
        unless it is too large, or is being changed all the time: that hides not those that are."""
        path = _written(path)
        with self._ledger.looking() as room:
            if path not in room.log.histories and self.rooted.status(path) is None:
                return ()
        try:
            self._ledger.adopt(path)
        except LimitExceeded:
            pass
        except ToolError as error:
            if error.code != CHANGING:
                raise
        with self._ledger.looking() as room:
            return tuple(room.log.history(path).versions)

    def histories(self) -> dict[str, tuple[Version, ...]]:
        """The kept versions of each file, also of those that were deleted."""
        with self._ledger.looking() as room:
            return {
                path: tuple(history.versions)
                for path, history in room.log.histories.items()
                if history.versions
            }

    @contextlib.contextmanager
    def open_log(self) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """A descriptor of the list of versions, its size now, and the digests of what it names.

        NotFound where there are no versions.
        """
        with contextlib.ExitStack() as stack:
            with self._ledger.looking() as room:
                digests = tuple(sorted(set(referenced(room.log.histories))))
                if not digests:
                    raise NotFound("No versions of this chat's files are kept.")
                descriptor = stack.enter_context(opened_log(room.reserved))
                size = os.fstat(descriptor).st_size
            yield descriptor, size, digests

    @contextlib.contextmanager
    def open_content(self, sha256: str) -> Iterator[int]:
        """A descriptor of the content of some version. NotFound where it is not kept."""
        with contextlib.ExitStack() as stack:
            with self._ledger.looking() as room:
                descriptor = stack.enter_context(opened_object(room.reserved, sha256))
            yield descriptor

    @contextlib.contextmanager
    def open_version(self, path: str, number: int) -> Iterator[tuple[int, Version]]:
        """A descriptor of a version's content, and the version. NotFound where it is not kept."""
        path = _written(path)
        with contextlib.ExitStack() as stack:
            with self._ledger.looking() as room:
                version = _find(room.log, path, number)
                descriptor = stack.enter_context(opened_object(room.reserved, version.sha256))
            yield descriptor, version

    # Changes

    def incoming(self) -> Incoming:
        """Content that is being brought in, for `put`; it needs no lock meanwhile.

        Whoever asked for it closes it.
        """
        with made_folder(self.rooted) as reserved:
            return Incoming(reserved, self.limits.max_file_bytes)

    def put(
        self, path: str, incoming: Incoming, origin: Origin, *, replace: bool, seen: str | None
    ) -> Version:
        """Makes or replaces a file. See `ChatFiles.write`."""
        path = _written(path)
        content = incoming.content

        def change(room: Room, before: Content | None) -> Version:
            history = room.log.history(path)
            done = history.made_by(origin)
            if done is not None and done.sha256 == content.sha256:
                return done
            if before == content and history.last is not None:
                return history.last
            if before is not None and not replace:
                raise _exists(path)
            _check_seen(path, before, seen)
            self._ledger.check_room(path, content.size, before)
            incoming.keep(room.reserved)
            return self._ledger.place(
                room, path, before, self._ledger.version(history, content, "written", origin)
            )

        return self._ledger.change(path, change)

    def edit(
        self,
        path: str,
        edited: Callable[[bytes], bytes],
        origin: Origin,
        *,
        max_bytes: int,
        seen: str | None,
    ) -> Version:
        """Replaces a file by what `edited` makes of it. See `ChatFiles.edit`."""
        path = _written(path)

        def change(room: Room, before: Content | None) -> Version:
            history = room.log.history(path)
            done = history.made_by(origin)
            if done is not None:
                return done
            if before is None:
                raise _missing(path)
            _check_seen(path, before, seen)
            data = edited(self.rooted.read(path, max_bytes))
            self._ledger.check_room(path, len(data), before)
            content = self._ledger.keep(room, [data])
            return self._ledger.place(
                room, path, before, self._ledger.version(history, content, "edited", origin)
            )

        return self._ledger.change(path, change)

    def delete(self, path: str, origin: Origin, *, seen: str | None) -> Version:
        """Removes a file; its versions stay."""
        path = _written(path)

        def change(room: Room, before: Content | None) -> Version:
            history = room.log.history(path)
            if before is None:
                done = history.made_by(origin)
                if done is not None and done is history.last:
                    return done
                raise _missing(path)
            _check_seen(path, before, seen)
            return self._ledger.place(
                room, path, before, self._ledger.version(history, NOTHING, "deleted", origin)
            )

        return self._ledger.change(path, change)

    def purge(self, path: str) -> None:
        """Removes a file with all its versions, also one that is too large to be a version."""
        path = _written(path)
        with self._ledger.changing() as room:
            if self._ledger.status(path) is not None:
                self.rooted.delete(path, lambda status: None)
                self._contents.forget(path)
            elif room.log.history(path).last is None:
                # In words where something else lies there, which is left alone.
                self.rooted.status(path)
                raise _missing(path)
            self._ledger.forget(room, path)

    def take_back(self, path: str, sha256: str) -> bool:
        """Removes a file that a person put in, with its versions; whether it did.

        It stays where it is another by now or was once, or anybody else had to do with it.
        """
        path = _written(path)

        def change(room: Room, before: Content | None) -> bool:
            history = room.log.history(path)
            if before is None or before.sha256 != sha256 or not history.is_all(sha256):
                return False
            gone = self._ledger.version(history, NOTHING, "deleted", PERSON)
            self._ledger.place(room, path, before, gone)
            self._ledger.forget(room, path)
            return True

        return self._ledger.change(path, change)

    def restore(self, path: str, number: int, origin: Origin) -> Version:
        """Brings an old version back, as a new one."""
        path = _written(path)

        def change(room: Room, before: Content | None) -> Version:
            old = _find(room.log, path, number)
            content = Content(old.sha256, old.size, old.media_type)
            if old.gone:
                raise ToolError(f"Version {number} of {shown(path)} is its deletion.")
            if before == content:
                raise ToolError(f"{shown(path)} is just as version {number} was.")
            self._ledger.check_room(path, old.size, before)
            version = self._ledger.version(room.log.history(path), content, "restored", origin)
            return self._ledger.place(room, path, before, replace(version, restored=number))

        return self._ledger.change(path, change)

    def note(self) -> Noted:
        """See `note_folder`."""
        return note_folder(self._ledger)

    def keep_changes(self, noted: Noted, origin: Origin) -> Changed:
        """See the function of that name."""
        return keep_changes(self._ledger, noted, origin)

    # The readable record, and the marker

    def write_marker(self, data: JsonObject) -> bool:
        """See `marker.py`."""
        return write_marker(self.rooted, data)

    def write_record(self, files: Iterable[tuple[str, Iterable[bytes]]]) -> None:
        """Makes or replaces files of the record, all or none."""
        with self._ledger.changing() as room:
            write_record_files(room.reserved, files)

    @contextlib.contextmanager
    def open_record(self, name: str) -> Iterator[int]:
        """A descriptor of one file of the record. Raises NotFound where it was never written."""
        with reserved_folder(self.rooted) as reserved:
            if reserved is None:
                raise NotFound("No record of this chat was written yet.")
            with open_record_file(reserved, name) as descriptor:
                yield descriptor


def _written(path: str) -> str:
    return "/".join(parse_path(path))


def _info(entry: FileEntry, content: Content | None, history: History) -> FileInfo:
    last = history.last
    own = content is not None and last is not None and last.sha256 == content.sha256
    return FileInfo(
        path=entry.path,
        size=entry.size,
        changed_at=in_calendar(entry.modified),
        sha256=content.sha256 if content is not None else "",
        media_type=content.media_type if content is not None else "",
        versions=len(history.versions),
        last=last if own else None,
    )


def _find(log: VersionLog, path: str, number: int) -> Version:
    version = log.history(path).find(number)
    if version is None:
        raise _no_version(path, number)
    return version


def _check_seen(path: str, before: Content | None, seen: str | None) -> None:
    if seen is not None and seen != (before.sha256 if before is not None else ""):
        raise ToolError(
            f"{shown(path)} was changed since the person saw what this call would do. Nothing was "
            "done; look at the file again.",
            code="file_changed",
        )


def _exists(path: str) -> ToolError:
    return ToolError(
        f"There is a file {shown(path)} already. To replace all of it, send replace=true; to "
        "change a part of it, use edit_file.",
        code="file_exists",
    )


def _missing(path: str) -> NotFound:
    return NotFound(f"There is no file {shown(path)}.")


def _no_version(path: str, number: int) -> NotFound:
    return NotFound(f"There is no version {number} of {shown(path)}.")
