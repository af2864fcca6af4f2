"""What the files of a folder hold, remembered by their stamps so that few are read twice."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

from web.harness.builtin.objects import Content, measured
from web.harness.builtin.rooted import RootedFolder, Stamp
from web.harness.builtin.version_log import VersionLog
from web.harness.tools.beneath import CHUNK_BYTES, chunks_of


class _Known(NamedTuple):
    stamp: Stamp
    content: Content


class Contents:
    """The contents of files, as they were last seen or written."""

    def __init__(self, rooted: RootedFolder) -> None:
        self._rooted = rooted
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

    def look(self, path: str) -> Content:
        """What a file holds now. Raises what opening it does."""
        with self._rooted.open_read(path) as descriptor:
            stamp = Stamp.of(os.fstat(descriptor))
            content = measured(chunks_of(descriptor))
        self.put_down(path, stamp, content)
        return content

    def look_into(self, path: str, descriptor: int) -> Content:
        """The same of an open file, whose place for reading stays where it is."""
        stamp = Stamp.of(os.fstat(descriptor))
        content = measured(_pieces(descriptor))
        self.put_down(path, stamp, content)
        return content

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
