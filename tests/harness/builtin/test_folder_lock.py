"""A chat's folder whose lock another program holds."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lock_holder import lock_held
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.files import file_tools
from web.harness.builtin.folder_lock import FolderLock
from web.harness.builtin.versions import Origin
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ToolContext, ToolOutput
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio

PERSON = Origin("person")
BRIEF = FileLimits(busy_seconds=0.3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chat"


@pytest.fixture
def reserved(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


async def run(tools: ToolRegistry, name: str, **arguments: object) -> ToolOutput:
    return await tools.run(name, arguments, ToolContext("c1"), 20)


async def test_every_tool_says_so_within_seconds_and_works_again_afterwards(folder: Path) -> None:
    files = ChatFiles(folder, BRIEF)
    await files.write("a.txt", b"one", PERSON, replace=False)
    tools = ToolRegistry(file_tools(files))
    calls: list[tuple[str, dict[str, object]]] = [
        ("read_file", {"path": "a.txt"}),
        ("write_file", {"path": "b.txt", "content": "x"}),
        ("list_files", {}),
        ("edit_file", {"path": "a.txt", "old": "one", "new": "two"}),
        ("find_files", {"pattern": "*.txt"}),
        ("delete_file", {"path": "a.txt"}),
    ]
    with lock_held(folder) as holder:
        # One that is stopped can never be asked, and gives nothing back.
        holder.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        outputs = await asyncio.gather(*(run(tools, name, **given) for name, given in calls))
        assert time.monotonic() - began < 5
        for output in outputs:
            assert output.is_error
            assert "The chat's files are busy: another program holds them." in output.text
        assert sorted(path.name for path in folder.iterdir()) == [".harness", "a.txt"]
    assert (await run(tools, "read_file", path="a.txt")).text == "one"
    assert not (await run(tools, "write_file", path="b.txt", content="x")).is_error


async def test_the_error_has_a_code_that_programs_can_tell(folder: Path) -> None:
    with lock_held(folder), pytest.raises(ToolError) as caught:
        await ChatFiles(folder, BRIEF).list()
    assert caught.value.code == "files_busy"


async def test_who_waits_goes_on_as_soon_as_the_lock_is_given_back(folder: Path) -> None:
    files = ChatFiles(folder, FileLimits(busy_seconds=20))
    with lock_held(folder) as holder:
        writing = asyncio.create_task(files.write("a.txt", b"x", PERSON, replace=False))
        done, _ = await asyncio.wait({writing}, timeout=0.2)
        assert not done
        began = time.monotonic()
        holder.kill()
        await writing
        assert time.monotonic() - began < 5


@pytest.mark.full
async def test_many_who_wait_hold_up_neither_each_other_nor_another_chat(
    folder: Path, tmp_path: Path
) -> None:
    busy, other = ChatFiles(folder, FileLimits(busy_seconds=1.0)), ChatFiles(tmp_path / "other")
    with lock_held(folder):
        began = time.monotonic()
        waiting = [asyncio.create_task(busy.list()) for _ in range(100)]
        await asyncio.sleep(0)
        await other.write("a.txt", b"x", PERSON, replace=False)
        assert await other.read("a.txt") == b"x"
        assert not any(task.done() for task in waiting)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        # Each of them waits by itself, and not for those before it.
        assert time.monotonic() - began < 10
    assert {type(result) for result in results} == {ToolError}


def test_work_of_this_process_is_waited_for_longer_than_another_program(
    tmp_path: Path, reserved: int
) -> None:
    lock = FolderLock(busy_seconds=0.0)
    taken: list[bool] = []

    def take() -> None:
        with lock.held(reserved):
            taken.append(True)

    thread = threading.Thread(target=take)
    with lock.held(reserved):
        thread.start()
        thread.join(0.2)
        assert taken == []
    thread.join(10)
    assert taken == [True]


def test_a_lock_that_was_refused_leaves_nothing_held(tmp_path: Path, reserved: int) -> None:
    lock, another = FolderLock(busy_seconds=0.0), FolderLock(busy_seconds=0.0)
    with another.held(reserved):
        for _ in range(3):
            with pytest.raises(ToolError, match="busy"), lock.held(reserved):
                pass
    with lock.held(reserved):
        pass
    assert str(tmp_path / "lock") not in map(os.path.realpath, Path("/proc/self/fd").iterdir())
