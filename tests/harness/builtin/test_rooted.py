"""One folder, attacked from inside and from beside."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from web.harness.builtin.paths import TEMPORARY_PREFIX
from web.harness.builtin.rooted import FolderLimits, RootedFolder
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound, ToolError


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the root that holds a secret; nothing may reach it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def rooted(tmp_path: Path) -> RootedFolder:
    return RootedFolder(tmp_path / "root")


def paths(rooted: RootedFolder) -> list[str]:
    return [entry.path for entry in rooted.walk().files]


def test_the_folder_is_made_by_the_first_write_only(rooted: RootedFolder) -> None:
    assert rooted.walk().files == []
    with pytest.raises(NotFound):
        rooted.read("a.txt")
    assert rooted.status("a.txt") is None
    assert not rooted.root.exists()
    rooted.write_atomic("a.txt", b"x")
    assert rooted.root.is_dir()


def test_a_file_is_made_read_replaced_and_listed(rooted: RootedFolder) -> None:
    assert rooted.write_atomic("notes/deep/a.txt", b"one") is True
    assert rooted.write_atomic("notes/deep/a.txt", b"three") is False
    rooted.write_atomic("b.bin", bytes(range(256)))
    assert rooted.read("notes/deep/a.txt") == b"three"
    assert rooted.read("b.bin") == bytes(range(256))
    assert [(entry.path, entry.size) for entry in rooted.walk().files] == [
        ("b.bin", 256),
        ("notes/deep/a.txt", 5),
    ]
    assert rooted.walk().left_out == 0


def test_files_are_readable_by_all_whatever_the_umask(rooted: RootedFolder) -> None:
    before = os.umask(0o077)
    try:
        rooted.write_atomic("a.txt", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((rooted.root / "a.txt").stat().st_mode) == 0o644


def test_no_temporary_file_stays(rooted: RootedFolder) -> None:
    rooted.write_atomic("a/b.txt", b"x")
    (rooted.root / "taken").mkdir()
    with pytest.raises(ToolError, match="is a folder"):
        rooted.write_atomic("taken", b"x")
    (rooted.root / "a" / (TEMPORARY_PREFIX + "left-by-a-crash")).write_text("part")
    assert paths(rooted) == ["a/b.txt"]
    assert sorted(path.name for path in rooted.root.iterdir()) == ["a", "taken"]


@pytest.mark.parametrize("path", ["../outside/secret.txt", "/etc/passwd", "a/../../x", "", "a\0"])
def test_a_refused_path_touches_nothing(rooted: RootedFolder, outside: Path, path: str) -> None:
    actions: list[Callable[[], object]] = [
        lambda: rooted.read(path),
        lambda: rooted.status(path),
        lambda: rooted.write_atomic(path, b"x"),
    ]
    for action in actions:
        with pytest.raises(ToolError, match="is refused"):
            action()
    assert not rooted.root.exists()
    assert (outside / "secret.txt").read_text() == "secret"


def put_link(root: Path, outside: Path) -> None:
    (root / "bad").symlink_to(outside / "secret.txt")


def put_dangling_link(root: Path, outside: Path) -> None:
    (root / "bad").symlink_to(outside / "new.txt")


def put_link_inside(root: Path, outside: Path) -> None:
    (root / "bad").symlink_to("good.txt")


def put_hard_link(root: Path, outside: Path) -> None:
    os.link(outside / "secret.txt", root / "bad")


def put_pipe(root: Path, outside: Path) -> None:
    os.mkfifo(root / "bad")


def put_socket(root: Path, outside: Path) -> None:
    # Bound by a relative name, since the whole one may be longer than a socket's may be.
    before = os.open(".", os.O_RDONLY)
    os.chdir(root)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("bad")
    finally:
        os.fchdir(before)
        os.close(before)


def put_device(root: Path, outside: Path) -> None:
    try:
        os.mknod(root / "bad", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        # Only root makes devices; a pipe is refused for the same reason.
        os.mkfifo(root / "bad")


def put_folder(root: Path, outside: Path) -> None:
    (root / "bad").mkdir()


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (put_link, "is a link"),
        (put_dangling_link, "is a link"),
        (put_link_inside, "is a link"),
        (put_hard_link, "hard link"),
        (put_pipe, "device, pipe or socket"),
        (put_socket, "device, pipe or socket"),
        (put_device, "device, pipe or socket"),
        (put_folder, "is a folder"),
    ],
)
def test_what_is_no_plain_file_is_not_read_written_or_listed(
    rooted: RootedFolder, outside: Path, put: Callable[[Path, Path], None], words: str
) -> None:
    rooted.write_atomic("good.txt", b"good")
    put(rooted.root, outside)
    kind = stat.S_IFMT((rooted.root / "bad").lstat().st_mode)
    for action in (lambda: rooted.read("bad"), lambda: rooted.write_atomic("bad", b"evil")):
        with pytest.raises(ToolError, match=words):
            action()
    assert paths(rooted) == ["good.txt"]
    assert rooted.read("good.txt") == b"good"
    assert stat.S_IFMT((rooted.root / "bad").lstat().st_mode) == kind
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "secret"


def test_a_folder_that_is_a_link_is_not_entered(rooted: RootedFolder, outside: Path) -> None:
    rooted.write_atomic("good.txt", b"x")
    (rooted.root / "bad").symlink_to(outside)
    (rooted.root / "back").symlink_to("..")
    for path in ("bad/secret.txt", "back/outside/secret.txt", "good.txt/x"):
        with pytest.raises(ToolError, match="is a link or a file"):
            rooted.read(path)
        with pytest.raises(ToolError, match="is a link or a file"):
            rooted.write_atomic(path, b"evil")
    assert paths(rooted) == ["good.txt"]
    assert rooted.walk().left_out == 2
    assert (outside / "secret.txt").read_text() == "secret"


def test_a_root_that_is_a_link_is_not_entered(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "root").symlink_to(outside)
    rooted = RootedFolder(tmp_path / "root")
    with pytest.raises(ToolError):
        rooted.read("secret.txt")
    with pytest.raises(ToolError):
        rooted.write_atomic("new.txt", b"x")
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


def test_a_folder_swapped_for_a_link_during_many_writes_leads_nowhere(
    rooted: RootedFolder, outside: Path
) -> None:
    inner, aside = rooted.root / "d" / "e", rooted.root / "aside"
    done = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not done.is_set():
            # Any step may come too late or too early; the writer makes the folder again.
            with contextlib.suppress(OSError):
                inner.rename(aside)
            with contextlib.suppress(OSError):
                inner.symlink_to(outside)
                swaps += 1
            shutil.rmtree(aside, ignore_errors=True)
            with contextlib.suppress(OSError):
                inner.unlink()

    written = 0
    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        for turn in range(5000):
            if turn >= 500 and written and swaps >= 50:
                break
            with contextlib.suppress(HarnessError, OSError):
                rooted.write_atomic("d/e/f.txt", b"mine")
                written += 1
            with contextlib.suppress(HarnessError, OSError):
                rooted.write_atomic("d/e/secret.txt", b"mine")
            with contextlib.suppress(HarnessError, OSError):
                assert rooted.read("d/e/secret.txt") == b"mine"
            listed = [entry.size for entry in rooted.walk().files]
            assert set(listed) <= {len(b"mine")}
    finally:
        done.set()
        attacker.join(10)
    assert swaps
    assert written
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "secret"


@pytest.mark.parametrize("put", [put_link, put_hard_link, put_pipe])
def test_a_file_swapped_during_many_reads_and_writes_is_never_followed(
    rooted: RootedFolder, outside: Path, put: Callable[[Path, Path], None]
) -> None:
    rooted.write_atomic("f.txt", b"mine")
    target, good, bad = (rooted.root / name for name in ("f.txt", "good", "bad"))
    done = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not done.is_set():
            put(rooted.root, outside)
            bad.replace(target)
            good.write_bytes(b"mine")
            good.replace(target)
            swaps += 1

    read = 0
    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        for turn in range(20_000):
            if turn >= 1500 and read and swaps >= 250:
                break
            with contextlib.suppress(HarnessError):
                assert rooted.read("f.txt") == b"mine"
                read += 1
            if turn % 50 == 0:
                with contextlib.suppress(HarnessError):
                    rooted.write_atomic("f.txt", b"mine")
    finally:
        done.set()
        attacker.join(10)
    assert read
    assert swaps
    assert (outside / "secret.txt").read_text() == "secret"


def test_a_write_that_the_disk_refuses_leaves_the_old_file_and_no_part(
    rooted: RootedFolder,
) -> None:
    rooted.write_atomic("f.txt", b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            rooted.write_atomic("f.txt", b"new" * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert rooted.read("f.txt") == b"old"
    assert [path.name for path in rooted.root.iterdir()] == ["f.txt"]


def test_readers_never_see_a_part_of_a_write(rooted: RootedFolder) -> None:
    contents = {letter * 300_000 for letter in (b"a", b"b")}
    rooted.write_atomic("f.txt", min(contents))
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for content in contents:
                rooted.write_atomic("f.txt", content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert rooted.read("f.txt") in contents
    finally:
        done.set()
        writer.join(10)


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path) -> None:
    rooted = RootedFolder(tmp_path / "root", FolderLimits(max_file_bytes=10))
    rooted.write_atomic("a.txt", b"x" * 10)
    with pytest.raises(LimitExceeded, match="limit of 10 bytes"):
        rooted.write_atomic("a.txt", b"x" * 11)
    assert rooted.read("a.txt") == b"x" * 10
    (rooted.root / "a.txt").write_bytes(b"x" * 11)
    with pytest.raises(LimitExceeded, match="limit of 10 bytes"):
        rooted.read("a.txt")


def test_there_may_be_as_many_files_as_the_limit_and_no_more(tmp_path: Path) -> None:
    rooted = RootedFolder(tmp_path / "root", FolderLimits(max_files=3))
    for name in ("a", "b/c", "b/d"):
        rooted.write_atomic(name, b"x")
    with pytest.raises(LimitExceeded, match="3 files"):
        rooted.write_atomic("new/e", b"x")
    assert not (rooted.root / "new").exists()
    rooted.write_atomic("a", b"replaced")
    assert rooted.read("a") == b"replaced"
    (rooted.root / "put there by hand").write_bytes(b"x")
    assert rooted.walk().more
    assert len(rooted.walk().files) == 3


def test_two_writers_cannot_pass_the_limit_together(tmp_path: Path) -> None:
    rooted = RootedFolder(tmp_path / "root", FolderLimits(max_files=5))
    start = threading.Barrier(8)

    def write(name: str) -> None:
        start.wait(10)
        for index in range(5):
            with contextlib.suppress(LimitExceeded):
                rooted.write_atomic(f"{name}{index}", b"x")

    writers = [threading.Thread(target=write, args=(name,)) for name in "abcdefgh"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(10)
    assert len(list(rooted.root.iterdir())) == 5


def test_names_from_outside_that_no_path_can_say_are_left_out(rooted: RootedFolder) -> None:
    rooted.write_atomic("good.txt", b"x")
    for name in (b"new\nline", b"back\\slash", b"not-\xff-utf8", b"CON"):
        with contextlib.suppress(OSError):
            Path(os.fsdecode(bytes(rooted.root) + b"/" + name)).write_text("x")
    listing = rooted.walk()
    assert [entry.path for entry in listing.files] == ["good.txt"]
    assert listing.left_out >= 2


def test_folders_that_are_too_deep_are_left_out(rooted: RootedFolder) -> None:
    rooted.write_atomic("/".join("d" * 15) + "/f", b"x")
    deep = rooted.root.joinpath(*"d" * 30)
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    listing = rooted.walk()
    assert [entry.path for entry in listing.files] == ["/".join("d" * 15) + "/f"]
    assert listing.left_out == 1


def test_no_descriptor_is_left_open(rooted: RootedFolder, outside: Path) -> None:
    rooted.write_atomic("a/b/c.txt", b"x")
    (rooted.root / "link").symlink_to(outside)
    before = os.open(".", os.O_RDONLY)
    os.close(before)
    for _ in range(20):
        rooted.read("a/b/c.txt")
        rooted.write_atomic("a/b/c.txt", b"y")
        rooted.walk()
        for path in ("link/x", "a/b", "a/b/none", "../x"):
            with contextlib.suppress(HarnessError):
                rooted.read(path)
            with contextlib.suppress(HarnessError):
                rooted.write_atomic(path, b"x" * (2 << 20))
    after = os.open(".", os.O_RDONLY)
    os.close(after)
    assert after == before
