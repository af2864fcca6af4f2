"""Processes that are killed while they change a chat's files, and several at once."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.file_writer import LIMITS
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.versions import Origin
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

PERSON = Origin("person")


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.file_writer", str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def all_versions(files: ChatFiles) -> list[tuple[str, str]]:
    """The kind of origin and the run of every version; each of them can be read, and is whole."""
    found: list[tuple[str, str]] = []
    for path in (f"d{number}/{letter}.txt" for number in (0, 1) for letter in "ab"):
        versions = await files.versions(path)
        assert [version.number for version in versions] == list(range(1, len(versions) + 1))
        for version in versions:
            found.append((version.origin.kind, version.origin.run_id))
            if not version.gone:
                data = await files.read_version(path, version.number)
                assert hashlib.sha256(data).hexdigest() == version.sha256
    return found


def leftovers(folder: Path) -> list[Path]:
    return [*folder.rglob(".~harness-*"), *(folder / ".harness" / "incoming").iterdir()]


async def killed_again_and_again(folder: Path, times: int, chance: random.Random) -> None:
    for turn in range(times):
        process = writer(folder, f"run{turn}", 10_000)
        with process:
            assert process.stdout is not None
            begins = chance.randrange(2, 15)
            for line in process.stdout:
                word, number = line.split()
                # By then it is somewhere in the middle of its next change.
                if word == "begins" and int(number) == begins:
                    break
            for _ in range(chance.randrange(500_000)):
                pass
            process.kill()
        files = ChatFiles(folder, LIMITS)
        for info in await files.list():
            data = await files.read(info.path)
            # What it wrote is "run3 17 " many times over.
            one = b" ".join(data.split(b" ", 2)[:2]) + b" "
            assert data == one * (len(data) // len(one))
            # Whoever made it is known, also if it was killed before it could say so.
            assert info.last is not None
    origins = await all_versions(ChatFiles(folder, LIMITS))
    assert {kind for kind, _ in origins} == {"call"}
    assert {run for _, run in origins} == {f"run{turn}" for turn in range(times)}
    await ChatFiles(folder, LIMITS).write("after.txt", b"x", PERSON, replace=False)
    assert not leftovers(folder)


async def test_a_process_killed_in_the_middle_of_a_change_loses_nothing(tmp_path: Path) -> None:
    await killed_again_and_again(tmp_path / "chat", 2, random.Random(7))


@pytest.mark.full
async def test_many_processes_killed_in_the_middle_of_a_change_lose_nothing(
    tmp_path: Path,
) -> None:
    await killed_again_and_again(tmp_path / "chat", 60, random.Random())


async def test_two_processes_change_one_folder_and_lose_no_version(tmp_path: Path) -> None:
    folder = tmp_path / "chat"
    writers = [writer(folder, name, 10) for name in ("one", "two")]
    for process in writers:
        process.communicate(timeout=60)
        assert process.returncode == 0
    files = ChatFiles(folder, LIMITS)
    origins = await all_versions(files)
    assert {kind for kind, _ in origins} == {"call"}
    assert {run for _, run in origins} == {"one", "two"}
    assert all(info.last is not None for info in await files.list())
    numbers = [
        (version.origin.run_id, version.origin.call_id)
        for path in ("d0/a.txt", "d1/a.txt", "d0/b.txt", "d1/b.txt")
        for version in await files.versions(path)
    ]
    assert len(numbers) == len(set(numbers)) >= 14


async def crashed(folder: Path, content: bytes | None, *, torn: bool = False) -> ChatFiles:
    """A folder in which "new" was planned in place of "old", by a process that ended then."""
    await ChatFiles(folder).write("a.txt", b"old", PERSON, replace=False)
    new = await ChatFiles(folder).write(
        "a.txt", b"new", Origin("call", "r", "c", "k", "allow"), replace=True
    )
    log = folder / ".harness" / "versions.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    assert json.loads(lines[-1])["done"] == new.number
    log.write_text("".join(lines[:-1]) if not torn else "".join(lines[:-2]) + lines[-2][:50])
    if content is None:
        (folder / "a.txt").unlink()
    else:
        (folder / "a.txt").write_bytes(content)
    return ChatFiles(folder)


async def deeds(files: ChatFiles) -> list[tuple[str, str]]:
    return [(each.deed, each.origin.kind) for each in await files.versions("a.txt")]


async def test_a_change_that_had_happened_is_known_as_what_it_was(tmp_path: Path) -> None:
    files = await crashed(tmp_path, b"new")
    (info,) = await files.list()
    assert info.last is not None
    assert info.last.origin.approval == "k"
    assert await deeds(files) == [("written", "person"), ("written", "call")]


async def test_a_change_that_had_not_happened_yet_is_none(tmp_path: Path) -> None:
    files = await crashed(tmp_path, b"old")
    assert await deeds(files) == [("written", "person")]
    version = await files.write("a.txt", b"new", PERSON, replace=True)
    assert version.number == 2
    assert await deeds(ChatFiles(tmp_path)) == [("written", "person"), ("written", "person")]


@pytest.mark.parametrize("content", [b"by hand", None])
async def test_a_change_that_somebody_overwrote_before_it_was_told_of_is_kept_too(
    tmp_path: Path, content: bytes | None
) -> None:
    files = await crashed(tmp_path, content)
    assert await deeds(files) == [("written", "person"), ("written", "call"), ("found", "outside")]
    assert await files.read_version("a.txt", 2) == b"new"


async def test_a_line_that_was_cut_short_is_taken_off(tmp_path: Path) -> None:
    files = await crashed(tmp_path, b"old", torn=True)
    assert await deeds(files) == [("written", "person")]
    await files.write("a.txt", b"newer", PERSON, replace=True)
    log = (tmp_path / ".harness" / "versions.jsonl").read_text()
    parsed: list[JsonObject] = [json.loads(line) for line in log.splitlines()]
    assert parsed[-1] | {"stamp": None} == {"done": 2, "path": "a.txt", "stamp": None}


async def test_what_a_crash_left_is_cleared_away_by_the_next_change(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    await files.write("a/b.txt", b"x", PERSON, replace=False)
    reserved = tmp_path / ".harness"
    orphans = [
        tmp_path / ".~harness-1",
        tmp_path / "a" / ".~harness-2",
        reserved / ".~harness-3",
        reserved / "incoming" / ".~harness-4",
        reserved / "objects" / ("0" * 64),
    ]
    for orphan in orphans:
        orphan.write_text("part")
    upload = ChatFiles(tmp_path)

    async def slowly() -> object:
        yield b"one "
        # Meanwhile another process starts and clears away what it finds.
        await ChatFiles(tmp_path).write("c.txt", b"x", PERSON, replace=False)
        assert not any(orphan.exists() for orphan in orphans)
        yield b"two"

    await upload.write_stream("up.txt", slowly(), PERSON, replace=False)  # type: ignore[arg-type]
    assert await files.read("up.txt") == b"one two"
