"""The time, as the clock that was handed in tells it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from web.harness.builtin.clock import clock_tools
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolContext, ToolOutput
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 7, 1, 12, 0, 5, 999, tzinfo=timezone(timedelta(hours=2), "SERVER"))


async def run(name: str, arguments: JsonObject, now: datetime = NOON) -> ToolOutput:
    registry = ToolRegistry(clock_tools(lambda: now))
    return await registry.run(name, arguments, ToolContext("call-1"), 10)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "2026-07-01T12:00:05+02:00 (Wednesday, SERVER)"),
        ({"timezone": None}, "2026-07-01T12:00:05+02:00 (Wednesday, SERVER)"),
        ({"timezone": " "}, "2026-07-01T12:00:05+02:00 (Wednesday, SERVER)"),
        ({"timezone": "UTC"}, "2026-07-01T10:00:05+00:00 (Wednesday, UTC)"),
        ({"timezone": "Asia/Kolkata"}, "2026-07-01T15:30:05+05:30 (Wednesday, Asia/Kolkata)"),
        (
            {"timezone": "pacific/auckland"},
            "2026-07-01T22:00:05+12:00 (Wednesday, Pacific/Auckland)",
        ),
        (
            {"timezone": "America/New York"},
            "2026-07-01T06:00:05-04:00 (Wednesday, America/New_York)",
        ),
        ({"timezone": "Tokyo"}, "2026-07-01T19:00:05+09:00 (Wednesday, Asia/Tokyo)"),
        ({"timezone": "new york"}, "2026-07-01T06:00:05-04:00 (Wednesday, America/New_York)"),
    ],
)
async def test_the_time_has_zone_and_weekday(arguments: JsonObject, text: str) -> None:
    assert (await run("current_time", arguments)).text == text


async def test_the_weekday_is_the_one_of_the_zone_asked_for() -> None:
    late = datetime(2026, 7, 1, 23, 0, tzinfo=UTC)
    output = await run("current_time", {"timezone": "Asia/Tokyo"}, late)
    assert output.text == "2026-07-02T08:00:00+09:00 (Thursday, Asia/Tokyo)"


async def test_a_clock_without_a_zone_is_local_time() -> None:
    output = await run("current_time", {}, datetime(2026, 7, 1, 12))
    told = datetime.fromisoformat(output.text.split(" ")[0])
    assert told == datetime(2026, 7, 1, 12).astimezone()


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("Asia/Berlin", "Did you mean 'Europe/Berlin'?"),
        ("Istanbul", "Did you mean 'Asia/Istanbul'?"),
        ("Europe/Berlim", "Did you mean 'Europe/Berlin'"),
        ("../../etc/passwd", "not a known time zone"),
        ("/etc/localtime", "not a known time zone"),
        ("America", "not a known time zone"),
        ("x" * 100_000, "not a known time zone"),
        ("a\0b", "not a known time zone"),
    ],
)
async def test_an_unknown_zone_is_answered_with_near_names(zone: str, words: str) -> None:
    output = await run("current_time", {"timezone": zone})
    assert output.is_error
    assert words in output.text
    assert len(output.text) < 500


async def test_both_run_by_themselves_and_may_be_repeated() -> None:
    for tool in clock_tools(lambda: NOON):
        assert (tool.permission, tool.replay) == (PermissionLevel.ALLOW, "safe")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [("1.5", "Waited 1.5 seconds."), ("1", "Waited 1 second."), ("0", "Waited 0 seconds.")],
)
async def test_wait_waits_as_long_as_asked(seconds: str, text: str) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    registry = ToolRegistry(clock_tools(lambda: NOON, sleep))
    output = await registry.run("wait", {"seconds": seconds}, ToolContext("call-1"), 10)
    assert output.text == text
    assert waited == [float(seconds)]


@pytest.mark.parametrize("seconds", [-1, 600.5, 1e300])
async def test_a_wait_out_of_bounds_is_refused(seconds: float) -> None:
    output = await run("wait", {"seconds": seconds})
    assert output.is_error
    assert "600" in output.text


async def test_a_wait_ends_at_once_when_it_is_stopped() -> None:
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(run("wait", {"seconds": 600}))
        await asyncio.wait({task}, timeout=0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
