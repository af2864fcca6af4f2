"""Turns: a message is sent, a run answers it, and the next one in the queue follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from web.chats.chat import Chat, Turn
from web.chats.tasks import TaskOwner
from web.harness.agent.agent import Agent
from web.harness.agent.answer import Emit
from web.harness.agent.run import Prepare
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.event_log import EventLog
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Tool
from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound, SessionConflict
from web.harness.values.events import ErrorReport, EventBody, RunResult
from web.harness.values.messages import Message
from web.harness.values.model import Provider

log = logging.getLogger(__name__)

_UNFINISHED = ("failed", "cancelled")

_INTERNAL = HarnessError(
    "Something went wrong inside the server.",
    hint="Your message is kept. The server's log says more.",
    code="internal_error",
)

GRANTS = "granted_tools"
"""Where a session's state keeps the tools that a person allowed for the chat."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """`max_running` turns of all chats at a time; `max_queued` messages of one chat that wait."""

    max_running: int
    max_queued: int
    max_message_chars: int
    kept_runs: int


@dataclass(frozen=True, slots=True)
class Connected:
    """More tools, of which one whose name is taken is left out, and what a model is told of it."""

    tools: Sequence[Tool] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a turn works with, made by the application."""

    config: AgentConfig
    provider: Callable[[ModelName], Provider]
    """The provider of a model; raises ConfigurationError. It stays the application's."""
    tools: Callable[[Chat], ToolRegistry]
    connected: Callable[[Chat], Awaitable[Connected]] | None = None
    """What a chat is connected to, asked before each model call; it may have to be waited for."""


