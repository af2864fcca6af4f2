"""A disk with little room, for as long as a test wants."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of its own at a new folder. Skips the test where none may be mounted."""
    mount = shutil.which("mount")
    folder.mkdir()
    options = f"size={kilobytes}k"
    if mount is None or _run(mount, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)) != 0:
        pytest.skip("No file system can be mounted here.")
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


def make_read_only(folder: Path) -> None:
    assert _run("mount", "-o", "remount,ro", str(folder)) == 0


def fill(folder: Path) -> None:
    """Takes all room that is left."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 1024):
                pass
        except OSError:
            return


def _run(*command: str) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode
