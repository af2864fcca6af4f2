"""The files of a chat as they were at some time, in a chat that begins from there."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from web.chats.snapshots.forked_files import MAX_COPIED_BYTES, copy_files
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.versions import PERSON

pytestmark = pytest.mark.anyio

NOW = 4_000_000_000.0
"""Later than any file on this disk."""


class Folders:
    """Two chats' files; the versions of the first are made at 1, 2, 3, ... seconds after `NOW`."""

    def __init__(self, folder: Path) -> None:
        times = itertools.count(NOW + 1)
        self.source = ChatFiles(folder / "source", None, lambda: next(times))
        self.target = ChatFiles(folder / "target")

    async def write(self, path: str, text: str) -> None:
        await self.source.write(path, text.encode(), PERSON, replace=True)

    async def copied(self, at: float, **limits: int) -> dict[str, str]:
        """What there is after a copy of what there was so many seconds after `NOW`."""
        self.words = await copy_files(self.source, self.target, NOW + at, **limits)
        return {
            info.path: (await self.target.read(info.path)).decode()
            for info in await self.target.list()
        }


async def test_each_file_is_there_as_it_was_then(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    await folders.write("a/changed.txt", "one")
    await folders.write("gone.txt", "was here")
    await folders.write("before.txt", "deleted before")
    await folders.source.delete("before.txt", PERSON)
    at = 4.5
    await folders.write("a/changed.txt", "two")
    await folders.source.delete("gone.txt", PERSON)
    await folders.write("later.txt", "not yet")
    assert await folders.copied(at) == {"a/changed.txt": "one", "gone.txt": "was here"}
    assert folders.words == " Its files are here as they were then."
    assert await folders.source.read("a/changed.txt") == b"two"
    # Another time it is the same: the server may have been stopped in between.
    assert await folders.copied(at) == {"a/changed.txt": "one", "gone.txt": "was here"}


async def test_a_chat_without_files_then_says_nothing_of_them(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    assert await folders.copied(1.0) == {}
    await folders.write("later.txt", "x")
    assert await folders.copied(0.5) == {}
    assert folders.words == ""
    assert not (tmp_path / "target").exists()


async def test_what_a_person_put_in_by_hand_is_copied_too(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    await folders.write("known.txt", "x")
    (tmp_path / "source" / "by-hand.txt").write_text("mine")
    assert await folders.copied(1.5) == {"known.txt": "x", "by-hand.txt": "mine"}


async def test_what_is_too_much_stays_and_is_named(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    for name in ("a", "b", "c", "d", "e", "f"):
        await folders.write(f"{name}.txt", name * 5)
    await folders.write("large.txt", "x" * 20)
    # The newest first.
    assert await folders.copied(9, max_files=2, max_bytes=12) == {
        "f.txt": "fffff",
        "e.txt": "eeeee",
    }
    assert folders.words == (
        " Its files are here as they were then. large.txt, d.txt, c.txt and 2 more stay with that "
        "chat: there was too much to be copied."
    )
    await folders.write("huge.bin", "")
    with (tmp_path / "source" / "huge.bin").open("r+b") as file:
        file.truncate(MAX_COPIED_BYTES + 1)  # A hole: it takes no room.
    assert "huge.bin" not in await folders.copied(1e9)
    assert "huge.bin stays with that chat" in folders.words
