"""`current_time` and `wait`."""

from __future__ import annotations

import asyncio
import functools
import zoneinfo
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated

from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel, Tool
from web.harness.tools.words import did_you_mean, shown
from web.harness.values.errors import ToolError

MAX_WAIT_SECONDS = 600

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def clock_tools(
    now: Callable[[], datetime], sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> list[Tool]:
    """The tools `current_time` and `wait`.

    `now` gives the time in the server's zone; one without a zone counts as local time. `sleep`
    returns after so many seconds.
    """

    async def current_time(
        timezone: Annotated[
            str | None, "IANA name such as Europe/Berlin; left out, the server's own zone."
        ] = None,
    ) -> str:
        """Tells the current date and time in ISO 8601, with the weekday."""
        moment = now()
        if moment.tzinfo is None:
            moment = moment.astimezone()
        if timezone is None or not timezone.strip():
            return _words(moment, moment.tzname() or "server time")
        name = zone_name(timezone)
        return _words(moment.astimezone(zoneinfo.ZoneInfo(name)), name)

    async def wait(seconds: Annotated[float, f"From 0 to {MAX_WAIT_SECONDS}."]) -> str:
        """Waits for some seconds and does nothing else."""
        if not 0 <= seconds <= MAX_WAIT_SECONDS:
            raise ToolError(f"seconds must be from 0 to {MAX_WAIT_SECONDS}, not {seconds:g}.")
        await sleep(seconds)
        return f"Waited {seconds:g} {'second' if seconds == 1 else 'seconds'}."

    return [
        function_tool(tool, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True)
        for tool in (current_time, wait)
    ]


def zone_name(text: str) -> str:
    """The IANA name that was meant, whatever its case; raises ToolError with near names.

    A city alone will do where one zone ends with it.
    """
    zones = _zones()
    wanted = text.strip().replace(" ", "_")
    found = zones.get(wanted.casefold())
    if found is not None:
        return found
    city = wanted.rpartition("/")[2].casefold()
    same = [name for key, name in zones.items() if key.rpartition("/")[2] == city]
    if len(same) == 1 and "/" not in wanted:
        return same[0]
    near = f" Did you mean '{same[0]}'?" if same else did_you_mean(wanted, zones.values())
    raise ToolError(
        f"{shown(text)} is not a known time zone.{near} Use an IANA name such as Europe/Berlin."
    )


@functools.cache
def _zones() -> dict[str, str]:
    """Every IANA name by its casefolded form; read from disk once."""
    return {name.casefold(): name for name in sorted(zoneinfo.available_timezones())}


def _words(moment: datetime, zone: str) -> str:
    iso = moment.isoformat(timespec="seconds")
    return f"{iso} ({_WEEKDAYS[moment.weekday()]}, {zone})"
