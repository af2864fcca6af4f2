"""Hooks: told in order, and neither failing nor holding anybody."""

from __future__ import annotations

import asyncio
import logging

import pytest

from web.harness.tools.hooks import MAX_WAITING, Happening, HookEvent, Hooks
from web.harness.values.events import ToolCallStart

pytestmark = pytest.mark.anyio


def happening(event: HookEvent = HookEvent.RUN_STARTED, run_id: str = "r") -> Happening:
    return Happening(event, run_id)


async def test_plain_and_async_handlers_are_told_in_order_one_after_another() -> None:
    hooks, told = Hooks(), list[str]()

    @hooks.on(HookEvent.RUN_STARTED)
    async def slow(happening: Happening) -> None:
        told.append(f"slow begins {happening.run_id}")
        await asyncio.sleep(0)
        told.append(f"slow ends {happening.run_id}")

    def quick(happening: Happening) -> None:
        told.append(f"quick {happening.run_id}")

    assert hooks.on(HookEvent.RUN_STARTED, quick) is quick
    for run_id in ("1", "2"):
        hooks.fire(happening(run_id=run_id))
    await hooks.settle()
    assert told == [
        *("slow begins 1", "slow ends 1", "quick 1"),
        *("slow begins 2", "slow ends 2", "quick 2"),
    ]


async def test_only_what_is_watched_is_told_and_a_handler_can_be_taken_away() -> None:
    hooks, told = Hooks(), list[HookEvent]()

    def note(happening: Happening) -> None:
        told.append(happening.event)

    hooks.on(HookEvent.ERROR, note)
    hooks.fire(happening())
    hooks.fire(happening(HookEvent.ERROR))
    await hooks.settle()
    hooks.off(HookEvent.ERROR, note)
    hooks.off(HookEvent.ERROR, note)
    hooks.fire(happening(HookEvent.ERROR))
    await hooks.settle()
    assert told == [HookEvent.ERROR]


async def test_what_a_handler_raises_is_logged_and_the_others_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hooks, told = Hooks(), list[str]()

    async def fails_late(happening: Happening) -> None:
        raise RuntimeError("late")

    def fails(happening: Happening) -> None:
        raise RuntimeError("at once")

    hooks.on(HookEvent.RUN_STARTED, fails)
    hooks.on(HookEvent.RUN_STARTED, fails_late)
    hooks.on(HookEvent.RUN_STARTED, lambda happening: told.append("told"))
    hooks.fire(happening())
    await hooks.settle()
    assert told == ["told"]
    assert "at once" in caplog.text
    assert "late" in caplog.text


async def test_a_handler_that_hangs_is_stopped_and_the_next_happening_is_told() -> None:
    hooks, told = Hooks(handler_seconds=0.01), list[str]()
    stopped = asyncio.Event()

    async def hangs(happening: Happening) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    hooks.on(HookEvent.RUN_STARTED, hangs)
    hooks.on(HookEvent.RUN_ENDED, lambda happening: told.append("told"))
    hooks.fire(happening())
    hooks.fire(happening(HookEvent.RUN_ENDED))
    await hooks.settle(5)
    assert told == ["told"]
    async with asyncio.timeout(5):
        await stopped.wait()


async def test_a_handler_that_does_not_let_itself_be_stopped_holds_nobody() -> None:
    hooks, told, let_go = Hooks(handler_seconds=0.01), list[str](), asyncio.Event()

    async def stubborn(happening: Happening) -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                told.append("ignored")

    hooks.on(HookEvent.RUN_STARTED, stubborn)
    hooks.on(HookEvent.RUN_STARTED, lambda happening: told.append("told"))
    hooks.fire(happening())
    await hooks.settle(5)
    let_go.set()
    await hooks.aclose()
    assert sorted(told) == ["ignored", "told"]


async def test_settling_does_not_wait_for_ever_and_closing_waits_for_a_handler_that_ends() -> None:
    hooks, told, go_on = Hooks(), list[str](), asyncio.Event()

    async def slow(happening: Happening) -> None:
        await go_on.wait()
        told.append("ended")

    hooks.on(HookEvent.RUN_STARTED, slow)
    hooks.fire(happening())
    await hooks.settle(0.01)
    assert told == []
    asyncio.get_running_loop().call_soon(go_on.set)
    await hooks.aclose()
    await hooks.aclose()
    assert told == ["ended"]


async def test_a_handler_may_settle_and_close_without_waiting_for_itself() -> None:
    hooks, told = Hooks(), list[str]()

    async def closes(happening: Happening) -> None:
        await hooks.settle()
        await hooks.aclose()
        told.append("done")

    hooks.on(HookEvent.RUN_STARTED, closes)
    hooks.fire(happening())
    async with asyncio.timeout(4):
        await hooks.settle(5)
    assert told == ["done"]


async def test_what_waits_for_slow_handlers_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    hooks, told = Hooks(), list[str]()
    hooks.on(HookEvent.RUN_STARTED, lambda happening: told.append(happening.run_id))
    for number in range(MAX_WAITING + 7):
        hooks.fire(happening(run_id=str(number)))
    with caplog.at_level(logging.WARNING):
        await hooks.settle(5)
    assert len(told) == MAX_WAITING
    assert "7 happenings were not told" in caplog.text


async def test_no_task_is_left_when_all_is_told() -> None:
    hooks = Hooks()
    hooks.on(HookEvent.RUN_STARTED, lambda happening: None)
    before = asyncio.all_tasks()
    hooks.fire(happening())
    await hooks.settle()
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_handler_that_would_end_the_program_is_logged_and_the_next_is_told(
    error: type[BaseException], is_async: bool
) -> None:
    hooks, told = Hooks(), []

    def plain(happening: Happening) -> None:
        raise error

    async def waiting(happening: Happening) -> None:
        raise error

    hooks.on(HookEvent.RUN_STARTED, waiting if is_async else plain)
    hooks.on(HookEvent.RUN_STARTED, lambda happening: told.append(happening.run_id))
    hooks.fire(happening(run_id="a"))
    hooks.fire(happening(run_id="b"))
    await hooks.settle()
    assert told == ["a", "b"]


async def test_what_a_handler_changes_is_a_copy() -> None:
    hooks = Hooks()
    body = ToolCallStart("c", "tool", {"a": [1]}, "m")
    hooks.on(HookEvent.TOOL_STARTED, lambda happening: happening.body.arguments["a"].append(2))
    hooks.fire(Happening(HookEvent.TOOL_STARTED, "r", body))
    await hooks.settle()
    assert body.arguments == {"a": [1]}
