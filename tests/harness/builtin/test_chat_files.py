"""The files of a chat with their versions, as tools, pages and uploads use them."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.file_store import FileStore
from web.harness.builtin.versions import Origin, Version
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound, ToolError

pytestmark = pytest.mark.anyio

CALL = Origin("call", "run-1", "call-1", "call-1-key", "allow")
PERSON = Origin("person")
BACK = Origin("restore")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chat"


@pytest.fixture
def files(folder: Path) -> ChatFiles:
    return ChatFiles(folder, now=itertools.count(1000.0).__next__)


def told(versions: tuple[Version, ...]) -> list[tuple[int, str, str, int]]:
    return [(each.number, each.deed, each.origin.kind, each.size) for each in versions]


def objects(folder: Path) -> set[str]:
    return {path.name for path in (folder / ".harness" / "objects").iterdir()}


async def test_looking_at_a_folder_that_is_not_there_makes_nothing(
    files: ChatFiles, folder: Path
) -> None:
    assert await files.list() == ()
    assert await files.versions("a.txt") == ()
    for attempt in (
        files.read("a.txt"),
        files.read_version("a.txt", 1),
        files.open_record("transcript.md").__aenter__(),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert not folder.exists()


async def test_a_file_is_known_with_all_that_is_known_of_it(files: ChatFiles, folder: Path) -> None:
    written = await files.write("notes/a.md", b"# one\n", CALL, replace=False)
    (found,) = await files.list()
    digest = hashlib.sha256(b"# one\n").hexdigest()
    assert (found.path, found.size, found.sha256) == ("notes/a.md", 6, digest)
    assert (found.media_type, found.versions, found.last) == ("text/plain", 1, written)
    assert found.changed_at == (folder / "notes/a.md").stat().st_mtime
    assert written == Version(1, digest, 6, 1000.0, "text/plain", "written", CALL)
    assert await files.read("notes/a.md") == b"# one\n"


async def test_every_change_makes_a_version_that_can_be_read_and_brought_back(
    files: ChatFiles,
) -> None:
    await files.write("a.txt", b"one", CALL, replace=False)
    await files.write("a.txt", b"second", PERSON, replace=True)
    await files.edit("a.txt", "second", "2nd", Origin("call", "r", "c"))
    await files.delete("a.txt", PERSON)
    back = await files.restore("a.txt", 2, BACK)
    assert told(await files.versions("a.txt")) == [
        (1, "written", "call", 3),
        (2, "written", "person", 6),
        (3, "edited", "call", 3),
        (4, "deleted", "person", 0),
        (5, "restored", "restore", 6),
    ]
    assert back.restored == 2
    assert [await files.read_version("a.txt", n) for n in (1, 2, 3, 5)] == [
        *(b"one", b"second", b"2nd", b"second")
    ]
    assert await files.read("a.txt") == b"second"
    for number, error in ((4, NotFound), (6, NotFound), (0, NotFound)):
        with pytest.raises(error):
            await files.read_version("a.txt", number)
    for number, words in ((4, "its deletion"), (2, "is just as version 2 was")):
        with pytest.raises(ToolError, match=words):
            await files.restore("a.txt", number, BACK)


async def test_another_object_for_the_same_folder_knows_the_same(
    files: ChatFiles, folder: Path
) -> None:
    other = ChatFiles(folder)
    for number in range(4):
        await (files, other)[number % 2].write("a.txt", b"%d" % number, PERSON, replace=True)
    assert await files.versions("a.txt") == await other.versions("a.txt")
    assert await files.list() == await other.list() == await ChatFiles(folder).list()
    assert len(await other.versions("a.txt")) == 4


async def test_the_same_content_again_is_no_new_version(files: ChatFiles) -> None:
    first = await files.write("a.txt", b"same", CALL, replace=False)
    assert await files.write("a.txt", b"same", PERSON, replace=False) == first
    assert len(await files.versions("a.txt")) == 1


async def test_replacing_takes_intent(files: ChatFiles) -> None:
    await files.write("a.txt", b"one", CALL, replace=False)
    with pytest.raises(ToolError) as caught:
        await files.write("a.txt", b"two", PERSON, replace=False)
    assert caught.value.code == "file_exists"
    assert await files.read("a.txt") == b"one"


async def test_a_file_changed_by_hand_is_noticed_and_kept(files: ChatFiles, folder: Path) -> None:
    await files.write("a.txt", b"mine", CALL, replace=False)
    (folder / "a.txt").write_bytes(b"by hand")
    (folder / "new.txt").write_bytes(b"also by hand")
    (changed, new) = await files.list()
    assert (changed.last, changed.versions, changed.size) == (None, 1, 7)
    assert (new.last, new.versions) == (None, 0)
    await files.write("a.txt", b"mine again", PERSON, replace=True)
    assert told(await files.versions("a.txt")) == [
        (1, "written", "call", 4),
        (2, "found", "outside", 7),
        (3, "written", "person", 10),
    ]
    assert await files.read_version("a.txt", 2) == b"by hand"
    # Looking at the versions is enough.
    assert told(await files.versions("new.txt")) == [(1, "found", "outside", 12)]
    (new,) = [info for info in await files.list() if info.path == "new.txt"]
    assert new.last is not None


async def test_a_change_that_leaves_size_and_time_as_they_were_is_kept_all_the_same(
    files: ChatFiles, folder: Path
) -> None:
    await files.write("a.txt", b"mine", CALL, replace=False)
    status = (folder / "a.txt").stat()
    (folder / "a.txt").write_bytes(b"hand")
    os.utime(folder / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    await files.delete("a.txt", PERSON)
    assert await files.read_version("a.txt", 2) == b"hand"


def test_a_save_between_the_look_at_a_file_and_its_replacement_is_kept(folder: Path) -> None:
    store = FileStore(folder, FileLimits(), itertools.count(1.0).__next__)
    (folder / "a.txt").parent.mkdir()
    (folder / "a.txt").write_bytes(b"start")
    seen: list[bytes] = []

    def edited(data: bytes) -> bytes:
        seen.append(data)
        if len(seen) < 3:
            (folder / "a.txt").write_bytes(b"by hand %d" % len(seen))
        return data + b", edited"

    store.edit("a.txt", edited, CALL, max_bytes=100, seen=None)
    assert seen == [b"start", b"by hand 1", b"by hand 2"]
    assert (folder / "a.txt").read_bytes() == b"by hand 2, edited"
    assert told(store.versions("a.txt")) == [
        (1, "found", "outside", 5),
        (2, "found", "outside", 9),
        (3, "found", "outside", 9),
        (4, "edited", "call", 17),
    ]


async def test_a_file_deleted_by_hand_is_noticed_and_can_be_brought_back(
    files: ChatFiles, folder: Path
) -> None:
    await files.write("a.txt", b"mine", CALL, replace=False)
    (folder / "a.txt").unlink()
    assert await files.list() == ()
    assert told(await files.versions("a.txt"))[1:] == [(2, "found", "outside", 0)]
    await files.restore("a.txt", 1, BACK)
    assert await files.read("a.txt") == b"mine"


async def test_a_file_from_outside_that_is_too_large_to_keep_is_left_alone(
    folder: Path,
) -> None:
    files = ChatFiles(folder, FileLimits(max_file_bytes=10))
    folder.mkdir()
    (folder / "big").write_bytes(b"x" * 11)
    for attempt in (
        files.write("big", b"y", PERSON, replace=True),
        files.delete("big", PERSON),
        files.read("big"),
    ):
        with pytest.raises(LimitExceeded, match=" 10"):
            await attempt
    assert await files.versions("big") == ()
    async with files.open("big") as opened:
        assert (opened.size, await opened.read(9, 100)) == (11, b"xx")
    assert (folder / "big").read_bytes() == b"x" * 11


async def test_limits_are_told_with_their_numbers_and_nothing_is_written(folder: Path) -> None:
    limits = FileLimits(max_file_bytes=10, max_chat_bytes=15, max_files=2)
    files = ChatFiles(folder, limits)
    await files.write("a", b"x" * 10, PERSON, replace=False)
    for path, size, words in (
        ("a", 11, "10 bytes, the limit"),
        ("b", 11, "10 bytes, the limit"),
        ("b", 6, "16 bytes; the limit is 15"),
    ):
        with pytest.raises(LimitExceeded, match=words):
            await files.write(path, b"y" * size, PERSON, replace=True)
    await files.write("b", b"y" * 5, PERSON, replace=False)
    with pytest.raises(LimitExceeded, match="holds 2 files"):
        await files.write("c", b"", PERSON, replace=False)
    with pytest.raises(LimitExceeded, match="16 bytes; the limit is 15"):
        await files.edit("b", "yyyyy", "yyyyyy", CALL)
    assert [(info.path, info.size) for info in await files.list()] == [("a", 10), ("b", 5)]
    await files.delete("a", PERSON)
    await files.write("c", b"z" * 10, PERSON, replace=False)
    with pytest.raises(LimitExceeded, match="holds 2 files"):
        await files.restore("a", 1, BACK)


async def test_files_that_were_put_there_by_hand_count(folder: Path) -> None:
    files = ChatFiles(folder, FileLimits(max_files=3, max_chat_bytes=100))
    folder.mkdir()
    for name in "abcde":
        (folder / name).write_bytes(b"x" * 30)
    assert (await files.survey()).more
    with pytest.raises(LimitExceeded, match="holds 3 files"):
        await files.write("f", b"x", PERSON, replace=False)


async def test_many_writers_cannot_pass_the_limit_together(folder: Path) -> None:
    limits = FileLimits(max_files=5)
    many = [ChatFiles(folder, limits) for _ in range(4)]
    results = await asyncio.gather(
        *(many[n % 4].write(f"f{n}", b"x", PERSON, replace=False) for n in range(12)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, Version) for result in results) == 5
    assert {type(result) for result in results} == {Version, LimitExceeded}


async def test_the_oldest_versions_of_a_file_are_dropped_with_their_content(folder: Path) -> None:
    files = ChatFiles(folder, FileLimits(kept_versions=3))
    await files.write("b", b"state 1", PERSON, replace=False)
    await files.write("b", b"state 2", PERSON, replace=True)
    for number in range(1, 7):
        await files.write("a", b"state %d" % number, PERSON, replace=True)
    assert [version.number for version in await files.versions("a")] == [4, 5, 6]
    assert await files.read_version("b", 1) == b"state 1"
    with pytest.raises(NotFound, match="no version 3"):
        await files.read_version("a", 3)
    kept = {hashlib.sha256(b"state %d" % n).hexdigest() for n in (1, 2, 4, 5, 6)}
    assert objects(folder) == kept
    # A larger bound does not bring back what is gone.
    again = ChatFiles(folder)
    assert [version.number for version in await again.versions("a")] == [4, 5, 6]
    assert [await again.read_version("a", n) for n in (4, 5, 6)]


async def test_all_old_versions_together_are_bounded_in_size_and_number(folder: Path) -> None:
    now = itertools.count(1.0).__next__
    files = ChatFiles(folder, FileLimits(kept_bytes=25, max_versions=6), now)
    for name in "abc":
        for size in (10, 9):
            await files.write(name, name.encode() * size, PERSON, replace=True)
    assert [len(await files.versions(name)) for name in "abc"] == [1, 2, 2]
    await files.delete("a", PERSON)
    for number in range(4):
        await files.write("d", b"%d" % number, PERSON, replace=True)
    kept = [len(await files.versions(name)) for name in "abcd"]
    assert sum(kept) <= 6
    assert kept[3] >= 3
    for name in "bcd":
        for version in await files.versions(name):
            assert len(await files.read_version(name, version.number)) == version.size


async def test_the_log_does_not_grow_with_what_nobody_keeps(folder: Path) -> None:
    files = ChatFiles(folder, FileLimits(kept_versions=2))
    log = folder / ".harness" / "versions.jsonl"
    await files.write("a", b"x", PERSON, replace=False)
    early, late = ChatFiles(folder), ChatFiles(folder)
    await early.list()
    size = log.stat().st_size
    spare = '{"drop": 0, "path": "a"}\n' * 3000
    with log.open("a") as file:
        file.write(spare)
    await late.list()
    for number in range(3):
        await files.write("a", b"%d" % number, PERSON, replace=True)
    assert len(log.read_text().splitlines()) < 20
    expected = await files.versions("a")
    assert [version.number for version in expected] == [3, 4]
    # Those who have read less than the new log holds find out too that it is another one.
    assert log.stat().st_size > size
    for other in (early, late, ChatFiles(folder)):
        assert await other.versions("a") == expected


async def test_large_content_comes_and_goes_piece_by_piece(files: ChatFiles, folder: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(40):
            yield bytes([number]) * 50_000

    version = await files.write_stream("big.bin", chunks(), PERSON, replace=False)
    assert version.size == 2_000_000
    async with files.open("big.bin") as opened:
        assert (opened.size, opened.sha256) == (version.size, version.sha256)
        assert opened.media_type == "application/octet-stream"
        await files.write("big.bin", b"small", PERSON, replace=True)
        assert await opened.read(1_950_000, 60_000) == bytes([39]) * 50_000
    async with files.open_version("big.bin", 1) as opened:
        assert await opened.read(50_000, 3) == b"\x01\x01\x01"
    assert not list((folder / ".harness" / "incoming").iterdir())


async def test_a_stream_that_breaks_or_is_too_long_leaves_nothing(folder: Path) -> None:
    files = ChatFiles(folder, FileLimits(max_file_bytes=100))

    async def breaks() -> AsyncIterator[bytes]:
        yield b"x" * 50
        raise ConnectionError("gone")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 50

    with pytest.raises(ConnectionError):
        await files.write_stream("a", breaks(), PERSON, replace=False)
    with pytest.raises(LimitExceeded, match="100 bytes"):
        await files.write_stream("a", endless(), PERSON, replace=False)
    with pytest.raises(ToolError, match="is refused"):
        await files.write_stream("../a", endless(), PERSON, replace=False)
    assert await files.list() == ()
    assert not list((folder / ".harness" / "incoming").iterdir())


async def test_watchers_are_told_of_changes_and_of_nothing_else(files: ChatFiles) -> None:
    changes: list[str] = []
    stop = files.watch(lambda: changes.append("change"))
    await files.write("a", b"x", PERSON, replace=False)
    await files.edit("a", "x", "y", CALL)
    await files.restore("a", 1, BACK)
    await files.delete("a", PERSON)
    assert len(changes) == 4
    await files.list()
    with pytest.raises(HarnessError):
        await files.read("a")
    with pytest.raises(HarnessError):
        await files.delete("a", PERSON)
    stop()
    stop()
    await files.write("a", b"x", PERSON, replace=False)
    assert len(changes) == 4


async def test_a_change_whose_caller_is_cancelled_is_finished_and_told(files: ChatFiles) -> None:
    changes: list[str] = []
    files.watch(lambda: changes.append("change"))
    task = asyncio.create_task(files.write("a", b"x", PERSON, replace=False))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert changes == ["change"]
    assert await files.read("a") == b"x"


async def test_what_a_later_program_wrote_into_the_log_stays(
    files: ChatFiles, folder: Path
) -> None:
    await files.write("a", b"x", PERSON, replace=False)
    log = folder / ".harness" / "versions.jsonl"
    future = json.dumps({"rename": "a", "to": "b", "path": "a"})
    lines = log.read_text().splitlines()
    plan = json.loads(lines[1])
    plan["plan"] |= {"number": 2, "mood": "good"}
    plan["plan"]["origin"]["device"] = "phone"
    with log.open("a") as file:
        file.write(f"{future}\nno json\n[]\n" + '{"drop": 0, "path": "a"}\n' * 3000)
        file.write(json.dumps(plan) + '\n{"done": 2, "path": "a", "stamp": null}\n')
    again = ChatFiles(folder, FileLimits(kept_versions=2))
    assert [version.number for version in await again.versions("a")] == [1, 2]
    for number in range(3):
        await again.write("a", b"%d" % number, PERSON, replace=True)
    assert future in log.read_text()
