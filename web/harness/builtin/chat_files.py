"""`ChatFiles`: the files of one chat, for tools, pages and uploads alike."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from web.harness.builtin.contents import Stopped, never
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.file_store import FileStore
from web.harness.builtin.foreign_changes import Changed, Noted
from web.harness.builtin.objects import checked_chunks
from web.harness.builtin.paths import parse_path
from web.harness.builtin.rooted import LeftOut
from web.harness.builtin.texts import MAX_TEXT_BYTES, replaced, text_of
from web.harness.builtin.versions import FileInfo, Origin, Version
from web.harness.tools.sniff import HEAD_BYTES, media_type_of
from web.harness.tools.threads import run_in_thread
from web.harness.tools.words import shown
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Survey:
    """All files of a chat, sorted by path.

    `left_out` counts what lies in the folder but cannot be used: links, devices, names that no
    path may hold; the first of it is `named`. `more` tells that there are more files than the
    limit.
    """

    files: tuple[FileInfo, ...]
    left_out: int
    more: bool
    named: tuple[LeftOut, ...] = ()


class OpenFile:
    """A file or a version, open: it stays what it is when another takes its place.

    `size` is in bytes, `changed_at` in seconds since 1970, `media_type` by its content. `sha256`
    is '' of a file that is too large to be kept.
    """

    def __init__(
        self, descriptor: int, size: int, changed_at: float, sha256: str, media_type: str
    ) -> None:
        self.size = size
        self.changed_at = changed_at
        self.sha256 = sha256
        self.media_type = media_type
        self._descriptor = descriptor

    async def read(self, start: int, size: int) -> bytes:
        """At most `size` bytes from `start` on; fewer only at the end of the file."""
        return await on_disk(lambda: self.read_now(start, size))

    def read_now(self, start: int, size: int) -> bytes:
        """The same, blocking."""
        data = b""
        while len(data) < size:
            piece = os.pread(self._descriptor, size - len(data), start + len(data))
            if not piece:
                break
            data = data + piece if data else piece
        return data

    @property
    def descriptor(self) -> int:
        """For reading by position, until the file is closed."""
        return self._descriptor


class Excerpt(OpenFile):
    """What a file held when it was opened, where more is only ever added to it."""

    def read_now(self, start: int, size: int) -> bytes:
        return super().read_now(start, max(0, min(size, self.size - start)))


class ChatFiles:
    """The files of one chat, below one folder, with all their versions.

    The folder is made by the first write. Beside the files it holds `.harness/`, which belongs to
    this class alone. Several objects, and several processes, may work on one folder: changes take
    turns by a lock file. All that blocks runs in threads, and a change that was begun is finished,
    also when its caller is cancelled.

    Methods raise ToolError for a path that is refused and for what cannot be done (code
    `file_exists` or `file_changed` where that is why), NotFound for what is not there,
    LimitExceeded, with the limit, for what is too much.
    """

    def __init__(
        self,
        folder: Path,
        limits: FileLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` gives seconds since 1970."""
        self.folder = folder
        self.limits = limits or FileLimits()
        self._store = FileStore(folder, self.limits, now)
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Has `changed` called after each change that is made through this object.

        It is called in the event loop. Returns what ends it.
        """
        key = object()
        self._watchers[key] = changed

        def stop() -> None:
            self._watchers.pop(key, None)

        return stop

    async def list(self) -> tuple[FileInfo, ...]:
        """All files, sorted by path."""
        return (await self.survey()).files

    async def survey(self) -> Survey:
        """All files, and whether there is more than can be listed."""
        listing, files = await _looked(self._store.list)
        return Survey(files, listing.left_out, listing.more, tuple(listing.named))

    async def read(self, path: str) -> bytes:
        """The whole file. LimitExceeded where it is larger than a file may be: open it then."""
        return await on_disk(lambda: self._store.rooted.read(path, self.limits.max_file_bytes))

    def open(self, path: str) -> contextlib.AbstractAsyncContextManager[OpenFile]:
        """A file of any size, to be read piece by piece."""
        stop = threading.Event()
        return _in_thread(self.file_now(path, stop.is_set), stop.set)

    @contextlib.contextmanager
    def file_now(self, path: str, stopped: Stopped = never) -> Iterator[OpenFile]:
        """The same, blocking: for use in a thread."""
        with self._store.rooted.open_read(path) as descriptor:
            info = self._store.info(path, descriptor, stopped)
            yield OpenFile(descriptor, info.size, info.changed_at, info.sha256, info.media_type)

    def open_now(self, path: str) -> contextlib.AbstractContextManager[int]:
        """A descriptor of a file, for work that blocks: for use in a thread."""
        return self._store.rooted.open_read(path)

    async def write(
        self, path: str, data: bytes, origin: Origin, *, replace: bool, seen: str | None = None
    ) -> Version:
        """Makes a file, or with `replace` puts another in its place, in one step.

        Returns the version that the file is in now: the one that was there, if it held this very
        content already. `seen` is the digest of what somebody was shown before they agreed ('' for
        no file): if the file is another by now, nothing is done.
        """

        def work() -> Version:
            incoming = self._store.incoming()
            try:
                incoming.add(data)
                return self._store.put(path, incoming, origin, replace=replace, seen=seen)
            finally:
                incoming.close()

        parse_path(path)
        return await self._changed(work)

    async def write_stream(
        self, path: str, chunks: AsyncIterable[bytes], origin: Origin, *, replace: bool
    ) -> Version:
        """As `write`, of content that comes piece by piece and is never held whole in memory."""
        parse_path(path)
        incoming = await on_disk(self._store.incoming)
        try:
            async for chunk in chunks:
                await on_disk(partial(incoming.add, chunk))
            return await self._changed(
                lambda: self._store.put(path, incoming, origin, replace=replace, seen=None)
            )
        finally:
            await on_disk(incoming.close)

    async def edit(
        self,
        path: str,
        old: str,
        new: str,
        origin: Origin,
        *,
        every: bool = False,
        seen: str | None = None,
    ) -> Version:
        """Replaces `old` by `new` in a text file: it must be there, and once unless `every`."""

        def edited(data: bytes) -> bytes:
            text = text_of(data)
            if text is None:
                raise ToolError(f"{shown(path)} is not text in UTF-8.")
            return replaced(path, text, old, new, every=every).encode()

        return await self._changed(
            lambda: self._store.edit(path, edited, origin, max_bytes=MAX_TEXT_BYTES, seen=seen)
        )

    async def delete(self, path: str, origin: Origin, *, seen: str | None = None) -> Version:
        """Removes a file. Its versions stay, and bring it back."""
        return await self._changed(lambda: self._store.delete(path, origin, seen=seen))

    async def purge(self, path: str) -> None:
        """Removes a file with all its versions, also one that was deleted, for good."""
        await self._changed(lambda: self._store.purge(path))

    async def take_back(self, path: str, sha256: str) -> bool:
        """Removes a file that the person put in, for good; says whether it did.

        `sha256` is what it was. It stays where it is another by now, or was once, or anybody else
        had to do with it.
        """
        return await self._changed(lambda: self._store.take_back(path, sha256))

    async def versions(self, path: str) -> tuple[Version, ...]:
        """The kept versions of a file, oldest first, also of one that was deleted.

        A state that somebody made with another program becomes a version by this.
        """
        return await on_disk(lambda: self._store.versions(path))

    async def gone(self) -> dict[str, tuple[Version, ...]]:
        """The files that were deleted and have versions, with those, oldest first."""
        every = await self.histories()
        return {path: versions for path, versions in every.items() if versions[-1].gone}

    async def histories(self) -> dict[str, tuple[Version, ...]]:
        """The kept versions of all files, of those that were deleted too, oldest first."""
        return await on_disk(self._store.histories)

    @contextlib.asynccontextmanager
    async def open_log(self) -> AsyncIterator[tuple[OpenFile, tuple[str, ...]]]:
        """The list of versions as it is now, and the digests of the contents that it names.

        Raises NotFound where there are no versions.
        """
        with contextlib.ExitStack() as stack:
            opening = self._store.open_log()
            descriptor, size, digests = await on_disk(lambda: stack.enter_context(opening))
            at = os.fstat(descriptor).st_mtime
            yield Excerpt(descriptor, size, at, "", "text/plain"), digests

    @contextlib.contextmanager
    def content_now(self, sha256: str) -> Iterator[OpenFile]:
        """The content of some version, to be read piece by piece; it is not checked. Blocks."""
        with self._store.open_content(sha256) as descriptor:
            status = os.fstat(descriptor)
            kind = media_type_of(os.pread(descriptor, HEAD_BYTES, 0))
            yield OpenFile(descriptor, status.st_size, status.st_mtime, sha256, kind)

    @contextlib.asynccontextmanager
    async def open_version(self, path: str, number: int) -> AsyncIterator[OpenFile]:
        """One version of a file, to be read piece by piece; it is not checked."""
        with contextlib.ExitStack() as stack:
            opening = self._store.open_version(path, number)
            descriptor, version = await on_disk(lambda: stack.enter_context(opening))
            yield OpenFile(descriptor, version.size, version.at, version.sha256, version.media_type)

    async def read_version(self, path: str, number: int) -> bytes:
        """The whole content of one version. ToolError where it is not what it was any more."""
        async with self.open_version(path, number) as version:
            chunks = checked_chunks(version.descriptor, version.sha256)
            return await on_disk(lambda: b"".join(chunks))

    async def restore(self, path: str, number: int, origin: Origin) -> Version:
        """Brings an old version back, as a new one; the file may have been deleted."""
        return await self._changed(lambda: self._store.restore(path, number, origin))

    async def note(self) -> Noted:
        """The folder as it is before a program runs in it; see `keep_changes`.

        What somebody changed with another program until now becomes versions of its own, as far as
        it is not very much.
        """
        return await self._changed(self._store.note)

    async def keep_changes(self, noted: Noted, origin: Origin) -> Changed:
        """Makes versions of what a program has changed since, made by `origin`.

        What is too much for that is named in words, and left as it lies.
        """
        return await self._changed(lambda: self._store.keep_changes(noted, origin))

    async def mark(self, data: JsonObject) -> bool:
        """Writes into the folder whose it is; False where there is no folder yet."""
        return await on_disk(lambda: self._store.write_marker(data))

    async def write_record(self, files: Iterable[tuple[str, Iterable[bytes]]]) -> None:
        """Writes files of the readable record, all or none of them. See `record.py`.

        The content is taken in a thread.
        """
        await on_disk(lambda: self._store.write_record(files))

    def open_record(self, name: str) -> contextlib.AbstractAsyncContextManager[OpenFile]:
        """A file of the readable record, to be read piece by piece. Its digest is not known."""
        return _in_thread(self.record_now(name))

    @contextlib.contextmanager
    def record_now(self, name: str) -> Iterator[OpenFile]:
        """The same, blocking: for use in a thread."""
        with self._store.open_record(name) as descriptor:
            status = os.fstat(descriptor)
            yield OpenFile(descriptor, status.st_size, status.st_mtime, "", "text/plain")

    async def _changed(self, work: Callable[[], T]) -> T:
        try:
            result = await on_disk(work)
        except asyncio.CancelledError:
            # It was finished all the same.
            self._tell()
            raise
        self._tell()
        return result

    def _tell(self) -> None:
        for changed in tuple(self._watchers.values()):
            changed()


@contextlib.asynccontextmanager
async def _in_thread(
    opening: contextlib.AbstractContextManager[T], cancelled: Callable[[], None] | None = None
) -> AsyncIterator[T]:
    """What is opened in a thread. `cancelled` is called when nobody waits for it any more."""
    with contextlib.ExitStack() as stack:
        yield await on_disk(lambda: stack.enter_context(opening), cancelled)


async def _looked(work: Callable[[Stopped], T]) -> T:
    """The same of work that changes nothing, and ends soon when the call is stopped."""
    stop = threading.Event()
    return await on_disk(lambda: work(stop.is_set), stop.set)


async def on_disk(work: Callable[[], T], cancelled: Callable[[], None] | None = None) -> T:
    """Runs blocking work to its end, also when the call is stopped; disk errors in words.

    `cancelled` is called when it is stopped.
    """
    try:
        return await run_in_thread(work, finish=True, cancelled=cancelled)
    except OSError as error:
        raise ToolError(f"The disk refused: {error.strerror or type(error).__name__}.") from error
