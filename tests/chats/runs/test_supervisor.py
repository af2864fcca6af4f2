"""Whoever looks after a run of others goes on doing so, whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.chat_room import chat_room
from tests.support.scripted_provider import ScriptedProvider, says
from web.chats.chat import Chat, Turn
from web.chats.journal.journal import TurnBegun
from web.chats.parts.channel import Channel, Clock
from web.chats.records.records import ChatRecord
from web.chats.runs.abandoning import Abandoning
from web.chats.runs.durability import Durability
from web.chats.runs.interrupted_runs import InterruptedRuns
from web.chats.runs.supervisor import Supervisor
from web.chats.runs.turns import Turns
from web.chats.tasks import TaskOwner
from web.chats.transcript.transcript import Transcript
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.values.errors import ConfigurationError, StoreError
from web.harness.values.events import RunResult, TextDelta

pytestmark = pytest.mark.anyio


class Failing:
    """Where runs are written down: whoever asks for one is told what goes wrong, in turn."""

    def __init__(self, *errors: Exception) -> None:
        self._errors: Iterator[Exception] = iter(errors)
        self.asked = asyncio.Event()

    async def executions(self) -> Any:
        for error in self._errors:
            raise error
        self.asked.set()
        await asyncio.Event().wait()


class OneRun:
    """The turns of a server that knows one run, of another server."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.to_stop: set[str] = set()

    def find(self, run_id: str) -> Chat:
        return self._chat


async def test_a_run_is_looked_after_whatever_goes_wrong() -> None:
    turn = Turn("r", "hello", "demo:demo", "q")
    channel = Channel("c", Clock("e"))
    chat = Chat(
        LOCAL_IDENTITY, ChatRecord("c", "demo:demo", 1.0, 1.0), channel, Transcript(channel)
    )
    chat.elsewhere = turn
    chat.transcript.begin("r", turn.text, 1.0, turn.model, ())
    failing = Failing(
        ConfigurationError("The tools cannot be told."),
        StoreError("The database is away."),
        KeyError("r"),
        StoreError("The state of the run cannot be read.", code="store_corrupt"),
    )
    async with asyncio.timeout(10), TaskOwner() as tasks:
        Supervisor(
            cast(Durability, failing),
            cast(Turns, OneRun(chat)),
            cast(InterruptedRuns, None),
            cast(Abandoning, None),
            tasks,
            again_seconds=0.001,
        ).watch(chat, TurnBegun(turn, 1.0, ""))
        await failing.asked.wait()
    assert chat.transcript.halted == {"r": "differs"}


async def test_of_a_run_that_was_stopped_nothing_is_kept_once_it_has_ended() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        chat = await room.new_chat()
        room.turns.to_stop.add("r")
        room.turns.hear(chat, "r", TextDelta("Half", "r-1"))
        assert room.turns.to_stop == {"r"}
        room.turns.hear(chat, "r", RunResult("cancelled", ""))
        assert not room.turns.to_stop


async def test_runs_that_were_cut_off_are_looked_for_whatever_goes_wrong() -> None:
    failing = Failing(StoreError("The database is away."), KeyError("r"))
    async with asyncio.timeout(10), TaskOwner() as tasks:
        supervisor = Supervisor(
            cast(Durability, failing),
            cast(Turns, SimpleNamespace()),
            cast(InterruptedRuns, None),
            cast(Abandoning, None),
            tasks,
            survey_seconds=0.001,
        )

        async def load(identity: HarnessIdentity, chat_id: str) -> None:
            raise AssertionError("There is none.")

        tasks.create_task(supervisor.survey(lambda key: False, load))
        await failing.asked.wait()
