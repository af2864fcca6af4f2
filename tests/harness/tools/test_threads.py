"""Blocking work and cancellation."""

from __future__ import annotations

import asyncio
import threading

import pytest

from web.harness.tools.threads import run_in_thread

pytestmark = pytest.mark.anyio


async def test_cancellation_waits_for_work_that_has_to_finish() -> None:
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    finished: list[bool] = []

    def work() -> None:
        loop.call_soon_threadsafe(started.set)
        finished.append(release.wait(10))
        raise ValueError("read by nobody, and reported by nobody")

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(run_in_thread(work, finish=True))
        await started.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.wait({task}, timeout=0)
        assert not task.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert finished == [True]


async def test_cancellation_leaves_other_work_behind_at_once() -> None:
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(10)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(run_in_thread(work))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    release.set()


@pytest.mark.parametrize("finish", [True, False])
async def test_an_exception_comes_back(finish: bool) -> None:
    def work() -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await run_in_thread(work, finish=finish)


async def test_a_hundred_stuck_calls_take_nobodys_place() -> None:
    release = threading.Event()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        stuck = [group.create_task(run_in_thread(lambda: release.wait(20))) for _ in range(100)]
        assert await run_in_thread(lambda: 3) == 3
        assert not any(task.done() for task in stuck)
        release.set()
