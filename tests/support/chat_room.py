"""Chats and turns with scripted models, as `web.app` builds them but without a server."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.folders import NO_FOLDER
from tests.support.scripted_provider import ScriptedProvider
from tests.support.skills import no_skills
from web.chats.chat import Chat, Turn
from web.chats.files.folders import ChatFolders
from web.chats.memories.memories import ChatMemories
from web.chats.parts.channel import Clock
from web.chats.parts.kinds import PartData
from web.chats.records.chat_limits import ChatLimits
from web.chats.records.records import InMemoryChatRecords
from web.chats.registry.chats import Chats
from web.chats.runs.equipment import Equipment, TurnLimits, joined
from web.chats.runs.turns import Turns
from web.chats.servers.servers import Servers
from web.chats.skills.skills import ChatSkills
from web.chats.tasks import TaskOwner
from web.harness.host import HarnessRuntime
from web.harness.mcp.spec import ServerSpec
from web.harness.resources import ResourcePool
from web.harness.sessions.event_log import InMemoryEventLog
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.tools.registry import ToolRegistry
from web.harness.values.config import AgentConfig, ModelName, Retry
from web.harness.values.events import Event, EventBody, RunResult

MODELS = (ModelName("demo", "demo"), ModelName("openai", "other"))


def no_memories(tasks: TaskOwner) -> ChatMemories:
    """What chats have where nothing outlives them."""
    return ChatMemories(tasks, None)


@dataclass
class ChatRoom:
    """`provider` answers every model; `time` is what the clock says, in seconds."""

    chats: Chats
    turns: Turns
    events: InMemoryEventLog
    sessions: InMemorySessionStore
    records: InMemoryChatRecords
    provider: ScriptedProvider
    models: list[str]
    tasks: TaskOwner
    resources: ResourcePool

    async def new_chat(self, **given: str) -> Chat:
        return await self.chats.create(LOCAL_IDENTITY, **given)

    async def say(self, chat: Chat, text: str = "hello", **more: Any) -> Turn:
        return await self.chats.send(chat, text, queue=True, **more)

    async def result(self, run_id: str) -> RunResult:
        """The result of a run, once the chat may be used for the next one."""
        body = await self.event(run_id, lambda body: isinstance(body, RunResult))
        assert isinstance(body, RunResult)
        task = self.turns._running.get(run_id)
        if task is not None:
            await asyncio.wait({task}, timeout=10)
        return body

    async def rest(self) -> None:
        """Returns when nothing is done in the background any more."""
        while self.tasks._tasks:
            await asyncio.wait(self.tasks._tasks.copy(), timeout=10)

    async def event(self, run_id: str, wanted: Callable[[EventBody], bool]) -> EventBody:
        """The first event of a run that is wanted, waiting for it."""
        cursor = 0
        async with asyncio.timeout(10):
            while True:
                await self.events.wait(run_id, cursor)
                page = await self.events.read(run_id, cursor)
                for event in page.events:
                    cursor = event.number
                    if wanted(event.body):
                        return event.body
                    if isinstance(event.body, RunResult):
                        raise AssertionError("The run ended without it.")

    async def all_events(self, run_id: str) -> list[Event]:
        return list((await self.events.read(run_id)).events)


@asynccontextmanager
async def chat_room(
    provider: ScriptedProvider,
    tools: ToolRegistry | None = None,
    *,
    max_chats: int = 100,
    max_running: int = 50,
    max_queued: int = 3,
    max_message_chars: int = 1_000,
    kept_runs: int = 3,
    undo_seconds: float = 30,
    host: Sequence[ServerSpec] = (),
    folder: Callable[[Chat], Path] | None = None,
    make_skills: Callable[[TaskOwner], ChatSkills] = no_skills,
    make_memories: Callable[[TaskOwner], ChatMemories] = no_memories,
    root: Path = NO_FOLDER,
    sessions: InMemorySessionStore | None = None,
) -> AsyncIterator[ChatRoom]:
    times, ids = itertools.count(1_000), itertools.count(1)
    events = InMemoryEventLog(
        lambda: float(next(times)),
        lambda run_id, new: turns.chat_of(run_id).transcript.fold(run_id, new),
    )
    sessions = sessions or InMemorySessionStore()
    records, resources = InMemoryChatRecords(), ResourcePool()
    models: list[str] = []

    def provide(model: ModelName) -> ScriptedProvider:
        models.append(str(model))
        return provider

    async with TaskOwner() as tasks:
        servers = Servers(
            tasks,
            os.environ,
            new_id=lambda: f"y{next(ids)}",
            host=host,
            providers=provide,
            folder=folder,
            resources=resources,
        )
        skills, memories = make_skills(tasks), make_memories(tasks)
        turns = Turns(
            tasks=tasks,
            runtime=HarnessRuntime(sessions, resources),
            events=events,
            equipment=Equipment(
                AgentConfig(retry=Retry(attempts=3, backoff_seconds=0.001)),
                provide,
                lambda chat: tools or ToolRegistry(),
                joined(servers.connected, skills.connected, memories.connected),
            ),
            limits=TurnLimits(max_running, max_queued, max_message_chars, kept_runs),
            now=lambda: float(next(times)),
            changed=lambda chat: chats.show(chat),
        )
        chats = Chats(
            tasks=tasks,
            turns=turns,
            sessions=sessions,
            records=records,
            clock=Clock("e"),
            models=MODELS,
            limits=ChatLimits(max_chats, max_message_chars, 80, undo_seconds),
            now=lambda: float(next(times)),
            new_id=lambda: f"x{next(ids)}",
            skills=skills,
            files=ChatFolders(root, tasks),
            servers=servers,
            memories=memories,
        )
        yield ChatRoom(chats, turns, events, sessions, records, provider, models, tasks, resources)


def log_of(chat: Chat, slot: str = "log") -> list[PartData]:
    """What a slot of the chat shows, in order."""
    return [part.data for part in chat.channel.slot(slot)]
