"""What a run that was cut off says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.stores import SqlPlace, on
from web.chats.chat import Chat, Turn
from web.chats.journal.journal import TurnBegun
from web.chats.parts.channel import Channel, Clock
from web.chats.records.records import ChatRecord
from web.chats.runs.interrupted_runs import InterruptedRuns
from web.chats.transcript.transcript import Transcript
from web.harness.sessions.event_log import InMemoryEventLog
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.database import Database, Work
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.events import (
    ApprovalRequired,
    ErrorReport,
    EventBody,
    RunResult,
    TextDelta,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import Message, TextBlock

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
    told = await InterruptedRuns(events, InMemorySessionStore()).interrupted("r")
    error, result = (event.body for event in told)
    assert isinstance(error, ErrorReport)
    assert words in error.message
    assert isinstance(result, RunResult)
    assert result.reason == error.code == "interrupted"


BEGUN = TurnBegun(Turn("r2", "Tell me", "demo:demo", "q2"), 1.0, instead_of="r1")


@dataclass
class Cut:
    """A chat whose second run, instead of the first, was cut off."""

    events: InMemoryEventLog
    sessions: InMemorySessionStore
    interrupted_runs: InterruptedRuns
    chat: Chat

    async def settled(self) -> SessionSnapshot:
        async with await self.sessions.acquire(self.chat.identity, self.chat.id) as lease:
            return await lease.read()


@pytest.fixture
async def cut() -> Cut:
    events, sessions = InMemoryEventLog(lambda: 1.0), InMemorySessionStore()
    channel = Channel("c", Clock("e"))
    record = ChatRecord("c", "demo:demo", 1.0, 1.0)
    chat = Chat(LOCAL_IDENTITY, record, channel, Transcript(channel))
    async with await sessions.acquire(chat.identity, chat.id) as lease:
        history = (
            Message("r0-0", "user", (TextBlock("Hello"),)),
            Message("r1-0", "user", (TextBlock("Tell me"),), "r0-0"),
        )
        await lease.commit(SessionSnapshot(history, {}, {"a": 1}))
    return Cut(events, sessions, InterruptedRuns(events, sessions), chat)


async def test_what_was_written_of_a_run_that_was_cut_off_is_in_the_conversation(cut: Cut) -> None:
    cut.events.append("r2", [TextDelta("Half", "r2-1")])
    assert await cut.interrupted_runs.end(cut.chat, BEGUN)
    left = await cut.settled()
    assert [(each.id, each.text, each.parent_id) for each in left.history] == [
        ("r0-0", "Hello", None),
        ("r2-0", "Tell me", "r0-0"),
        ("r2-1", "Half", "r2-0"),
    ]
    assert (left.replayable, left.state) == (False, {"a": 1})
    assert cut.chat.history == list(left.history)
    assert (await cut.events.read("r2")).events[-1].type == "run_result"
    assert await cut.interrupted_runs.end(cut.chat, BEGUN)
    assert await cut.settled() == left


async def test_an_end_that_was_cut_off_itself_adds_nothing_twice(cut: Cut) -> None:
    """Killed after the conversation was kept and before the end was told."""
    cut.events.append("r2", [TextDelta("Half", "r2-1")])
    await cut.interrupted_runs.end(cut.chat, BEGUN)
    left = await cut.settled()
    await cut.events.forget("r2")
    cut.events.append("r2", [TextDelta("Half", "r2-1")])
    assert not await cut.interrupted_runs.end(cut.chat, BEGUN)
    assert await cut.interrupted_runs.end(cut.chat, BEGUN, late=True)
    assert await cut.settled() == left
    result = (await cut.events.read("r2")).events[-1].body
    assert isinstance(result, RunResult)
    assert result.reason == "interrupted"


async def test_a_run_whose_lease_somebody_has_is_left_alone(cut: Cut) -> None:
    cut.events.append("r2", [TextDelta("Half", "r2-1")])
    async with await cut.sessions.acquire(cut.chat.identity, cut.chat.id):
        assert not await cut.interrupted_runs.end(cut.chat, BEGUN)
    assert len((await cut.settled()).history) == 2
    assert len((await cut.events.read("r2")).events) == 1


class Counting:
    """A database that counts the transactions that write."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, work: Work[Any]) -> Any:
        self.writes += 1
        return await self._inner.write(work)


@on("sqlite")
async def test_whether_a_chat_is_free_is_told_without_writing_anything(place: SqlPlace) -> None:
    counting = Counting(await place.open())
    interrupted_runs = InterruptedRuns(InMemoryEventLog(lambda: 1.0), SqlSessionStore(counting))
    other = await place.sessions()
    assert await interrupted_runs.is_free_session(LOCAL_IDENTITY, "c")
    async with await other.acquire(LOCAL_IDENTITY, "c"):
        assert not await interrupted_runs.is_free_session(LOCAL_IDENTITY, "c")
    assert await interrupted_runs.is_free_session(LOCAL_IDENTITY, "c")
    assert counting.writes == 0
    assert await interrupted_runs.is_free_session(LOCAL_IDENTITY, "c", wait=1)
    assert counting.writes == 2
