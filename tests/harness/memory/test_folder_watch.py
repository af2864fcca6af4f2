"""What the system tells of a folder: every change by name, or that it does not know."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from web.harness.memory.folder_watch import FolderWatch
from web.harness.memory.notes import FEW, AgentMemory


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def watch(folder: int) -> FolderWatch:
    made = FolderWatch.of(folder)
    if made is None:
        pytest.skip("This system does not tell.")
    return made


def test_all_that_changes_a_file_is_told_once_by_its_name(
    tmp_path: Path, watch: FolderWatch
) -> None:
    assert watch.changed() == set()
    (tmp_path / "ä.md").write_text("x")
    (tmp_path / "b.md").write_text("x")
    assert watch.changed() == {"ä.md", "b.md"}
    assert watch.changed() == set()
    with open(tmp_path / "b.md", "r+") as file:
        file.write("y")
    assert watch.changed() == {"b.md"}
    (tmp_path / "b.md").rename(tmp_path / "c.md")
    (tmp_path / "ä.md").unlink()
    assert watch.changed() == {"ä.md", "b.md", "c.md"}
    os.utime(tmp_path / "c.md")
    assert watch.changed() == {"c.md"}


def test_another_process_is_told_of_by_the_time_it_has_written(
    tmp_path: Path, watch: FolderWatch
) -> None:
    program = "import sys; open(sys.argv[1], 'w').write('x')"
    subprocess.run([sys.executable, "-S", "-c", program, str(tmp_path / "a.md")], check=True)
    assert watch.changed() == {"a.md"}


def test_a_folder_that_goes_away_is_not_known_any_more(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    descriptor = os.open(inner, os.O_RDONLY)
    try:
        watch = FolderWatch.of(descriptor)
        if watch is None:
            pytest.skip("This system does not tell.")
        inner.rename(tmp_path / "moved")
        assert watch.changed() is None
        inner.mkdir()
        another = os.open(inner, os.O_RDONLY)
        assert watch.is_of(descriptor)
        assert not watch.is_of(another)
        os.close(another)
    finally:
        os.close(descriptor)


@pytest.mark.full
def test_more_than_the_system_remembers_is_not_known(tmp_path: Path, watch: FolderWatch) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    files = [tmp_path / "a.md", tmp_path / "b.md"]
    for file in files:
        file.touch()
    # In turn: two of the same kind for one file would be one.
    for number in range(most + 10):
        os.utime(files[number % 2])
    assert watch.changed() is None
    assert watch.changed() == set()


def test_a_watch_that_is_forgotten_is_closed(folder: int) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        FolderWatch.of(folder)
    assert len(os.listdir("/proc/self/fd")) <= open_before + 1


def test_very_many_notes_are_true_after_each_change_also_to_another_folder_in_their_place(
    tmp_path: Path,
) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(FEW + 10):
        (root / f"n{number}.md").write_text(f"text {number}")
    notes = AgentMemory(root)
    for number in range(20):
        file = root / f"n{number}.md"
        file.write_text(f"needle{number}")
        assert [note.id for note in notes.search(f"needle{number}")] == [f"n{number}"]
        file.write_text(f"thread{number}")
        assert notes.search(f"needle{number}") == []
        (root / f"new{number}.md").write_text("brandnew")
        assert len(notes.search("brandnew", limit=50)) == number + 1
    (root / "n5.md").unlink()
    assert len(notes.list()) == FEW + 10 + 20 - 1
    root.rename(tmp_path / "old")
    root.mkdir()
    (root / "only.md").write_text("needle")
    assert [note.id for note in notes.search("needle")] == ["only"]
    assert [info.id for info in notes.list()] == ["only"]
