"""The tools of the demo: each may be repeated more or less freely."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from web.demos.crash.ledger import Ledger
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext


@dataclass(frozen=True, slots=True)
class Times:
    """In seconds: how long one reading takes, and the post."""

    reading: float = 0.8
    posting: float = 15.0


QUICK = Times(0.1, 6.0)


def crash_tools(ledger: Ledger, times: Times) -> list[Tool]:
    """Three tools that need no permission, and differ in what may become of them after a crash."""

    async def look_up_tide(harbour: str, context: ToolContext) -> str:
        ledger.note("look_up_tide", context.call_id)
        return f"{harbour}: high water at 14:20"

    async def measure_basin(basin: str, readings: int, context: ToolContext) -> str:
        ledger.note("measure_basin", context.call_id)
        notes = Ledger(ledger.path.with_suffix(".readings"))
        # The key is that of the call, however often it begins: it goes on after its last reading.
        for number in range(notes.began()["reading", context.call_id] + 1, readings + 1):
            await asyncio.sleep(times.reading)
            notes.note("reading", context.call_id)
            context.progress(number, readings, f"reading {number} of {readings}")
        return f"{basin}: {readings} readings, 7.4 m deep"

    async def post_letter(to: str, context: ToolContext) -> str:
        ledger.note("post_letter", context.call_id)
        await asyncio.sleep(times.posting)
        return f"posted to {to}"

    allow = PermissionLevel.ALLOW
    return [
        function_tool(
            look_up_tide,
            description="Looks up when the tide is high in a harbour.",
            permission=allow,
            replay="safe",
        ),
        function_tool(
            measure_basin,
            description="Measures how deep a basin is, reading by reading.",
            permission=allow,
            replay="idempotent",
        ),
        function_tool(
            post_letter,
            description="Posts the report as a letter. What is posted cannot be taken back.",
            permission=allow,
            replay="manual",
        ),
    ]
