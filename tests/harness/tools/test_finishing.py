"""What is seen through ends, and then so does its caller."""

from __future__ import annotations

import asyncio
import logging

import pytest

from web.harness.tools.finishing import see_through

pytestmark = pytest.mark.anyio


class Work:
    """Ends when `go` is set."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.go, self.done = asyncio.Event(), asyncio.Event(), False
        self.error = error

    async def run(self) -> str:
        self.begun.set()
        await self.go.wait()
        self.done = True
        if self.error is not None:
            raise self.error
        return "done"


async def begun(work: Work) -> asyncio.Task[str]:
    caller = asyncio.ensure_future(see_through(work.run()))
    await asyncio.wait_for(work.begun.wait(), 5)
    return caller


async def test_the_result_is_given() -> None:
    work = Work()
    work.go.set()
    assert await see_through(work.run()) == "done"


async def test_an_error_is_raised() -> None:
    work = Work(ValueError("broken"))
    work.go.set()
    with pytest.raises(ValueError, match="broken"):
        await see_through(work.run())


async def test_it_is_done_however_often_its_caller_is_cancelled() -> None:
    work = Work()
    caller = await begun(work)
    for _ in range(3):
        caller.cancel()
        await asyncio.sleep(0)
        assert not caller.done()
    work.go.set()
    await asyncio.wait({caller})
    assert work.done
    assert caller.cancelled()


async def test_a_limit_of_time_around_it_is_still_told() -> None:
    work = Work()
    asyncio.get_running_loop().call_later(0.02, work.go.set)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await see_through(work.run())
    assert work.done


async def test_what_goes_wrong_behind_a_cancelled_caller_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work(ValueError("the disk is full"))
    caller = await begun(work)
    caller.cancel()
    await asyncio.sleep(0)
    work.go.set()
    with caplog.at_level(logging.ERROR):
        await asyncio.wait({caller})
    assert caller.cancelled()
    assert "the disk is full" in caplog.text