class Turns:
    """Starts, stops and queues the turns of all chats. `tasks` owns the runs."""

    def __init__(
        self,
        *,
        tasks: TaskOwner,
        runtime: HarnessRuntime,
        events: EventLog,
        equipment: Equipment,
        limits: TurnLimits,
        now: Callable[[], float],
        changed: Callable[[Chat], None],
    ) -> None:
        self._tasks = tasks
        self._runtime = runtime
        self._events = events
        self._equipment = equipment
        self._limits = limits
        self._now = now
        self._changed = changed
        self._running: dict[str, asyncio.Task[None]] = {}
        self._stopping: set[str] = set()
        self._chats: dict[str, Chat] = {}

    @property
    def running(self) -> int:
        """How many turns are under way."""
        return len(self._running)

    @property
    def max_message_chars(self) -> int:
        return self._limits.max_message_chars

    def chat_of(self, run_id: str) -> Chat:
        """The chat that a run belongs to. Raises NotFound."""
        chat = self._chats.get(run_id)
        if chat is None:
            raise NotFound("There is no such run.", hint="It may have been deleted with its chat.")
        return chat

    def check(self, text: str, *, attached: bool = False) -> None:
        """Raises LimitExceeded, or HarnessError for a message without a word or an attachment."""
        most = self._limits.max_message_chars
        if not text.strip() and not attached:
            raise HarnessError(
                "The message is empty.", hint="Write something, or attach a file.", code="empty"
            )
        if len(text) > most:
            raise LimitExceeded(
                f"The message has {len(text):,} characters; at most {most:,} are taken.",
                hint="Shorten it, or put it into a file and attach that. Nothing was sent.",
                code="too_long",
            )

    def send(self, chat: Chat, turn: Turn, *, queue: bool) -> Turn:
        """Starts a turn, or queues it behind the one under way; returns the turn that stands.

        The same request id again is the same turn. Raises SessionConflict while the chat is busy
        and `queue` is not asked for, LimitExceeded, or HarnessError (`request_id_reused`) for a
        known request id with another text.
        """
        known = chat.requests.get(turn.request_id)
        if known is not None:
            if known.text != turn.text:
                raise HarnessError(
                    "This request id was used for another message.",
                    hint="Use a new request id for each message.",
                    code="request_id_reused",
                )
            return known
        self.check(turn.text, attached=bool(turn.attachments))
        if chat.turn is None:
            self._start(chat, turn)
        elif not queue:
            raise SessionConflict(
                "This chat is answering another message.",
                hint='Try again when its answer has ended, or ask for it to wait ("queue": true).',
            )
        elif len(chat.queue) >= self._limits.max_queued:
            raise LimitExceeded(
                f"{len(chat.queue)} messages wait in this chat already, which is the limit.",
                hint="Wait for an answer, or take one back.",
            )
        else:
            chat.enqueue(turn)
            self._chats[turn.run_id] = chat
        chat.remember(turn)
        self._changed(chat)
        return turn

    def stop(self, chat: Chat, run_id: str) -> None:
        """Stops a run; a waiting one is taken back. One that has ended is fine."""
        if chat.turn is not None and chat.turn.run_id == run_id:
            self._stopping.add(run_id)
            if chat.agent is not None:
                chat.agent.cancel()
        elif chat.dequeue(run_id) is not None:
            chat.runs.append(run_id)
            self._events.append(run_id, [RunResult("cancelled", "", reason="taken_back")])

    def retry(self, chat: Chat, run_id: str, turn: Turn) -> Turn:
        """Runs the last turn, which failed or was stopped, once more in its own place."""
        if chat.turn is not None:
            raise SessionConflict("This chat is answering another message.")
        failed = chat.failed
        if failed is None or failed.run_id != run_id:
            raise NotFound("Only the last message of a chat can be tried again.")
        self._start(chat, turn, instead_of=failed.run_id)
        chat.remember(turn)
        self._changed(chat)
        return turn

    async def close(self, chat: Chat) -> None:
        """Takes back what waits, stops whatever a chat does and waits until it has ended."""
        while chat.queue:
            self.stop(chat, chat.queue[0].run_id)
        await self.halt(chat)

    async def halt(self, chat: Chat) -> None:
        """Stops the run under way and waits until it has ended. What waits goes on waiting while
        the chat is deleted, until `resume`."""
        if chat.turn is not None:
            task = self._running.get(chat.turn.run_id)
            self.stop(chat, chat.turn.run_id)
            if task is not None:
                await asyncio.wait({task})

    def resume(self, chat: Chat) -> None:
        """Sends the oldest message that waits in a chat that was brought back."""
        if chat.turn is None and chat.queue:
            self._start(chat, chat.queue[0])
            chat.dequeue()

    async def forget(self, chat: Chat) -> None:
        """Drops the events of a chat's runs."""
        for run_id in chat.runs:
            self._chats.pop(run_id, None)
            await self._events.forget(run_id)

    def _start(self, chat: Chat, turn: Turn, instead_of: str | None = None) -> None:
        if len(self._running) >= self._limits.max_running:
            raise LimitExceeded(
                f"{len(self._running)} answers are being written on this server, its limit.",
                hint="Try again in a moment. What you typed is kept.",
            )
        if instead_of is not None:
            chat.transcript.take_back(instead_of)
        chat.turn, chat.failed = turn, None
        chat.runs.append(turn.run_id)
        self._chats[turn.run_id] = chat
        chat.transcript.begin(turn.run_id, turn.text, self._now(), turn.model, turn.attachments)
        self._running[turn.run_id] = self._tasks.create_task(self._run(chat, turn, instead_of))

    async def _run(self, chat: Chat, turn: Turn, instead_of: str | None) -> None:
        result: RunResult | None = None

        def emit(bodies: list[EventBody]) -> None:
            nonlocal result
            self._events.append(turn.run_id, bodies)
            if isinstance(bodies[-1], RunResult):
                result = bodies[-1]

        async def drive(services: ExecutionServices) -> None:
            if instead_of is not None:
                services.history = _without(services.history, instead_of)
            await self._drive(chat, turn, services, emit)

        try:
            await self._runtime.run(chat.identity, chat.id, drive)
        except HarnessError as error:
            _report(error, result, emit)
        except Exception:
            log.exception("A turn broke in an unexpected way")
            _report(_INTERNAL, result, emit)
        finally:
            del self._running[turn.run_id]
            self._stopping.discard(turn.run_id)
            chat.turn = None
            chat.failed = turn if result is None or result.status in _UNFINISHED else None
        await self._go_on(chat, turn)

    async def _drive(self, chat: Chat, turn: Turn, services: ExecutionServices, emit: Emit) -> None:
        """Runs one turn on a session: the agent is made from it, and what it leaves goes back."""
        services.replayable = False
        tools = self._equipment.tools(chat)
        if turn.run_id in self._stopping:
            emit([RunResult("cancelled", "", reason="stopped")])
            return
        model = ModelName.parse(turn.model)
        if chat.permissions is None:
            chat.permissions = Permissions(grants=services.state.get(GRANTS, ()))
            chat.show_grants()
        standard = self._equipment.config
        prompt = chat.record.system_prompt or standard.system_prompt
        async with Agent(
            replace(standard, model=model, system_prompt=prompt),
            provider=self._equipment.provider(model),
            tools=tools,
            permissions=chat.permissions,
            messages=services.history,
            session_id=chat.id,
        ) as chat.agent:
            try:
                result = await chat.agent.perform(
                    turn.text,
                    run_id=turn.run_id,
                    emit=emit,
                    attachments=turn.attachments,
                    prepare=self._connecting(chat, tools),
                    keep_question=chat.asked.keep,
                )
                services.replayable = result.status not in _UNFINISHED
            finally:
                services.history = chat.history = chat.agent.memory.get_messages()
                services.state[GRANTS] = chat.grants
                chat.agent = None

    def _connecting(self, chat: Chat, tools: ToolRegistry) -> Prepare | None:
        """Brings `tools` up to what the chat is connected to at that moment."""
        connected = self._equipment.connected
        if connected is None:
            return None
        added: list[str] = []

        async def prepare() -> str:
            found = await connected(chat)
            while added:
                tools.remove(added.pop())
            for tool in found.tools:
                if tool.name not in tools:
                    tools.add(tool)
                    added.append(tool.name)
            return found.instructions

        return prepare

    async def _go_on(self, chat: Chat, turn: Turn) -> None:
        """After a run: the next message in the queue is sent, and events take less room."""
        old = chat.runs[: -self._limits.kept_runs][-1:]
        following = None if chat.is_deleted else chat.dequeue()
        if following is not None:
            self._start(chat, following)
        self._changed(chat)
        await self._events.close(turn.run_id)
        for run_id in old:
            await self._events.fold(run_id)


def _report(error: HarnessError, result: RunResult | None, emit: Emit) -> None:
    """Ends a run with an error, unless it has ended before."""
    if result is not None:
        log.error("A run had ended when this went wrong: %s", error.message)
        return
    report = ErrorReport(error.code, error.message, error.hint)
    emit([report, RunResult("failed", "", reason=error.code)])


def _without(history: list[Message], run_id: str) -> list[Message]:
    """A conversation without the messages of one run."""
    return [message for message in history if not message.id.startswith(f"{run_id}-")]
