"""What is finished in a cancelled scope of anyio lets the event loop rest meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

import anyio
import pytest

from web.harness.tools.finishing import see_through
from web.harness.tools.threads import run_in_thread

pytestmark = pytest.mark.anyio

SECONDS = 0.3


async def test_a_thread_is_waited_for_without_spinning() -> None:
    ended = threading.Event()

    def work() -> None:
        threading.Event().wait(SECONDS)
        ended.set()

    before = time.thread_time()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run_in_thread(work, finish=True)
    assert ended.is_set()
    assert scope.cancelled_caught
    assert time.thread_time() - before < SECONDS / 2


async def test_work_is_seen_through_without_spinning() -> None:
    ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(SECONDS, partial(ended.set_result, True))

    async def work() -> bool:
        return await ended

    before = time.thread_time()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await see_through(work())
    assert ended.done()
    assert time.thread_time() - before < SECONDS / 2


async def test_a_cancellation_is_passed_on_afterwards() -> None:
    went_on: list[str] = []
    work = threading.Event()

    async def caller() -> None:
        await run_in_thread(lambda: work.wait(5), finish=True)
        went_on.append("not cancelled")

    task = asyncio.ensure_future(caller())
    await asyncio.sleep(0)
    task.cancel()
    work.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert went_on == []
