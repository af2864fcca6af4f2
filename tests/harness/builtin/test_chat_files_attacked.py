"""A chat's files, attacked from inside the folder and from beside it."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.versions import Origin
from web.harness.values.errors import HarnessError, ToolError

pytestmark = pytest.mark.anyio

PERSON = Origin("person")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chat"


@pytest.fixture
def files(folder: Path) -> ChatFiles:
    return ChatFiles(folder)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder beside that holds a secret. Whatever a test does, it is as it was at the end."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["secret.txt"]
    assert (folder / "secret.txt").read_text() == "secret"


async def attempts(files: ChatFiles, path: str) -> list[object]:
    """What comes of everything that can be done to a path."""
    actions: list[Callable[[], object]] = [
        lambda: files.read(path),
        lambda: files.write(path, b"evil", PERSON, replace=True),
        lambda: files.edit(path, "secret", "evil", PERSON),
        lambda: files.delete(path, PERSON),
        lambda: files.versions(path),
        lambda: files.restore(path, 1, PERSON),
        lambda: files.read_version(path, 1),
        lambda: files.open(path).__aenter__(),
    ]
    results: list[object] = []
    for action in actions:
        try:
            results.append(await action())  # type: ignore[misc]
        except HarnessError as error:
            results.append(error)
    return results


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "..\\outside\\secret.txt",
        "\uff0e\uff0e/outside/secret.txt",
        "C:secret.txt",
        "NUL",
        "a\nb",
        "a\u202etxt.exe",
        "a\0b",
        "a\udcff",
        ".harness",
        ".harness/versions.jsonl",
        ".HARNESS/lock",
        ".Harneß/objects",
        ".har\u200dness/lock",
        "HARNES~1/lock",
        "deep/.harness/x",
        "x" * 300,
        "/".join("d" * 40),
    ],
)
async def test_a_path_that_could_mean_something_else_does_nothing(
    files: ChatFiles, folder: Path, outside: Path, path: str
) -> None:
    for result in await attempts(files, path):
        assert isinstance(result, ToolError), result
        result.message.encode()
    assert not folder.exists()


@pytest.mark.parametrize(
    "name",
    ["with space", "#1 100%.txt", 'it\'s "so".md', "übung.md", "日本語.txt", "a&b=c;d.txt", "-rf"],
)
async def test_an_odd_name_is_a_name(files: ChatFiles, folder: Path, name: str) -> None:
    await files.write(f"odd/{name}", b"x", PERSON, replace=False)
    (found,) = await files.list()
    assert (found.path, await files.read(found.path)) == (f"odd/{name}", b"x")
    assert [path.name for path in (folder / "odd").iterdir()] == [name]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.txt", "A.TXT"),
        ("Notes/a", "notes/b"),
        ("straße", "STRASSE"),
        ("क्ष.txt", "क्\u200dष.txt"),
    ],
)
async def test_two_names_that_some_disk_takes_for_one_cannot_both_be(
    files: ChatFiles, first: str, second: str
) -> None:
    await files.write(first, b"mine", PERSON, replace=False)
    with pytest.raises(ToolError, match="only in case"):
        await files.write(second, b"evil", PERSON, replace=True)
    assert [info.path for info in await files.list()] == [first]
    composed, apart = "é.txt", "e\u0301.txt"
    await files.write(composed, b"x", PERSON, replace=False)
    assert await files.read(apart) == b"x"


async def test_names_from_outside_that_no_path_can_say_are_counted_and_left_alone(
    files: ChatFiles, folder: Path
) -> None:
    await files.write("good.txt", b"x", PERSON, replace=False)
    names = [
        b"new\nline",
        b"back\\slash",
        b"not-\xff-utf8",
        b"CON",
        "a\u202eb".encode(),
        b".HARNESS",
    ]
    for name in names:
        Path(os.fsdecode(bytes(folder) + b"/" + name)).write_text("x")
    survey = await files.survey()
    assert [info.path for info in survey.files] == ["good.txt"]
    assert survey.left_out == len(names)


@pytest.mark.parametrize("spoiled", [".harness", ".harness/objects", ".harness/incoming"])
async def test_a_reserved_folder_that_is_a_link_is_not_entered(
    files: ChatFiles, folder: Path, outside: Path, spoiled: str
) -> None:
    await files.write("a.txt", b"mine", PERSON, replace=False)
    shutil.rmtree(folder / spoiled)
    (folder / spoiled).symlink_to(outside)
    with pytest.raises(ToolError):
        await ChatFiles(folder).write("a.txt", b"new", PERSON, replace=True)
    assert (folder / "a.txt").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["versions.jsonl", "lock"])
@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
async def test_what_is_written_down_goes_nowhere_else(
    files: ChatFiles, folder: Path, outside: Path, name: str, kind: str
) -> None:
    await files.write("a.txt", b"mine", PERSON, replace=False)
    spoiled = folder / ".harness" / name
    spoiled.unlink()
    match kind:
        case "link":
            spoiled.symlink_to(outside / "secret.txt")
        case "hard link":
            os.link(outside / "secret.txt", spoiled)
        case "pipe":
            os.mkfifo(spoiled)
        case _:
            spoiled.mkdir()
    async with asyncio.timeout(10):
        with contextlib.suppress(ToolError):
            await ChatFiles(folder).write("a.txt", b"new", PERSON, replace=True)
        with contextlib.suppress(ToolError):
            await ChatFiles(folder).list()


async def test_kept_content_that_was_changed_is_not_brought_back(
    files: ChatFiles, folder: Path
) -> None:
    first = await files.write("a.txt", b"true", PERSON, replace=False)
    await files.write("a.txt", b"now", PERSON, replace=True)
    (folder / ".harness" / "objects" / first.sha256).write_bytes(b"lies")
    with pytest.raises(ToolError, match="was changed"):
        await files.restore("a.txt", 1, PERSON)
    with pytest.raises(ToolError, match="was changed"):
        await files.read_version("a.txt", 1)
    assert await files.read("a.txt") == b"now"
    assert len(await files.versions("a.txt")) == 2


async def test_nothing_leads_out_while_folders_are_swapped_for_links(
    files: ChatFiles, folder: Path, outside: Path
) -> None:
    await files.write("d/secret.txt", b"mine", PERSON, replace=False)
    done = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        targets = (folder / "d", folder / ".harness" / "objects")
        while not done.is_set():
            for target in targets:
                aside = target.with_name("aside")
                shutil.rmtree(aside, ignore_errors=True)
                with contextlib.suppress(OSError):
                    target.rename(aside)
                    target.symlink_to(outside)
                    swaps += 1
                    target.unlink()
                    aside.rename(target)
            time.sleep(0)

    attacker = threading.Thread(target=swap)
    attacker.start()
    written = 0
    try:
        async with asyncio.timeout(60):
            for number in range(400):
                if number >= 15 and written and swaps >= 20:
                    break
                with contextlib.suppress(HarnessError):
                    data = b"mine%d" % number
                    await files.write("d/secret.txt", data, PERSON, replace=True)
                    written += 1
                with contextlib.suppress(HarnessError):
                    assert (await files.read("d/secret.txt")).startswith(b"mine")
                with contextlib.suppress(HarnessError):
                    await files.delete("d/secret.txt", PERSON)
    finally:
        done.set()
        attacker.join(10)
    assert written
    assert swaps


async def test_a_file_that_an_editor_keeps_saving_is_never_lost(
    files: ChatFiles, folder: Path
) -> None:
    """Each state that the editor saved is the file, or a version, unless the editor replaced it."""
    await files.write("a.txt", b"start", PERSON, replace=False)
    saved: list[bytes] = []

    def save(number: int) -> None:
        data = b"by hand %d" % number
        (folder / "new").write_bytes(data)
        (folder / "new").replace(folder / "a.txt")
        saved.append(data)

    for number in range(8):
        save(number)
        await files.write("a.txt", b"mine %d" % number, PERSON, replace=True)
    versions = [
        await files.read_version("a.txt", version.number)
        for version in await files.versions("a.txt")
    ]
    assert set(saved) <= set(versions)


async def test_a_thousand_files_are_listed_and_no_more_is_made(folder: Path) -> None:
    folder.mkdir()
    for number in range(1000):
        (folder / f"{number:04}").write_bytes(b"%d" % number)
    files = ChatFiles(folder, FileLimits())
    began = time.perf_counter()
    survey = await files.survey()
    assert time.perf_counter() - began < 10
    assert (len(survey.files), survey.more) == (1000, False)
    assert survey.files[7].sha256
    with pytest.raises(HarnessError, match="1,000 files"):
        await files.write("one more", b"x", PERSON, replace=False)
    await files.write("0007", b"new", PERSON, replace=True)


async def test_no_descriptor_stays_open(files: ChatFiles, folder: Path) -> None:
    async def everything() -> None:
        await files.write("a/b.txt", os.urandom(8), PERSON, replace=True)
        await files.list()
        await files.versions("a/b.txt")
        await files.read_version("a/b.txt", 1)
        for path in ("none", "../x", "a", ".harness/lock"):
            await attempts(files, path)
        async with files.open("a/b.txt") as opened:
            await opened.read(0, 10)

    await everything()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await everything()
    assert len(os.listdir("/proc/self/fd")) <= before
