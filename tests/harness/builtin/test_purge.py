"""A file is removed with all that is known of it, and one that was only put in is taken back."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.versions import PERSON, Origin
from web.harness.values.errors import NotFound, ToolError

pytestmark = pytest.mark.anyio

CALL = Origin("call", "r", "c")
MINE = hashlib.sha256(b"mine").hexdigest()


def objects(folder: Path) -> int:
    return len(list((folder / ".harness" / "objects").iterdir()))


async def test_another_server_knows_nothing_of_it_either(tmp_path: Path) -> None:
    files, other = ChatFiles(tmp_path), ChatFiles(tmp_path)
    for text in (b"one", b"two"):
        await files.write("a/b.txt", text, CALL, replace=True)
        await files.write("c.txt", b"two", PERSON, replace=True)
    assert len(await other.versions("a/b.txt")) == 2
    await files.purge("a/b.txt")
    assert await other.versions("a/b.txt") == ()
    assert (await other.gone(), objects(tmp_path)) == ({}, 1)
    assert not (tmp_path / "a").exists()
    with pytest.raises(NotFound):
        await other.purge("a/b.txt")
    written = await other.write("a/b.txt", b"new", CALL, replace=False)
    assert written.number == 1


async def test_one_that_is_too_large_to_be_a_version_can_go(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(100))
    await ChatFiles(tmp_path, FileLimits(max_file_bytes=50)).purge("large.bin")
    assert not (tmp_path / "large.bin").exists()


async def test_a_link_in_its_place_stays_and_so_does_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("theirs")
    folder = tmp_path / "chat"
    files = ChatFiles(folder)
    await files.write("a.txt", b"mine", PERSON, replace=False)
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolError, match=r"a\.txt"):
        await files.take_back("a.txt", MINE)
    await files.purge("a.txt")
    assert (await files.histories(), objects(folder)) == ({}, 0)
    # With no version left, there is nothing of it to remove.
    with pytest.raises(ToolError, match=r"a\.txt"):
        await files.purge("a.txt")
    assert (folder / "a.txt").is_symlink()
    assert (tmp_path / "secret").read_text() == "theirs"


async def test_what_only_the_person_had_to_do_with_is_taken_back(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    await files.write("a.txt", b"mine", PERSON, replace=False)
    assert not await files.take_back("a.txt", hashlib.sha256(b"else").hexdigest())
    await files.delete("a.txt", PERSON)
    await files.restore("a.txt", 1, Origin("restore"))
    assert await files.take_back("a.txt", MINE)
    assert (await files.list(), await files.gone(), objects(tmp_path)) == ((), {}, 0)
    assert not await files.take_back("a.txt", MINE)


@pytest.mark.parametrize("last", [b"mine", b"by hand"])
async def test_one_that_somebody_has_changed_stays(tmp_path: Path, last: bytes) -> None:
    files = ChatFiles(tmp_path)
    await files.write("a.txt", b"mine", PERSON, replace=False)
    await files.write("a.txt", b"theirs", CALL, replace=True)
    (tmp_path / "a.txt").write_bytes(last)
    assert not await files.take_back("a.txt", MINE)
    assert await files.read("a.txt") == last
