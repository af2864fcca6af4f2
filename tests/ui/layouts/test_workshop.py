"""Files are laid out in processes of their own, which end: by themselves, in time, with us."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.opened import opened
from web.ui.layouts.places import Budget, NotLaidOut
from web.ui.layouts.workshop import Workshop

pytestmark = pytest.mark.anyio

SLOW = b"- a\n" * 50_000
"""A list that takes seconds."""

PATIENT = Budget(seconds=30)
"""On a busy machine a process may take its time to start."""


def processes(of: psutil.Process | None = None) -> list[psutil.Process]:
    found = []
    for each in (of or psutil.Process()).children():
        # One may end while it is looked at.
        with suppress(psutil.Error):
            command = " ".join(each.cmdline())
            if each.status() != psutil.STATUS_ZOMBIE and "web.ui.layouts.worker" in command:
                found.append(each)
    return found


async def until(true: Callable[[], object], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 (another process sets no event here)
            await asyncio.sleep(0.01)


async def test_a_file_is_laid_out_elsewhere_and_the_process_ends(tmp_path: Path) -> None:
    with opened(tmp_path / "a.json", b'{"a": "\xc3\xa9"}') as file:
        laid = await Workshop(PATIENT).lay_out("tree", file)
        assert laid.done
        assert laid.text == (await Workshop(PATIENT).lay_out("tree", file, small=True)).text
        assert "é" in laid.text
    assert processes() == []


async def test_what_takes_too_long_is_ended_with_words(tmp_path: Path) -> None:
    with opened(tmp_path / "a.md", SLOW) as file:
        begun = time.monotonic()
        with pytest.raises(NotLaidOut, match=r"too much to lay out in 0\.5 seconds"):
            await Workshop(Budget(seconds=0.5)).lay_out("markdown", file, files="/")
        assert time.monotonic() - begun < 8
    await until(lambda: not processes())


async def test_what_takes_too_much_memory_is_told(tmp_path: Path) -> None:
    with opened(tmp_path / "a.json", b"[" + b"[]," * 1_600_000 + b"1]") as file:
        workshop = Workshop(replace(PATIENT, memory_bytes=96 * 1024 * 1024))
        with pytest.raises(NotLaidOut, match="in 96 MB of memory"):
            await workshop.lay_out("tree", file)


async def test_one_too_many_is_refused_at_once_and_those_before_go_on(tmp_path: Path) -> None:
    with opened(tmp_path / "a.md", SLOW) as slow, opened(tmp_path / "b.json", b"[1]") as quick:
        workshop = Workshop(replace(PATIENT, at_once=1, waiting=1))
        first = asyncio.ensure_future(workshop.lay_out("markdown", slow, files="/"))
        await until(processes)
        waits = asyncio.ensure_future(workshop.lay_out("tree", quick))
        await asyncio.sleep(0)
        with pytest.raises(NotLaidOut, match="Too many files"):
            await workshop.lay_out("tree", quick)
        # What is small is no process, and waits for none.
        assert (await workshop.lay_out("tree", quick, small=True)).done
        first.cancel()
        assert (await waits).done


async def test_whoever_goes_away_leaves_no_process_and_none_knows_our_secrets(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "a.md", SLOW) as file:
        work = asyncio.ensure_future(Workshop().lay_out("markdown", file, files="/"))
        await until(processes)
        [process] = processes()
        await until(process.environ)
        assert set(process.environ()) <= {"LC_ALL", "LC_CTYPE"}
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await until(lambda: not processes())


SERVER = """
import asyncio, os, sys
sys.path[:] = sys.argv[1:-1]
from web.harness.builtin.chat_files import OpenFile
from web.ui.layouts.workshop import Workshop
path = sys.argv[-1]
file = OpenFile(os.open(path, os.O_RDONLY), os.path.getsize(path), 0.0, "", "text/plain")
asyncio.run(Workshop().lay_out("markdown", file, files="/"))
"""


def serving(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SERVER, *sys.path, str(path)], cwd=path.parent)


async def test_a_server_that_is_killed_takes_its_processes_along(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(SLOW)
    server = serving(path)
    try:
        known = psutil.Process(server.pid)
        await until(lambda: processes(known))
        [worker] = processes(known)
    finally:
        server.kill()
        server.wait()
    # In time of the processor, which it gets little of on a busy machine: by itself it would take
    # all that it may, some seconds.
    taken = [0.0]

    def ended() -> bool:
        try:
            if worker.status() == psutil.STATUS_ZOMBIE:
                return True
            taken.append(worked(worker))
        except psutil.NoSuchProcess:
            return True
        return False

    await until(ended, 60)
    assert taken[-1] < 3


def worked(process: psutil.Process) -> float:
    """Seconds of the processor that it has had."""
    times = process.cpu_times()
    return float(times.user + times.system)


@pytest.mark.full
def test_a_process_loads_neither_the_server_nor_the_server_what_reads_pdfs() -> None:
    worker = (
        "import sys, web.ui.layouts.worker, web.ui.markdown, web.ui.layouts.tables;"
        "import web.ui.layouts.json_trees, web.ui.layouts.framed_html;"
        "import web.ui.layouts.pdf_pages;"
        "print({'starlette', 'uvicorn', 'jinja2', 'mcp', 'httpx', 'web.app'} & set(sys.modules))"
    )
    server = (
        "import sys, web.app; print({'pypdfium2', 'web.ui.layouts.pdf_pages'} & set(sys.modules))"
    )
    for code in (worker, server):
        told = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path}; {code}"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert told.stdout.strip() == "set()", told.stderr


@pytest.mark.full
async def test_six_at_once_leave_the_event_loop_alone(tmp_path: Path) -> None:
    late: list[float] = []

    async def watch() -> None:
        while True:
            begun = time.thread_time()  # Others may have the processors too.
            await asyncio.sleep(0.001)
            late.append(time.thread_time() - begun)

    with opened(tmp_path / "a.csv", b"a,b\n" + b'1,"2"\n' * 2_000_000) as file:
        watching = asyncio.ensure_future(watch())
        workshop = Workshop(PATIENT)
        tables = [workshop.lay_out("table", file, page=1, index=None) for _ in range(6)]
        assert all(laid.done for laid in await asyncio.gather(*tables))
        watching.cancel()
    assert sorted(late)[int(len(late) * 0.99)] < 0.05
