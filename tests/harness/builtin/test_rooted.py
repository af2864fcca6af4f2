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
from web.harness.builtin.rooted import RootedFolder
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


def read(rooted: RootedFolder, path: str, limit: int = 1 << 20) -> bytes:
    return rooted.read(path, limit)


def write(rooted: RootedFolder, path: str, content: bytes) -> None:
    rooted.write_atomic(path, [content])


def paths(rooted: RootedFolder) -> list[str]:
    return [entry.path for entry in rooted.walk(1000).files]


def test_the_folder_is_made_by_the_first_write_only(rooted: RootedFolder) -> None:
    assert rooted.walk(1000).files == []
    with pytest.raises(NotFound):
        read(rooted, "a.txt")
    assert rooted.status("a.txt") is None
    assert not rooted.root.exists()
    write(rooted, "a.txt", b"x")
    assert rooted.root.is_dir()


def test_a_file_is_made_read_replaced_and_listed(rooted: RootedFolder) -> None:
    write(rooted, "notes/deep/a.txt", b"one")
    write(rooted, "notes/deep/a.txt", b"three")
    write(rooted, "b.bin", bytes(range(256)))
    assert read(rooted, "notes/deep/a.txt") == b"three"
    assert read(rooted, "b.bin") == bytes(range(256))
    assert [(entry.path, entry.size) for entry in rooted.walk(1000).files] == [
        ("b.bin", 256),
        ("notes/deep/a.txt", 5),
    ]
    assert rooted.walk(1000).left_out == 0


