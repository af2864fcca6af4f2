"""What was made for a script goes with it, also where its server was killed."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import is_alive
from web.harness.builtin.script_copies import PREFIX, YOUNG_SECONDS, copy_folder


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 (another process sets no event here)
            await asyncio.sleep(0.01)


def number_in(path: Path) -> int | None:
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else None


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="only there what left its group is found")
async def test_a_script_ends_when_its_server_is_killed_and_leaves_nothing(tmp_path: Path) -> None:
    folder, made = tmp_path / "chat", tmp_path / "made"
    for each in (folder, made / "inner"):
        each.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.support.script_runner", str(folder), str(made)]
    server = await asyncio.create_subprocess_exec(*command)
    try:
        for name in ("own", "child"):
            await until(lambda name=name: number_in(folder / name))  # type: ignore[misc]
    finally:
        server.kill()
        await server.wait()
    pids = [number_in(folder / name) for name in ("own", "child")]
    for pid in pids:
        assert pid
        await until(lambda pid=pid: not is_alive(pid))  # type: ignore[misc]
    await until(lambda: not made.exists())
    assert folder.exists()


def test_copies_of_servers_that_are_gone_are_removed_and_others_are_not(tmp_path: Path) -> None:
    long_ago = time.time() - YOUNG_SECONDS - 60
    left, young, used, foreign = (
        tmp_path / name for name in (f"{PREFIX}a", f"{PREFIX}b", f"{PREFIX}c", "other")
    )
    for folder in (left, young, used, foreign):
        (folder / "inner").mkdir(parents=True)
        if folder is not young:
            os.utime(folder, (long_ago, long_ago))
    descriptor = os.open(used, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with copy_folder(tmp_path) as first:
            os.utime(first, (long_ago, long_ago))
            with copy_folder(tmp_path) as second:
                assert set(tmp_path.iterdir()) == {young, used, foreign, first, second}
    finally:
        os.close(descriptor)
    assert set(tmp_path.iterdir()) == {young, used, foreign}
