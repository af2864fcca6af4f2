"""A zip that is sent while its files change."""

from __future__ import annotations

import io
import os
import zipfile
from functools import partial
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.ui.zips import ZipEntry, zipped

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("becomes", ["gone", "link", "pipe"])
async def test_a_file_that_becomes_something_else_meanwhile_is_left_out(
    tmp_path: Path, becomes: str
) -> None:
    (tmp_path / "a.txt").write_text("a")
    changed = tmp_path / "b.txt"
    changed.write_text("b")
    (tmp_path / "c.txt").write_text("c")
    files = ChatFiles(tmp_path)
    names = [info.path for info in await files.list()]
    pieces = zipped(ZipEntry(name, partial(files.open, name)) for name in sorted(names))
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
