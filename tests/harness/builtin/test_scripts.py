"""Scripts as processes: what they get, what is kept of them, and that none is left."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.processes import is_alive
from web.harness.builtin.scripts import (
    MAX_OUTPUT_BYTES,
    Finished,
    interpreter_of,
    run_script,
)
from web.harness.tools.marks import MARK
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home", "LANG": "C.UTF-8", "OPENAI_API_KEY": "key"}
PYTHON = (sys.executable, "-c")


async def run(*command: str, folder: Path, seconds: float = 20) -> Finished:
    return await run_script(command, folder=folder, environ=ENVIRON, seconds=seconds)


async def gone(pid: int) -> bool:
    """Whether the process ends within a bounded time; a killed one may still be on its way."""
    ends = time.monotonic() + 10
    while is_alive(pid):
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(0.01)
    return True


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def written(path: Path) -> int:
    """The number in a file, once it is there."""
    async with asyncio.timeout(20):
        while True:
            text = text_of(path)
            if text.endswith("\n"):
                return int(text)
            await asyncio.sleep(0.01)


async def test_it_runs_in_its_folder_with_few_variables_and_no_input(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), sorted(os.environ), sys.stdin.read(), sys.argv[1:])"
    given = ["a b", "$HOME; ls"]
    done = await run(*PYTHON, code, *given, folder=tmp_path)
    # Python itself adds LC_CTYPE where it has to choose an encoding.
    assert done.output == f"{tmp_path} {sorted(['HOME', 'LANG', 'PATH', MARK])}  {given}\n"
    assert (done.exit_code, done.dropped, done.timed_out) == (0, 0, False)


async def test_both_outputs_come_in_order_with_the_exit_code(tmp_path: Path) -> None:
    done = await run(
        "sh", "-c", "echo out; echo err >&2; printf 'l\\303\\274\\377'; exit 3", folder=tmp_path
    )
    assert (done.exit_code, done.output) == (3, "out\nerr\nlü\ufffd")


async def test_a_flood_is_cut_and_does_not_stop_the_script(tmp_path: Path) -> None:
    code = (
        "import sys\nfor _ in range(200): sys.stdout.write('x' * 10_000)\nopen('end', 'w').close()"
    )
    done = await run(*PYTHON, code, folder=tmp_path)
    assert len(done.output) == MAX_OUTPUT_BYTES
    assert done.dropped == 2_000_000 - MAX_OUTPUT_BYTES
    assert (tmp_path / "end").exists()


async def test_the_time_limit_kills_it_and_its_children_and_keeps_what_it_said(
    tmp_path: Path,
) -> None:
    command = "echo before; sleep 600 & echo $! > child; trap '' TERM; sleep 600"
    done = await run("sh", "-c", command, folder=tmp_path, seconds=1.5)
    assert done.timed_out
    assert done.exit_code < 0
    assert done.output == "before\n"
    assert await gone(int((tmp_path / "child").read_text()))


async def test_cancelling_kills_it_and_its_children(tmp_path: Path) -> None:
    command = "echo $$ > own; sleep 600 & echo $! > child; wait"
    task = asyncio.create_task(run("sh", "-c", command, folder=tmp_path, seconds=600))
    pids = [await written(tmp_path / "child"), await written(tmp_path / "own")]
    assert all(map(is_alive, pids))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in pids:
        assert await gone(pid)


async def test_cancelling_leaves_nothing_however_early_it_comes(tmp_path: Path) -> None:
    """Also while the process is being started, when nobody holds it yet."""
    sleeper = tmp_path / "sleeper"
    sleeper.symlink_to(shutil.which("sleep") or "")
    command = f"{sleeper} 600 & {sleeper} 600"
    for turns in range(12):
        task = asyncio.create_task(run("sh", "-c", command, folder=tmp_path, seconds=600))
        for _ in range(turns * 3):
            await asyncio.sleep(0.0005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for process in psutil.process_iter(["pid", "cmdline"]):
        if str(sleeper) in " ".join(process.info["cmdline"] or ()):
            assert await gone(process.info["pid"])


async def test_what_it_leaves_behind_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    done = await run("sh", "-c", "sleep 600 & echo $! > child; echo done", folder=tmp_path)
    assert time.monotonic() - began < 10
    assert (done.exit_code, done.output) == (0, "done\n")
    assert await gone(int((tmp_path / "child").read_text()))


DAEMON = (
    "setsid sh -c 'echo $$ > child; exec sleep 600' & "
    "while [ ! -s child ]; do sleep 0.01; done; echo done; "
)
"""A script that starts what has left its group, and holds its output open."""


@pytest.mark.parametrize(
    ("rest", "seconds", "said"),
    [
        pytest.param("", 20, (0, False), marks=pytest.mark.full),
        ("exit 3", 20, (3, False)),
        pytest.param("sleep 600", 1.0, (-9, True), marks=pytest.mark.full),
    ],
)
async def test_what_has_left_its_group_ends_with_it_and_holds_nobody_up(
    tmp_path: Path, rest: str, seconds: float, said: tuple[int, bool]
) -> None:
    began = time.monotonic()
    done = await run("sh", "-c", DAEMON + rest, folder=tmp_path, seconds=seconds)
    assert (done.exit_code, done.timed_out, done.output) == (*said, "done\n")
    assert time.monotonic() - began < 10
    assert await gone(await written(tmp_path / "child"))


@pytest.mark.parametrize("times", [1, 3])
async def test_cancelling_ends_what_has_left_its_group(tmp_path: Path, times: int) -> None:
    """Also when it comes again meanwhile, as a run that ends does."""
    task = asyncio.create_task(run("sh", "-c", DAEMON + "sleep 600", folder=tmp_path, seconds=600))
    pid = await written(tmp_path / "child")
    assert is_alive(pid)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)


async def test_what_cannot_be_started_is_an_error_in_words(tmp_path: Path) -> None:
    for folder, command in ((tmp_path / "none", "sh"), (tmp_path, "no-such-command")):
        with pytest.raises(ToolError, match="could not be started"):
            await run(command, folder=folder)


@pytest.mark.parametrize("name", ["x", "x.md", "x.PY", "x.exe", "x.py.txt", ".py", "x.bash"])
def test_only_two_kinds_of_scripts_are_run(name: str) -> None:
    with pytest.raises(ToolError, match="cannot be run"):
        interpreter_of(name)