def test_files_are_readable_by_all_whatever_the_umask(rooted: RootedFolder) -> None:
    before = os.umask(0o077)
    try:
        write(rooted, "a.txt", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((rooted.root / "a.txt").stat().st_mode) == 0o644


def test_no_temporary_file_stays(rooted: RootedFolder) -> None:
    write(rooted, "a/b.txt", b"x")
    (rooted.root / "taken").mkdir()
    with pytest.raises(ToolError, match="is a folder"):
        write(rooted, "taken", b"x")
    (rooted.root / "a" / (TEMPORARY_PREFIX + "left-by-a-crash")).write_text("part")
    assert paths(rooted) == ["a/b.txt"]
    assert sorted(path.name for path in rooted.root.iterdir()) == ["a", "taken"]


@pytest.mark.parametrize("path", ["../outside/secret.txt", "/etc/passwd", "a/../../x", "", "a\0"])
def test_a_refused_path_touches_nothing(rooted: RootedFolder, outside: Path, path: str) -> None:
    actions: list[Callable[[], object]] = [
        lambda: read(rooted, path),
        lambda: rooted.status(path),
        lambda: write(rooted, path, b"x"),
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
    write(rooted, "good.txt", b"good")
    put(rooted.root, outside)
    kind = stat.S_IFMT((rooted.root / "bad").lstat().st_mode)
    for action in (lambda: read(rooted, "bad"), lambda: write(rooted, "bad", b"evil")):
        with pytest.raises(ToolError, match=words):
            action()
    assert paths(rooted) == ["good.txt"]
    assert read(rooted, "good.txt") == b"good"
    assert stat.S_IFMT((rooted.root / "bad").lstat().st_mode) == kind
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "secret"


def test_a_folder_that_is_a_link_is_not_entered(rooted: RootedFolder, outside: Path) -> None:
    write(rooted, "good.txt", b"x")
    (rooted.root / "bad").symlink_to(outside)
    (rooted.root / "back").symlink_to("..")
    for path in ("bad/secret.txt", "back/outside/secret.txt", "good.txt/x"):
        with pytest.raises(ToolError, match="is a link or a file"):
            read(rooted, path)
        with pytest.raises(ToolError, match="is a link or a file"):
            write(rooted, path, b"evil")
    assert paths(rooted) == ["good.txt"]
    assert rooted.walk(1000).left_out == 2
    assert (outside / "secret.txt").read_text() == "secret"


def test_a_root_that_is_a_link_is_not_entered(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "root").symlink_to(outside)
    rooted = RootedFolder(tmp_path / "root")
    with pytest.raises(ToolError):
        read(rooted, "secret.txt")
    with pytest.raises(ToolError):
        write(rooted, "new.txt", b"x")
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
                write(rooted, "d/e/f.txt", b"mine")
                written += 1
            with contextlib.suppress(HarnessError, OSError):
                write(rooted, "d/e/secret.txt", b"mine")
            with contextlib.suppress(HarnessError, OSError):
                assert read(rooted, "d/e/secret.txt") == b"mine"
            listed = [entry.size for entry in rooted.walk(1000).files]
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
    write(rooted, "f.txt", b"mine")
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

    times = 0
    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        for turn in range(20_000):
            if turn >= 1500 and times and swaps >= 250:
                break
            with contextlib.suppress(HarnessError):
                assert read(rooted, "f.txt") == b"mine"
                times += 1
            if turn % 50 == 0:
                with contextlib.suppress(HarnessError):
                    write(rooted, "f.txt", b"mine")
    finally:
        done.set()
        attacker.join(10)
    assert times
    assert swaps
    assert (outside / "secret.txt").read_text() == "secret"


def test_a_write_that_the_disk_refuses_leaves_the_old_file_and_no_part(
    rooted: RootedFolder,
) -> None:
    write(rooted, "f.txt", b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            write(rooted, "f.txt", b"new" * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read(rooted, "f.txt") == b"old"
    assert [path.name for path in rooted.root.iterdir()] == ["f.txt"]


def test_readers_never_see_a_part_of_a_write(rooted: RootedFolder) -> None:
    contents = {letter * 300_000 for letter in (b"a", b"b")}
    write(rooted, "f.txt", min(contents))
    done = threading.Event()

    def write_on() -> None:
        while not done.is_set():
            for content in contents:
                write(rooted, "f.txt", content)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for _ in range(200):
            assert read(rooted, "f.txt") in contents
    finally:
        done.set()
        writer.join(10)


def test_a_file_is_read_up_to_the_limit_and_no_larger(rooted: RootedFolder) -> None:
    write(rooted, "a.txt", b"x" * 10)
    assert read(rooted, "a.txt", 10) == b"x" * 10
    with pytest.raises(LimitExceeded, match="limit of 9 bytes"):
        read(rooted, "a.txt", 9)


def test_a_listing_stops_at_its_limit(rooted: RootedFolder) -> None:
    for name in ("a", "b/c", "b/d"):
        write(rooted, name, b"x")
    assert [rooted.walk(limit).more for limit in (3, 2)] == [False, True]
    assert len(rooted.walk(2).files) == 2


def test_a_write_that_its_check_refuses_changes_nothing(rooted: RootedFolder) -> None:
    write(rooted, "a.txt", b"old")
    sizes: list[int | None] = []

    def check(status: os.stat_result | None) -> None:
        sizes.append(status.st_size if status is not None else None)
        raise ToolError("not now")

    for path in ("a.txt", "b.txt"):
        with pytest.raises(ToolError, match="not now"):
            rooted.write_atomic(path, [b"new one"], check)
    with pytest.raises(ToolError, match="not now"):
        rooted.delete("a.txt", check)
    assert sizes == [3, None, 3]
    assert read(rooted, "a.txt") == b"old"
    assert [path.name for path in rooted.root.iterdir()] == ["a.txt"]


def test_a_file_is_deleted_with_the_folders_that_held_nothing_else(rooted: RootedFolder) -> None:
    for name in ("a/b/c/d.txt", "a/e.txt"):
        write(rooted, name, b"x")
    rooted.delete("a/b/c/d.txt")
    assert sorted(path.name for path in (rooted.root / "a").iterdir()) == ["e.txt"]
    rooted.delete("a/e.txt")
    assert list(rooted.root.iterdir()) == []
    with pytest.raises(NotFound):
        rooted.delete("a/e.txt")


def test_what_a_crash_left_is_removed_and_nothing_else(rooted: RootedFolder, outside: Path) -> None:
    write(rooted, "a/b.txt", b"x")
    (rooted.root / "link").symlink_to(outside)
    for folder in (rooted.root, rooted.root / "a", outside, rooted.root / ".harness"):
        folder.mkdir(exist_ok=True)
        (folder / f"{TEMPORARY_PREFIX}1").write_text("part")
    rooted.remove_leftovers()
    assert not [*rooted.root.glob(".~*"), *rooted.root.glob("a/.~*")]
    assert (outside / f"{TEMPORARY_PREFIX}1").exists()
    # Whoever holds the lock of that folder knows what in it is under way.
    assert (rooted.root / ".harness" / f"{TEMPORARY_PREFIX}1").exists()


def test_the_reserved_folder_is_no_part_of_the_listing(rooted: RootedFolder) -> None:
    write(rooted, "a.txt", b"x")
    (rooted.root / ".harness" / "objects").mkdir(parents=True)
    (rooted.root / ".harness" / "versions.jsonl").write_text("{}")
    listing = rooted.walk(1000)
    assert ([entry.path for entry in listing.files], listing.left_out) == (["a.txt"], 0)


def test_names_from_outside_that_no_path_can_say_are_left_out(rooted: RootedFolder) -> None:
    write(rooted, "good.txt", b"x")
    for name in (b"new\nline", b"back\\slash", b"not-\xff-utf8", b"CON"):
        with contextlib.suppress(OSError):
            Path(os.fsdecode(bytes(rooted.root) + b"/" + name)).write_text("x")
    listing = rooted.walk(1000)
    assert [entry.path for entry in listing.files] == ["good.txt"]
    assert listing.left_out >= 2


def test_folders_that_are_too_deep_are_left_out(rooted: RootedFolder) -> None:
    write(rooted, "/".join("d" * 15) + "/f", b"x")
    deep = rooted.root.joinpath(*"d" * 30)
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    listing = rooted.walk(1000)
    assert [entry.path for entry in listing.files] == ["/".join("d" * 15) + "/f"]
    assert listing.left_out == 1


def test_no_descriptor_is_left_open(rooted: RootedFolder, outside: Path) -> None:
    write(rooted, "a/b/c.txt", b"x")
    (rooted.root / "link").symlink_to(outside)
    before = os.open(".", os.O_RDONLY)
    os.close(before)
    for _ in range(20):
        read(rooted, "a/b/c.txt")
        write(rooted, "a/b/c.txt", b"y")
        rooted.walk(1000)
        for path in ("link/x", "a/b", "a/b/none", "../x"):
            with contextlib.suppress(HarnessError):
                read(rooted, path)
            with contextlib.suppress(HarnessError):
                write(rooted, path, b"x" * (2 << 20))
    after = os.open(".", os.O_RDONLY)
    os.close(after)
    assert after == before
