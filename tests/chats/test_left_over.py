"""What a run that was cut off says of itself."""

from __future__ import annotations

import pytest

from web.chats.left_over import LeftOver
from web.harness.sessions.event_log import InMemoryEventLog
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.values.events import (
    ApprovalRequired,
    ErrorReport,
    EventBody,
    RunResult,
    TextDelta,
    ToolCallStart,
    ToolResult,
)

pytestmark = pytest.mark.anyio

ASKED = ApprovalRequired("k", "c", "write_file", {}, "m")
STARTED = ToolCallStart("c", "write_file", {}, "m")
OTHER = ToolCallStart("d", "read_file", {}, "m")
DENIED = ToolResult("c", "write_file", "No.")


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ([TextDelta("I write it.", "m"), ASKED], "it waited for your answer; nothing was run"),
        ([ASKED, STARTED], "so it is incomplete"),
        ([ASKED, DENIED, TextDelta("Then", "m")], "so it is incomplete"),
        ([OTHER, ASKED], "so it is incomplete"),
        ([TextDelta("Half", "m")], "so it is incomplete"),
    ],
)
async def test_a_run_that_was_cut_off_says_whether_it_only_waited(
    before: list[EventBody], words: str
) -> None:
    events = InMemoryEventLog(lambda: 1.0)
    events.append("r", before)
    told = await LeftOver(events, InMemorySessionStore()).interrupted("r")
    error, result = (event.body for event in told)
    assert isinstance(error, ErrorReport)
    assert words in error.message
    assert isinstance(result, RunResult)
    assert result.reason == error.code == "interrupted"
