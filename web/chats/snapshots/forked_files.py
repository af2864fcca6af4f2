"""The files of a chat as they were at some time, copied into a chat that begins from there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from web.harness.builtin.chat_files import ChatFiles, OpenFile
from web.harness.builtin.versions import PERSON, FileInfo, Version
from web.harness.tools.words import shorten
from web.harness.values.errors import HarnessError

MAX_COPIED_FILES = 200
MAX_COPIED_BYTES = 100 * 1024 * 1024
"""Of all that are copied: the person waits for it."""

NAMED = 3
NAME_CHARS = 80
PIECE_BYTES = 1024 * 1024


class _State(NamedTuple):
    """A file as it was: that version of it, or, by 0, as it still is."""

    path: str
    version: int
    size: int
    at: float

    def open(self, files: ChatFiles) -> AbstractAsyncContextManager[OpenFile]:
        return (
            files.open_version(self.path, self.version) if self.version else files.open(self.path)
        )


async def copy_files(
    source: ChatFiles,
    target: ChatFiles,
    at: float,
    *,
    max_files: int = MAX_COPIED_FILES,
    max_bytes: int = MAX_COPIED_BYTES,
) -> str:
    """Copies the files as they were `at` seconds since the epoch, the newest first, up to a limit.

    Returns what a person is told of it, '' where there were none.
    """
    try:
        survey, histories = await source.survey(), await source.histories()
    except HarnessError as error:
        return f" Its files stay with that chat, as they could not be read. {error.message}"
    states = sorted(_states(survey.files, histories, at), key=lambda each: -each.at)
    left: list[str] = []
    size = 0
    for number, state in enumerate(states):
        if number - len(left) >= max_files or size + state.size > max_bytes:
            left.append(state.path)
            continue
        try:
            async with state.open(source) as file:
                # Once more is no harm, should the server have been stopped in the middle of it.
                await target.write_stream(state.path, _pieces(file), PERSON, replace=True)
            size += state.size
        except HarnessError:
            left.append(state.path)
    return _words(len(states) - len(left), left)


def _states(
    files: Iterable[FileInfo], histories: dict[str, tuple[Version, ...]], at: float
) -> Iterator[_State]:
    there = {info.path: info for info in files}
    for path in there.keys() | histories.keys():
        info = there.get(path)
        # Of what is a version its time is exact; that of a file on a disk may be some ms early.
        if info is not None and info.last is None and info.changed_at <= at:
            yield _State(path, 0, info.size, info.changed_at)
            continue
        before = [version for version in histories.get(path, ()) if version.at <= at]
        if before and not before[-1].gone:
            yield _State(path, before[-1].number, before[-1].size, before[-1].at)


async def _pieces(file: OpenFile) -> AsyncIterator[bytes]:
    for start in range(0, file.size, PIECE_BYTES):
        yield await file.read(start, PIECE_BYTES)


def _words(copied: int, left: Sequence[str]) -> str:
    words = " Its files are here as they were then." if copied else ""
    if left:
        named = ", ".join(shorten(path, NAME_CHARS) for path in left[:NAMED])
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        verb = "stays" if len(left) == 1 else "stay"
        words += f" {named}{more} {verb} with that chat: there was too much to be copied."
    return words
