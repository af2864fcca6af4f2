"""What a run puts out: in memory at once, with a durable store its end after the commit."""

from __future__ import annotations

import pytest

from web.chats.chat import Chat
from web.chats.parts.channel import Channel, Clock
from web.chats.records.records import ChatRecord
from web.chats.runs.run_output import RunOutput
from web.chats.transcript.transcript import Transcript
from web.harness.sessions.event_log import InMemoryEventLog
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.values.errors import StoreError
from web.harness.values.events import RunResult, TextDelta

pytestmark = pytest.mark.anyio

DONE = RunResult("completed", "Hello")


class Made:
    """The output of one run, and what came of it."""

    def __init__(self, *, hold: bool) -> None:
        channel = Channel("c", Clock("e"))
        self.chat = Chat(
            LOCAL_IDENTITY, ChatRecord("c", "demo:demo", 0, 0), channel, Transcript(channel)
        )
        self.events = InMemoryEventLog(lambda: 1.0)
        self.ended = 0
        self.output = RunOutput(self.chat, "r", self.events, hold=hold, ended=self._end)

    def _end(self) -> None:
        self.ended += 1

    async def types(self) -> list[str]:
        return [event.type for event in (await self.events.read("r")).events]

    async def result(self) -> RunResult:
        body = (await self.events.read("r")).events[-1].body
        assert isinstance(body, RunResult)
        return body


async def test_in_memory_a_result_is_out_at_once() -> None:
    made = Made(hold=False)
    made.output.emit([TextDelta("Hello", "m"), DONE])
    assert await made.types() == ["text_delta", "run_result"]
    assert made.ended == 1
    made.output.finish()
    assert await made.types() == ["text_delta", "run_result"]


async def test_a_result_that_is_held_is_out_when_the_session_is_kept() -> None:
    made = Made(hold=True)
    made.output.emit([TextDelta("Hello", "m"), DONE])
    assert await made.types() == ["text_delta"]
    assert made.output.is_held
    assert made.ended == 1
    assert made.chat.spending.turns == 1
    made.output.finish()
    made.output.finish()
    assert await made.types() == ["text_delta", "run_result"]
    assert not made.output.is_unfinished


async def test_a_result_that_could_not_be_kept_becomes_a_failure_in_words() -> None:
    made = Made(hold=True)
    made.output.emit([DONE])
    made.output.fail(StoreError("The disk is full.", code="store_full"))
    made.output.finish()
    assert await made.types() == ["error", "run_result"]
    assert await made.result() == RunResult("failed", "Hello", reason="store_full")
    assert made.output.is_unfinished


async def test_a_run_that_the_end_of_the_server_cuts_off_says_that_it_is_incomplete() -> None:
    made = Made(hold=True)
    made.output.emit([TextDelta("Hel", "m")])
    made.output.interrupt()
    made.output.finish()
    assert await made.types() == ["text_delta", "error", "run_result"]
    assert (await made.result()).reason == "interrupted"


async def test_in_memory_nobody_is_left_to_be_told_of_that() -> None:
    made = Made(hold=False)
    made.output.emit([TextDelta("Hel", "m")])
    made.output.interrupt()
    assert await made.types() == ["text_delta"]


async def test_an_unexpected_error_is_told_without_its_words() -> None:
    made = Made(hold=True)
    made.output.fail(ValueError("secret"))
    made.output.finish()
    assert (await made.result()).reason == "internal_error"
