"""Snapshots in a folder: atomic, by ids that lead nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.snapshots.kept import FULL
from web.harness.snapshots.folder import SnapshotFolder
from web.harness.snapshots.snapshot import Snapshot
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound, SnapshotRefused
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import Message, TextBlock


def test_what_was_saved_is_loaded_listed_and_deleted(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "deep" / "sessions")
    assert folder.list() == []
    assert folder.save(FULL) == FULL.session_id
    assert folder.load(FULL.session_id) == FULL
    changed = replace(FULL, metadata={"topic": "other"})
    folder.save(changed)
    assert folder.load(FULL.session_id) == changed
    assert folder.list() == [FULL.session_id]
    folder.delete(FULL.session_id)
    folder.delete(FULL.session_id)
    assert folder.list() == []
    with pytest.raises(NotFound, match="no session invoices-2026"):
        folder.load(FULL.session_id)


def test_files_are_for_their_user_alone(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "sessions")
    folder.save(FULL)
    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "sessions" / "invoices-2026.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "session_id",
    [
        "",
        ".",
        "..",
        "../secret",
        "a/b",
        "a\\b",
        "/etc/passwd",
        "a\0b",
        "a\n",
        ".hidden",
        "a.",
        "NUL",
        "com1.txt",
        "ü",
        "a" * 129,
        "C:x",
        "~root",
        "%2e%2e",
    ],
)
def test_an_id_that_could_lead_elsewhere_is_refused(tmp_path: Path, session_id: str) -> None:
    (tmp_path / "secret.json").write_bytes(b"{}")
    folder = SnapshotFolder(tmp_path / "sessions")
    for attempt in (
        lambda: folder.load(session_id),
        lambda: folder.save(Snapshot(session_id)),
        lambda: folder.delete(session_id),
    ):
        with pytest.raises(SnapshotRefused, match="cannot be the id of a session") as refused:
            attempt()
        assert refused.value.code == "session_id_refused"
    assert not (tmp_path / "sessions").exists()


def test_a_file_that_holds_another_session_is_refused(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.save(FULL)
    (tmp_path / "invoices-2026.json").rename(tmp_path / "other.json")
    with pytest.raises(SnapshotRefused, match="holds another session: invoices-2026") as refused:
        folder.load("other")
    assert "invoices-2026.json" in refused.value.hint


def test_links_folders_and_pipes_are_not_read(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "sessions")
    folder.save(FULL)
    inside = tmp_path / "sessions"
    (inside / "link.json").symlink_to(inside / "invoices-2026.json")
    (inside / "folder.json").mkdir()
    os.mkfifo(inside / "pipe.json")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(SnapshotRefused, match=r"link|folder|pipe"):
            folder.load(name)


def test_a_link_in_the_way_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = SnapshotFolder(tmp_path / "sessions")
    folder.save(replace(FULL, session_id="first"))
    (tmp_path / "sessions" / "invoices-2026.json").symlink_to(victim)
    folder.save(FULL)
    assert victim.read_text() == "mine"
    assert folder.load("invoices-2026") == FULL


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    with open(tmp_path / "huge.json", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(LimitExceeded, match=r"1099\.5 GB; the limit is 268 MB"):
        folder.load("huge")


def test_a_save_that_is_refused_keeps_what_was_saved_before(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.save(FULL)
    with pytest.raises(NotSerialisable):
        folder.save(replace(FULL, metadata={"when": object()}))
    with pytest.raises(LimitExceeded):
        SnapshotFolder(tmp_path, max_bytes=500).save(FULL)
    assert folder.load(FULL.session_id) == FULL
    assert os.listdir(tmp_path) == ["invoices-2026.json"]


def test_a_disk_that_refuses_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SnapshotRefused, match="could not be saved") as refused:
        SnapshotFolder(tmp_path / "file" / "sessions").save(FULL)
    assert refused.value.code == "snapshot_not_saved"
    (tmp_path / "invoices-2026.json").mkdir()
    with pytest.raises(SnapshotRefused, match="could not be saved"):
        SnapshotFolder(tmp_path).save(FULL)
    assert sorted(os.listdir(tmp_path)) == ["file", "invoices-2026.json"]


def test_what_killed_writers_left_is_swept_away_and_what_is_written_now_is_not(
    tmp_path: Path,
) -> None:
    folder = SnapshotFolder(tmp_path)
    old, new = (f".invoices.json.{digit * 16}.tmp" for digit in "ab")
    for name in (old, new):
        (tmp_path / name).write_bytes(b"{")
    os.utime(tmp_path / old, (0, 0))
    folder.save(FULL)
    assert sorted(os.listdir(tmp_path)) == [new, "invoices-2026.json"]


def test_readers_find_one_whole_snapshot_while_it_is_replaced_all_the_time(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.save(FULL)
    done = threading.Event()
    faults: list[HarnessError] = []

    def read() -> None:
        while not done.is_set():
            try:
                folder.load(FULL.session_id)
            except HarnessError as error:
                faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    long = Message("r1-4", "user", (TextBlock("x" * 20_000),))
    for number in range(60):
        messages = (*FULL.messages, long) if number % 2 else FULL.messages
        folder.save(replace(FULL, messages=messages))
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []


WRITER = """
import sys
from web.harness.snapshots.folder import SnapshotFolder
from web.harness.snapshots.form import read_snapshot
from dataclasses import replace
folder = SnapshotFolder(sys.argv[1])
snapshot = folder.load("invoices-2026")
print("ready", flush=True)
number = 0
while True:
    number += 1
    folder.save(replace(snapshot, metadata={"number": number, "fill": "x" * 200_000}))
    print(number, flush=True)
"""


def test_a_writer_that_is_killed_leaves_the_last_acknowledged_snapshot_or_a_newer(
    tmp_path: Path,
) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.save(FULL)
    for wanted in (1, 3, 6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        said = 0
        for line in writer.stdout:
            said = 0 if line == "ready\n" else int(line)
            if said == wanted:
                break
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        number = folder.load("invoices-2026").metadata["number"]
        assert number >= said
