"""What every event log promises: one body over all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.support.steps import texts
from tests.support.stores import MemoryPlace, SqlPlace
from web.harness.sessions.deltas import join_deltas
from web.harness.sessions.event_log import EventLog, Listener
from web.harness.values.errors import HarnessError
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    ErrorReport,
    Event,
    EventBody,
    InputAnswered,
    InputRequired,
    NestedEvent,
    Note,
    PlanStep,
    RecoveryAnswered,
    RecoveryRequired,
    ResultPart,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    ToolResult,
    UsageReport,
    Waiting,
)
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio

MakeLog = Callable[[Listener | None], Awaitable[EventLog]]


@pytest.fixture
async def make_log(any_place: MemoryPlace | SqlPlace) -> MakeLog:
    return any_place.events


@pytest.fixture
async def log(make_log: MakeLog) -> EventLog:
    return await make_log(None)


END = RunResult("completed", "ab")

EVERY_BODY: list[EventBody] = [
    TextDelta("a \x00 \ud800 日", "m"),
    ThinkingDelta("hm", "m"),
    ToolCallDelta("c", "t", '{"a', "m"),
    ApprovalRequired("k", "c", "t", {"a": [1, None]}, "m", {"kind": "text"}, ("read-only",), True),
    ToolCallStart("c", "t", {"a": 1.5}, "m", "allow", True, ("read-only",)),
    ToolProgress("c", 1, 2.5, "half"),
    InputRequired("k", "c", {"mode": "form"}),
    InputAnswered("k", "c", "withdrawn"),
    RecoveryRequired("k", "c", "t", {}),
    RecoveryAnswered("k", "c", "retry"),
    ToolResult(
        *("c", "t", "done", True, 0.5, "deny", True),
        parts=(ResultPart("image", size=3, sha256="ab"), ResultPart("text", "x")),
        files=("a.txt",),
        plan=(PlanStep("one", "completed"), PlanStep("two")),
    ),
    AttemptReset("m", 2, "lost"),
    ContextCondensed(10, 5, "sum", 1, 2, 3, 4),
    Note("note", "detail"),
    Waiting("busy", 1.5, "summary"),
    UsageReport("m", Usage(1, 2, 3), "demo:demo", 0.25),
    ErrorReport("code", "message", "hint"),
    NestedEvent("c", NestedEvent("d", UsageReport("m", Usage(), "x"))),
    RunResult("failed", "", Usage(5), None, 3, "limit"),
]


async def test_events_are_numbered_from_one_without_gaps(log: EventLog) -> None:
    log.append("r", texts("a"))
    log.append("r", texts("b", "c"))
    await log.flush("r")
    page = await log.read("r")
    assert [event.number for event in page.events] == [1, 2, 3]
    assert [event.type for event in page.events] == ["text_delta"] * 3
    assert not page.gap


async def test_a_reader_gets_what_is_after_its_cursor(log: EventLog) -> None:
    log.append("r", texts("a", "b", "c"))
    await log.flush("r")
    assert [event.number for event in (await log.read("r", 1)).events] == [2, 3]
    assert [event.number for event in (await log.read("r", 1, limit=1)).events] == [2]
    assert (await log.read("r", 3)).events == []
    assert (await log.read("r", 99)).events == []


async def test_a_cursor_that_is_none_is_refused_alike_everywhere(log: EventLog) -> None:
    log.append("r", texts("a", "b"))
    await log.flush("r")
    assert [event.number for event in (await log.read("r", -5)).events] == [1, 2]
    assert (await log.read("r", 2**63 - 1)).events in ((), [])
    assert (await log.read("r", 0, 0)).events in ((), [])
    odd: Any
    for odd in (2**63, 10**30, "1", None, 1.5, True):
        with pytest.raises(HarnessError) as refused:
            await log.read("r", odd)
        assert refused.value.code == "invalid_request"
    for odd in (-1, 2**63, None):
        with pytest.raises(HarnessError):
            await log.read("r", 0, odd)


async def test_of_the_progress_of_an_ended_run_the_last_is_kept(log: EventLog) -> None:
    log.append("r", [ToolProgress("c", done) for done in (1, 2, 3)])
    log.append("r", [ToolProgress("other", 1), ToolResult("c", "count", "done"), END])
    await log.flush("r")
    assert len((await log.read("r")).events) == 6
    await log.close("r")
    page = await log.read("r")
    assert [event.number for event in page.events] == [3, 4, 5, 6]
    assert page.events[0].body == ToolProgress("c", 3)
    # A reader in the middle of them gets the last, which says it all.
    assert (await log.read("r", 1)).events[0].body == ToolProgress("c", 3)


async def test_runs_do_not_mix(log: EventLog) -> None:
    log.append("r", texts("a"))
    log.append("s", texts("b"))
    await log.flush("s")
    (event,) = (await log.read("s")).events
    assert (event.number, event.body) == (1, TextDelta("b", "m"))
    assert (await log.read("unknown")).events == ()


async def test_waiting_ends_when_an_event_comes_also_for_a_run_that_has_not_begun(
    log: EventLog,
) -> None:
    waiting = asyncio.ensure_future(log.wait("r", 0))
    await asyncio.sleep(0)
    assert not waiting.done()
    log.append("r", texts("a"))
    await asyncio.wait_for(waiting, 20)
    await asyncio.wait_for(log.wait("r", 0), 20)


async def test_waiting_after_the_end_of_a_run_does_not_hang(log: EventLog) -> None:
    log.append("r", [END])
    await log.flush("r")
    await asyncio.wait_for(log.wait("r", 1), 20)


@pytest.mark.parametrize("written_first", [True, False])
async def test_a_run_that_has_ended_takes_nothing_more(log: EventLog, written_first: bool) -> None:
    log.append("r", [*texts("a"), END, *texts("late")])
    if written_first:
        await log.flush("r")
    log.append("r", texts("later"))
    log.append("r", [Note("last"), END])
    await log.flush("r")
    assert [event.body for event in (await log.read("r")).events] == [*texts("a"), END]
    await asyncio.wait_for(log.wait("r", 2), 20)
    await log.close("r")
    assert len((await log.read("r")).events) == 2


async def test_a_listener_sees_every_event_once_in_order(make_log: MakeLog) -> None:
    seen: list[tuple[str, int]] = []
    log = await make_log(lambda run, events: seen.extend((run, event.number) for event in events))
    log.append("r", texts("a", "b"))
    log.append("r", [])
    log.append("r", [END])
    await log.flush("r")
    assert seen == [("r", 1), ("r", 2), ("r", 3)]


async def test_an_ended_run_has_its_deltas_joined_under_the_last_number(log: EventLog) -> None:
    log.append("r", [*texts("a", "b"), ToolResult("c", "t", "x"), *texts("c", "d"), END])
    await log.close("r")
    await log.close("r")
    page = await log.read("r")
    assert [(event.number, event.type) for event in page.events] == [
        (2, "text_delta"),
        (3, "tool_result"),
        (5, "text_delta"),
        (6, "run_result"),
    ]
    assert page.events[0].body == TextDelta("ab", "m")
    assert [event.number for event in (await log.read("r", 2)).events] == [3, 5, 6]
    assert [event.number for event in (await log.read("r", 5)).events] == [6]


async def test_a_folded_run_keeps_what_a_record_needs_and_tells_of_the_gap(log: EventLog) -> None:
    pieces = [ToolCallDelta("c", "t", piece, "m") for piece in ("{", "}")]
    started: list[EventBody] = [
        ToolCallStart("c", "t", {}, "m", "allow"),
        ToolResult("c", "t", "x"),
    ]
    broken: list[EventBody] = [
        ToolCallDelta("d", "t", "{", "m"),
        ToolResult("d", "t", "no", is_error=True),
    ]
    log.append("r", [*texts("a", "b"), *pieces, *started, *broken, *texts("c"), END])
    await log.fold("r")
    await log.fold("r")
    early = await log.read("r", 0)
    assert early.gap
    assert [event.number for event in early.events] == [2, 5, 6, 7, 8, 9, 10]
    assert early.events[0].body == TextDelta("ab", "m")
    rest = await log.read("r", 1)
    assert rest.events[0].body == TextDelta("b", "m")
    late = await log.read("r", 4)
    assert not late.gap
    assert [event.number for event in late.events] == [5, 6, 7, 8, 9, 10]


async def test_the_deltas_of_a_sub_agent_are_joined_and_told_once_as_any_other(
    log: EventLog,
) -> None:
    def inside(*bodies: EventBody) -> list[EventBody]:
        return [NestedEvent("c", NestedEvent("d", body)) for body in bodies]

    log.append("r", inside(*texts("a", "b"), *(ToolCallDelta("e", "t", x, "m") for x in "{}")))
    log.append("r", [NestedEvent("other", TextDelta("c", "m"))])
    log.append("r", inside(ToolCallStart("e", "t", {}, "m")))
    log.append("r", [END])
    await log.flush("r")
    await log.close("r")
    joined = (await log.read("r")).events
    assert [event.number for event in joined] == [2, 4, 5, 6, 7]
    assert [event.body for event in joined[:2]] == inside(
        TextDelta("ab", "m"), ToolCallDelta("e", "t", "{}", "m")
    )
    (rest,) = [event for event in (await log.read("r", 1)).events if event.number == 2]
    assert rest.body == inside(TextDelta("b", "m"))[0]
    await log.fold("r")
    assert [event.number for event in (await log.read("r")).events] == [2, 5, 6, 7]


async def test_a_folded_run_of_text_alone_lacks_nothing(log: EventLog) -> None:
    log.append("r", [*texts("a", "b"), END])
    await log.fold("r")
    page = await log.read("r", 0)
    assert not page.gap
    assert [event.number for event in page.events] == [2, 3]


async def test_a_run_that_goes_on_is_not_folded(log: EventLog) -> None:
    log.append("r", texts("a", "b"))
    await log.fold("r")
    page = await log.read("r")
    assert not page.gap
    assert len(page.events) == 2


async def test_a_run_that_goes_on_is_not_joined(log: EventLog) -> None:
    log.append("r", texts("a", "b"))
    await log.close("r")
    assert len((await log.read("r")).events) == 2


async def test_what_is_read_while_a_run_is_joined_is_whole(log: EventLog) -> None:
    log.append("r", [*texts(*("abcdefghij" * 500)), END])
    await log.flush("r")
    joining = asyncio.ensure_future(log.close("r"))
    seen, cursor = "", 0
    while cursor < 5_001:
        for event in (await log.read("r", cursor, limit=700)).events:
            cursor = event.number
            seen += event.body.text if isinstance(event.body, TextDelta) else ""
    assert seen == "abcdefghij" * 500
    await joining
    assert len((await log.read("r")).events) == 2


async def test_a_forgotten_run_is_as_if_it_had_never_been(log: EventLog) -> None:
    log.append("r", [END])
    await log.forget("r")
    await log.forget("r")
    assert (await log.read("r")).events == ()


async def test_every_kind_of_event_comes_back_equal(log: EventLog) -> None:
    await log.flush("r")
    log.append("r", EVERY_BODY)
    await log.flush("r")
    page = await log.read("r")
    assert [event.body for event in page.events] == EVERY_BODY
    assert {event.at for event in page.events} == {12.5}


async def test_a_log_that_was_closed_has_written_what_was_appended(
    any_place: MemoryPlace | SqlPlace, log: EventLog
) -> None:
    log.append("r", [*texts("a", "b"), END])
    await log.aclose()
    if isinstance(any_place, SqlPlace):
        log = await any_place.events()
    assert [event.number for event in (await log.read("r")).events] == [1, 2, 3]


async def test_waiting_ends_when_the_run_is_forgotten(log: EventLog) -> None:
    log.append("r", texts("a"))
    await log.flush("r")
    waiting = asyncio.ensure_future(log.wait("r", 1))
    await asyncio.sleep(0)
    await log.forget("r")
    await asyncio.wait_for(waiting, 20)


bodies = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(max_size=3), st.sampled_from("mn")),
        st.builds(ThinkingDelta, st.text(max_size=3), st.sampled_from("mn")),
        st.builds(
            ToolCallDelta, st.sampled_from("cd"), st.just("t"), st.text(max_size=3), st.just("m")
        ),
        st.builds(ToolResult, st.sampled_from("cd"), st.just("t"), st.text(max_size=3)),
    )
)


def replayed(events: list[Event]) -> list[tuple[str, str, str]]:
    """What a reader makes of events: neighbouring pieces of one stream put together."""
    seen: list[tuple[str, str, str]] = []
    for event in events:
        body = event.body
        owner = getattr(body, "call_id", "") or getattr(body, "message_id", "")
        piece = body.arguments if isinstance(body, ToolCallDelta) else getattr(body, "text", "")
        joins = body.type.endswith("_delta")
        if joins and seen and seen[-1][:2] == (body.type, owner):
            seen[-1] = (body.type, owner, seen[-1][2] + piece)
        else:
            seen.append((body.type, owner, piece))
    return seen


@given(bodies)
def test_joining_changes_neither_order_nor_text_nor_the_last_number(
    given_bodies: list[EventBody],
) -> None:
    events = [Event(number, 0.0, body) for number, body in enumerate(given_bodies, 1)]
    joined = join_deltas(events)
    assert replayed(joined) == replayed(events)
    numbers = [event.number for event in joined]
    assert numbers == sorted(set(numbers))
    assert numbers[-1:] == [event.number for event in events][-1:]
