"""What the files of a folder hold, remembered by their stamps so that few are read twice."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from web.harness.builtin.objects import Content, Measure
from web.harness.builtin.rooted import RootedFolder, Stamp
from web.harness.builtin.version_log import VersionLog
from web.harness.tools.beneath import CHUNK_BYTES, chunks_of
from web.harness.tools.sniff import HEAD_BYTES, media_type_of
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded

Stopped = Callable[[], bool]
"""Whether nobody waits any more for what is being looked at."""


class StoppedError(Exception):
    """A look was ended, since nobody waits for it any more."""


def never() -> bool:
    """The `Stopped` of a look that is finished in any case."""
    return False


class _Known(NamedTuple):
    stamp: Stamp
    content: Content


class Contents:
    """The contents of files, as they were last seen or written.

    Of a file that has more than `max_bytes` the content is not looked at: that may take for ever.
    """

    def __init__(self, rooted: RootedFolder, max_bytes: int) -> None:
        self._rooted = rooted
        self._max_bytes = max_bytes
        self._known: dict[str, _Known] = {}

    def known(self, log: VersionLog, path: str, stamp: Stamp) -> Content | None:
        """What a file of this stamp holds, if that can be said without a look into it."""
        known = self._known.get(path)
        if known is not None and known.stamp == stamp:
            return known.content
        history = log.history(path)
        if history.stamp == stamp and history.last is not None:
            return Content(history.last.sha256, history.last.size, history.last.media_type)
        return None

    def stamp(self, path: str) -> Stamp:
        """The stamp that the file had when it was last looked at, or put down."""
        return self._known[path].stamp

    def look(self, path: str, stopped: Stopped = never) -> Content:
        """What a file holds now. Raises what opening it does, LimitExceeded for one that is too
        large, and StoppedError."""
        with self._rooted.open_read(path) as descriptor:
            stamp = Stamp.of(os.fstat(descriptor))
            if stamp.size > self._max_bytes:
                raise self._too_large(path)
            # It may grow while it is read.
            return self._measured(path, stamp, chunks_of(descriptor, self._max_bytes + 1), stopped)

    def look_into(self, path: str, descriptor: int, stopped: Stopped = never) -> Content:
        """The same of an open file, whose place for reading stays where it is. One that is too
        large has no digest."""
        stamp = Stamp.of(os.fstat(descriptor))
        if stamp.size <= self._max_bytes:
            with contextlib.suppress(LimitExceeded):
                return self._measured(path, stamp, _pieces(descriptor), stopped)
        head = os.pread(descriptor, HEAD_BYTES, 0)
        return Content("", stamp.size, media_type_of(head))

    def _measured(
        self, path: str, stamp: Stamp, chunks: Iterable[bytes], stopped: Stopped
    ) -> Content:
        measure = Measure()
        for chunk in chunks:
            if stopped():
                raise StoppedError
            measure.add(chunk)
            if measure.size > self._max_bytes:
                raise self._too_large(path)
        self.put_down(path, stamp, measure.content)
        return measure.content

    def _too_large(self, path: str) -> LimitExceeded:
        return LimitExceeded(f"{shown(path)} has more than {self._max_bytes:,} bytes.")

    def put_down(self, path: str, stamp: Stamp, content: Content) -> None:
        self._known[path] = _Known(stamp, content)

    def forget(self, path: str) -> None:
        self._known.pop(path, None)

    def keep_only(self, paths: Collection[str]) -> None:
        """Forgets all others: they are not there any more."""
        self._known = {path: known for path, known in self._known.items() if path in paths}


def _pieces(descriptor: int) -> Iterator[bytes]:
    at = 0
    while chunk := os.pread(descriptor, CHUNK_BYTES, at):
        at += len(chunk)
        yield chunk
