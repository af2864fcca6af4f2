"""A zip that is sent while its files change."""

from __future__ import annotations

import io
import os
import zipfile
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from tests.support.opened import opened
from web.harness.builtin.chat_files import ChatFiles
from web.ui.files.file_bytes import PIECE_BYTES
from web.ui.files.zips import ZipEntry, zipped

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("becomes", ["gone", "link", "pipe"])
async def test_a_file_that_becomes_something_else_meanwhile_is_left_out(
    tmp_path: Path, becomes: str
) -> None:
    # More than what is packed together.
    (tmp_path / "a.txt").write_bytes(os.urandom(2 * PIECE_BYTES))
    changed = tmp_path / "b.txt"
    changed.write_text("b")
    (tmp_path / "c.txt").write_text("c")
    files = ChatFiles(tmp_path)
    names = [info.path for info in await files.list()]
    pieces = zipped(ZipEntry(name, partial(files.file_now, name)) for name in sorted(names))
    packed = await anext(pieces)
    changed.unlink()
    if becomes == "link":
        changed.symlink_to("/etc/hostname")
    elif becomes == "pipe":
        os.mkfifo(changed)
    async for piece in pieces:
        packed += piece
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a.txt", "c.txt"]


async def test_many_small_files_are_packed_together(tmp_path: Path) -> None:
    with opened(tmp_path / "a.txt", b"small") as file:
        entries = [ZipEntry(f"{number}.txt", lambda: nullcontext(file)) for number in range(1_000)]
        pieces = [piece async for piece in zipped(entries)]
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 1_000
    # Each is a thread, and something to send.
    assert len(pieces) < 100
