"""Files of a chat that are too large to be kept, no plain files any more, or never at rest."""

# Nobody else waits in these event loops.

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.file_store import FileStore
from web.harness.builtin.ledger import CHANGING, RETRIED_BYTES, ChangedMeanwhileError, Ledger, Room
from web.harness.builtin.objects import Content
from web.harness.builtin.versions import OUTSIDE, PERSON, Origin, Version
from web.harness.values.errors import LimitExceeded, ToolError

pytestmark = pytest.mark.anyio

CALL = Origin("call", "r", "c", "key", "allow")


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Another program that changes a file of some megabytes, again and again."""
    begun, stop = threading.Event(), threading.Event()
    path.write_bytes(bytes(4_000_000))

    def write() -> None:
        with path.open("r+b", buffering=0) as file:
            for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                os.pwrite(file.fileno(), b"%20d" % number, 0)
                begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(20)
    try:
        yield
    finally:
        stop.set()
        writer.join()


async def test_a_file_of_forty_gigabytes_holds_nobody_up(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    await files.write("seed.txt", b"x", PERSON, replace=False)
    noted = await files.note()
    sparse(tmp_path / "disk.img", 40 << 30)
    began = time.monotonic()
    async with asyncio.timeout(60):
        assert [info.path for info in await files.list()] == ["disk.img", "seed.txt"]
        assert await files.versions("disk.img") == ()
        async with files.open("disk.img") as opened:
            assert (opened.size, opened.sha256) == (40 << 30, "")
        changed = await files.keep_changes(noted, CALL)
        with pytest.raises(LimitExceeded, match="left alone"):
            await files.write("disk.img", b"x", PERSON, replace=True)
        await files.purge("disk.img")
    assert time.monotonic() - began < 5
    assert '"disk.img" was made by another program and has 42,949,672,960' in changed.words


async def test_a_crash_that_left_a_plan_for_such_a_file_is_settled(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    await files.write("a", b"x", PERSON, replace=False)
    log = tmp_path / ".harness" / "versions.jsonl"
    # Without its end.
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    sparse(tmp_path / "a", 40 << 30)
    began = time.monotonic()
    [version] = await ChatFiles(tmp_path).versions("a")
    assert (version.number, time.monotonic() - began < 5) == (1, True)


async def test_a_listing_looks_into_so_much_and_no_more(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    for number in range(3):
        sparse(tmp_path / f"{number}.bin", 30 * 1024 * 1024)
    sparse(tmp_path / "large.bin", 65 * 1024 * 1024)
    assert [bool(info.sha256) for info in await files.list()] == [True, True, False, False]
    # What is known is not looked at again.
    assert [bool(info.sha256) for info in await files.list()] == [True, True, True, False]


async def test_a_look_ends_with_the_wish_for_it(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path, FileLimits(max_file_bytes=40 << 30))
    sparse(tmp_path / "disk.img", 30 << 30)

    async def opened() -> None:
        async with files.open("disk.img"):
            pass

    began = time.monotonic()
    opening = asyncio.create_task(opened())
    done, _ = await asyncio.wait({opening}, timeout=0.3)
    assert not done
    opening.cancel()
    await asyncio.wait({opening}, timeout=20)
    assert opening.cancelled()
    assert time.monotonic() - began < 5


async def test_a_file_kept_under_a_larger_limit_can_still_be_deleted(tmp_path: Path) -> None:
    await ChatFiles(tmp_path).write("a", b"x" * 100, PERSON, replace=False)
    files = ChatFiles(tmp_path, FileLimits(max_file_bytes=10))
    assert (await files.delete("a", PERSON)).gone
    await ChatFiles(tmp_path).restore("a", 1, PERSON)
    # Changed, it is no version's.
    (tmp_path / "a").write_bytes(b"y" * 100)
    with pytest.raises(LimitExceeded):
        await files.delete("a", PERSON)


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def second_name(path: Path) -> None:
    (path.parent.parent / "other").write_text("x")
    os.link(path.parent.parent / "other", path)


@pytest.mark.parametrize("make", [link, Path.mkdir, os.mkfifo, second_name])
async def test_what_is_no_plain_file_any_more_is_gone_and_its_versions_are_not(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    folder = tmp_path / "chat"
    files = ChatFiles(folder)
    await files.write("seed.txt", b"x", PERSON, replace=False)
    noted = await files.note()
    (folder / "seed.txt").unlink()
    make(folder / "seed.txt")
    assert (await files.keep_changes(noted, CALL)).words == "Deleted: seed.txt."
    versions = await files.versions("seed.txt")
    assert [(each.number, each.gone, each.origin) for each in versions] == [
        (1, False, PERSON),
        (2, True, CALL),
    ]
    assert await files.read_version("seed.txt", 1) == b"x"
    for change in (
        files.restore("seed.txt", 1, PERSON),
        files.write("seed.txt", b"y", PERSON, replace=True),
        files.delete("seed.txt", PERSON),
    ):
        with pytest.raises(ToolError, match="only plain files"):
            await change
    assert await files.versions("seed.txt") == versions
    (folder / "seed.txt").rename(tmp_path / "away")
    await files.restore("seed.txt", 1, PERSON)
    assert await files.read("seed.txt") == b"x"


async def test_a_folder_that_became_a_link_takes_its_files_with_it(tmp_path: Path) -> None:
    folder, outside = tmp_path / "chat", tmp_path / "outside"
    files = ChatFiles(folder)
    await files.write("sub/a", b"x", PERSON, replace=False)
    (folder / "sub").rename(outside)
    (folder / "sub").symlink_to(outside)
    assert [each.origin for each in await files.versions("sub/a")] == [PERSON, OUTSIDE]
    with pytest.raises(ToolError, match="on the way"):
        await files.restore("sub/a", 1, PERSON)
    await files.purge("sub/a")
    assert await files.histories() == {}
    assert (outside / "a").read_text() == "x"
    with pytest.raises(ToolError, match="on the way"):
        await files.purge("sub/a")


async def test_the_versions_of_a_file_that_is_written_all_the_time_are_those_kept(
    tmp_path: Path,
) -> None:
    files = ChatFiles(tmp_path)
    kept = await files.write("log.txt", b"one\n", PERSON, replace=False)
    noted = await files.note()
    with writing(tmp_path / "log.txt"):
        # Whether it comes to rest for a moment is chance.
        for _ in range(2):
            assert (await files.versions("log.txt"))[0] == kept
        await files.keep_changes(noted, CALL)
    assert (await files.versions("log.txt"))[-1].size == 4_000_000


def test_a_file_that_never_rests_is_read_so_often_and_no_more(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, FileLimits(), time.time)
    tries: list[int] = []

    def changing(room: Room, before: Content | None) -> None:
        tries.append(1)
        raise ChangedMeanwhileError(RETRIED_BYTES // 4)

    with pytest.raises(ToolError, match="being changed by another program") as raised:
        ledger.change("a", changing)
    assert raised.value.code == CHANGING
    assert len(tries) == 5


def test_content_that_comes_in_outlasts_a_change_at_the_same_moment(tmp_path: Path) -> None:
    """The file is put in the place of one that another program changes right before."""
    ticks = iter(range(1, 100))

    def now() -> float:
        tick = next(ticks)
        if tick == 2:
            (tmp_path / "a").write_text("by another program")
        return tick

    store = FileStore(tmp_path, FileLimits(), now)

    def put(data: bytes) -> Version:
        incoming = store.incoming()
        try:
            incoming.add(data)
            return store.put("a", incoming, PERSON, replace=True, seen=None)
        finally:
            incoming.close()

    put(b"one")
    assert put(b"two").number == 3
    assert (tmp_path / "a").read_bytes() == b"two"
    assert [each.deed for each in store.versions("a")] == ["written", "found", "written"]


async def test_times_that_no_calendar_has_stand_in_no_ones_way(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    for name, at in (("early", -(2**62)), ("late", 2**62)):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, ns=(0, at))
    for info in await files.list():
        assert -62135596800 < info.changed_at < 253402300800
        [version] = await files.versions(info.path)
        assert [each.number for each in await ChatFiles(tmp_path).versions(info.path)] == [1]
        assert version.at == info.changed_at
