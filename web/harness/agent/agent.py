"""`Agent`: a conversation that can be run, in the memory of this process."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from web.harness.agent.answer import Emit
from web.harness.agent.assembling import Turn, assemble
from web.harness.agent.closing import Closing, in_turn
from web.harness.agent.extensions import Extension, Extensions
from web.harness.agent.given import Tools, check_asked, config_of, provider_of, tools_of
from web.harness.agent.inputs import Answerer, decline_all
from web.harness.agent.limits_note import LimitsNote
from web.harness.agent.model_call import Prepare
from web.harness.agent.nested import Nested
from web.harness.agent.options import AgentOptions
from web.harness.agent.own_provider import OwnProvider
from web.harness.agent.pausing import unwritten
from web.harness.agent.questions import Answer, Approver, refuse_all
from web.harness.agent.run import Permit, Run, at_once
from web.harness.agent.streaming import stream_turn
from web.harness.agent.totals import Totals
from web.harness.memory.conversation import Conversation
from web.harness.sessions.journal import Recorded, RunJournal
from web.harness.tools.hooks import Happening, HookEvent, Hooks
from web.harness.tools.permissions import Permissions
from web.harness.tools.previews import KeepQuestion
from web.harness.tools.resource import GetResource, no_resources
from web.harness.tools.tool import InputAnswer
from web.harness.values.config import AgentConfig
from web.harness.values.errors import AgentBusy, AgentClosed, DecisionRefused
from web.harness.values.events import (
    Decision,
    Event,
    InputAction,
    Resolution,
    RunResult,
)
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import AttachedBlock, JsonObject, Message
from web.harness.values.model import Provider
from web.harness.values.tokens import ToolsCounter
from web.harness.values.usage import Usage


class Agent:
    """One conversation with one active run at a time.

    Without a provider it makes the one its configuration names (the scripted demo model where it
    names none, which it then says) and closes it; a provider that is handed in stays its owner's.
    Use it as an async context manager, or call `aclose`. A call that needs a person's yes goes to
    `approver`; where there is none, `run` refuses it, and `run_stream` waits for `decide`. A tool
    that asks for input is answered by `answerer`, else by `run` with a decline and in `run_stream`
    by `answer_input`. `hooks` are told what happens; `extensions` are installed in their order and
    closed with the agent. `metadata` is the application's own: JSON that snapshots hold.
    """

    def __init__(
        self,
        config: AgentConfig | None = None,
        *,
        provider: Provider | None = None,
        tools: Tools | None = None,
        permissions: Permissions | None = None,
        messages: Iterable[Message] = (),
        approver: Approver | None = None,
        answerer: Answerer | None = None,
        session_id: str = "",
        state: dict[str, Any] | None = None,
        resource: GetResource = no_resources,
        extensions: Iterable[Extension] = (),
        metadata: Mapping[str, Any] | None = None,
        learned_limits: LearnedLimits | None = None,
    ) -> None:
        self.config = config_of(config)
        self.tools = tools_of(tools)
        self.permissions = permissions if permissions is not None else Permissions()
        self.memory = Conversation(messages)
        self.hooks = Hooks()
        self.totals = Totals()
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.learned_limits = learned_limits if learned_limits is not None else LearnedLimits()
        self.session_id = session_id
        self.created_at = time.time()
        """Seconds since the epoch; of a session that was loaded, when it began."""
        self.state: dict[str, Any] = state if state is not None else {}
        """The application's own, handed to its tools; in no snapshot."""
        self.resource = resource
        """What lends live things to its tools, such as `ExecutionServices.resource`."""
        self._providers = OwnProvider(provider_of(provider))
        self._tools_counter = ToolsCounter()
        self.approver = approver
        self.answerer = answerer
        self._active: Run | None = None
        self._busy = False
        self._is_written = self._pause_early = self._stop_early = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._closing = Closing()
        self._limits_note = LimitsNote(self.memory)
        self.extensions = Extensions(self, extensions)

    @property
    def usage(self) -> Usage:
        """Tokens of all turns so far, sub-agents counted."""
        return self.totals.usage

    @property
    def cost(self) -> float | None:
        """Dollars of all turns so far, sub-agents counted; None as long as no price is known."""
        return self.totals.cost

    @property
    def is_running(self) -> bool:
        return self._busy

    @property
    def can_be_saved(self) -> bool:
        """Whether no run is under way, or one that has its result and only tells hooks of it."""
        return not self._busy or (self._active is not None and self._active.has_ended)

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def run_id(self) -> str | None:
        """Of the run under way, None without one."""
        return self._active.run_id if self._active is not None else None

    async def run(self, message: str, *, attachments: Sequence[AttachedBlock] = ()) -> RunResult:
        """One turn, from a message to its result. Raises AgentBusy while another is under way.

        A model that fails is no exception: the result's status says so.
        """
        return await self.perform(
            message,
            run_id=secrets.token_hex(8),
            attachments=attachments,
            emit=lambda bodies: None,
            approver=self.approver or refuse_all,
            answerer=self.answerer or decline_all,
        )

    @asynccontextmanager
    async def run_stream(
        self, message: str, *, attachments: Sequence[AttachedBlock] = ()
    ) -> AsyncIterator[AsyncGenerator[Event, None]]:
        """The events of one turn, numbered from 1. Leaving the block early stops the run.

        Raises AgentBusy while another is under way.
        """
        check_asked(message, attachments)
        self._begin()
        turn = stream_turn(
            lambda emit: self._turn(
                Turn(
                    message,
                    secrets.token_hex(8),
                    emit,
                    attachments,
                    self.approver,
                    self.answerer,
                )
            ),
            self._end,
        )
        async with turn as events:
            yield events

    async def perform(
        self,
        message: str,
        *,
        run_id: str,
        emit: Emit,
        attachments: Sequence[AttachedBlock] = (),
        approver: Approver | None = None,
        answerer: Answerer | None = None,
        prepare: Prepare | None = None,
        keep_question: KeepQuestion | None = None,
        inside: Nested | None = None,
        journal: RunJournal | None = None,
        recorded: Recorded | None = None,
        permit: Permit = at_once,
    ) -> RunResult:
        """One turn whose events go to `emit` in batches as they happen, for those who log them.

        The model reads `attachments` before the message. Questions go to `approver`, without one
        they wait for `decide`; what tools ask for goes to `answerer`, without one it waits for
        `answer_input`. `prepare` is awaited before each model call; a call of a tool that it took
        away is answered with an error. `keep_question` gets each question with its whole preview,
        of which the event has the beginning. `inside` is the call of another agent that runs this
        one.

        With a `journal` each step is written down; then cancelling this leaves the run as it is,
        to be resumed, while `cancel` ends it. With `recorded` the run goes on from there, in the
        conversation from before it, and message and attachments are those that were written. From
        the first await on all that was asked can be answered. Raises RunPaused, LeaseLost and
        StoreError; the agent then is as it was before the turn. `permit` says when each action is
        done; see `Permit` and `wake`.
        """
        check_asked(message, attachments)
        self._begin(is_written=journal is not None)
        try:
            return await self._turn(
                Turn(
                    *(message, run_id, emit, attachments, approver, answerer, prepare),
                    *(keep_question, inside, journal, recorded, permit),
                )
            )
        finally:
            self._end()

    def decide(
        self,
        key: str,
        decision: Decision,
        *,
        arguments: JsonObject | None = None,
        reason: str = "",
    ) -> None:
        """Answers an `ApprovalRequired` by its key, also one of a sub-agent.

        Raises DecisionRefused if it was answered already, is not open any more, or the edited
        arguments do not fit the tool (the question then stays open).
        """
        if self._active is None:
            raise DecisionRefused("No run is under way.", hint="Nothing was changed.")
        self._active.decide(key, Answer(decision, arguments, reason))

    def answer_input(
        self, key: str, action: InputAction, content: JsonObject | None = None
    ) -> None:
        """Answers an `InputRequired` by its key; `content` are the fields of an accepted form.

        Raises DecisionRefused if it was answered already or is not open any more, and its subclass
        `FormRefused` if the content does not fit the form (which then stays open).
        """
        if self._active is None:
            raise DecisionRefused("No run is under way.", hint="Nothing was changed.")
        self._active.answer_input(key, InputAnswer(action, content))

    def resolve(self, key: str, how: Resolution, text: str = "") -> None:
        """Answers a `RecoveryRequired` by its key; `text` is the result of a call that ran.

        Raises DecisionRefused if it was answered already or is not open any more.
        """
        if self._active is None:
            raise DecisionRefused("No run is under way.", hint="Nothing was changed.")
        self._active.resolve(key, how, text)

    def pause(self) -> None:
        """Has the active run rest: `perform` raises RunPaused when the tools under way have ended.

        A model call is dropped, and made again later. Without a run, nothing happens. Raises
        RuntimeError for a run without a journal.
        """
        if self._active is not None:
            self._active.pause()
        elif self._busy and not self._is_written:
            raise unwritten()
        elif self._busy:
            self._pause_early = True

    def cancel(self) -> None:
        """Stops the active run, its model call and its tools. Without one, nothing happens."""
        if self._active is not None:
            self._active.cancel()
        elif self._busy:
            self._stop_early = True

    def wake(self) -> None:
        """Has the active run ask its `permit` again. Without one, nothing happens."""
        if self._active is not None:
            self._active.wake()

    async def save_session(
        self, *, storage_dir: str | os.PathLike[str], session_id: str | None = None
    ) -> str:
        """Writes a snapshot of the conversation and returns its id; see `agent/sessions.py`."""
        from web.harness.agent.sessions import save_session

        self._check_open()
        return await save_session(self, Path(storage_dir), session_id)

    @classmethod
    async def load_session(
        cls,
        session_id: str,
        *,
        storage_dir: str | os.PathLike[str],
        config: AgentConfig | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent:
        """An agent that goes on where a snapshot was saved; see `agent/sessions.py`.

        `options` are those of `Agent`: tools, handlers and connections are in no snapshot.
        """
        from web.harness.agent.sessions import load_session

        return await load_session(session_id, Path(storage_dir), config, options)

    async def aclose(self) -> None:
        """Stops a run under way, then closes what the agent made and its extensions, last first.

        Closing twice is fine; each returns when all is closed. What was handed in stays open.
        """
        first, self._closed = not self._closed, True
        if self._busy:
            self.cancel()
            await self._idle.wait()
        if first:
            self.hooks.fire(Happening(HookEvent.AGENT_CLOSED))
        if self._closing.is_inside() or (self._closing.is_under_way and self.hooks.is_inside()):
            return
        async with self._closing:
            await in_turn(self.hooks.aclose, self.extensions.aclose, self._providers.aclose)

    async def __aenter__(self) -> Agent:
        self._check_open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise AgentClosed("This agent was closed.", hint="Make a new one.")

    def _begin(self, *, is_written: bool = False) -> None:
        self._check_open()
        if self._busy:
            raise AgentBusy("This agent is running already.", hint="One run at a time.")
        self._busy, self._is_written, self.memory.in_use = True, is_written, True
        self._pause_early = self._stop_early = False
        self._idle.clear()

    def _end(self) -> None:
        self._busy, self._active, self.memory.in_use = False, None, False
        self._idle.set()

    async def _turn(self, turn: Turn) -> RunResult:
        """One turn, after `_begin` and before `_end`."""
        async with self._undone(turn):
            result = await self._assembled(turn).execute()
            await self.hooks.settle()
        return result

    def _assembled(self, turn: Turn) -> Run:
        provider = self._providers.get(self.config.model)
        told = [self._providers.demo_note(self.config.model)]
        run = self._active = assemble(self, turn, provider, self._tools_counter)
        told += [self._limits_note.of(self.config)] if turn.inside is None else []
        run.tell(tuple(filter(None, told)))
        if self._stop_early:
            run.cancel()
        elif self._pause_early:
            run.pause()
        return run

    @asynccontextmanager
    async def _undone(self, turn: Turn) -> AsyncIterator[None]:
        """Takes back what a run left that goes on elsewhere, where all of it comes from its
        journal."""
        before, usage, cost = self.memory.get_messages(), self.usage, self.cost
        try:
            yield
        except BaseException:
            if turn.journal is not None:
                self.memory.replace(before)
                self.totals.restore(usage, cost)
            raise
