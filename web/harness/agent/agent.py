"""`Agent`: a conversation that can be run, in the memory of this process."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from web.harness.agent.answer import Emit
from web.harness.agent.calls import Calls
from web.harness.agent.inputs import Answerer
from web.harness.agent.questions import Answer, Approver
from web.harness.agent.run import Prepare, Run
from web.harness.memory.conversation import Conversation
from web.harness.providers import make_provider
from web.harness.tools.permissions import Permissions
from web.harness.tools.previews import KeepQuestion
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import InputAnswer, ToolContext
from web.harness.values.config import AgentConfig
from web.harness.values.errors import AgentBusy, AgentClosed, DecisionRefused
from web.harness.values.events import (
    ApprovalRequired,
    Decision,
    Event,
    EventBody,
    InputAction,
    InputRequired,
    RunResult,
)
from web.harness.values.messages import AttachedBlock, JsonObject, Message
from web.harness.values.model import Provider


class Agent:
    """One conversation with one active run at a time.

    Without a provider it makes the one its configuration names (the scripted demo model where it
    names none) and closes it; a provider that is handed in stays its owner's. Use it as an async
    context manager, or call `aclose`. A call that needs a person's yes goes to `approver`; where
    there is none, `run` refuses it, and `run_stream` waits for `decide`. A tool that asks for input
    is answered by `answerer`, else by `run` with a decline and in `run_stream` by `answer_input`.
    """

    def __init__(
        self,
        config: AgentConfig | None = None,
        *,
        provider: Provider | None = None,
        tools: ToolRegistry | None = None,
        permissions: Permissions | None = None,
        messages: Iterable[Message] = (),
        approver: Approver | None = None,
        answerer: Answerer | None = None,
        session_id: str = "",
        state: dict[str, Any] | None = None,
    ) -> None:
        self.config = config or AgentConfig()
        self.tools = tools if tools is not None else ToolRegistry()
        self.permissions = permissions if permissions is not None else Permissions()
        self.memory = Conversation(messages)
        self._provider = provider
        self._owned: Provider | None = None
        self._approver = approver
        self._answerer = answerer
        self._session_id = session_id
        self._tool_state = state if state is not None else {}
        self._active: Run | None = None
        self._closed = False

    async def run(self, message: str, *, attachments: Sequence[AttachedBlock] = ()) -> RunResult:
        """One turn, from a message to its result. Raises AgentBusy while another is under way.

        A model that fails is no exception: the result's status says so.
        """
        return await self.perform(
            message,
            run_id=secrets.token_hex(8),
            attachments=attachments,
            emit=lambda bodies: None,
            approver=self._approver or refuse_all,
            answerer=self._answerer or decline_all,
        )

    @asynccontextmanager
    async def run_stream(
        self, message: str, *, attachments: Sequence[AttachedBlock] = ()
    ) -> AsyncIterator[AsyncGenerator[Event, None]]:
        """The events of one turn, numbered from 1. Leaving the block early stops the run."""
        queue: asyncio.Queue[EventBody | None] = asyncio.Queue()

        def emit(bodies: list[EventBody]) -> None:
            for body in bodies:
                queue.put_nowait(body)

        turn = asyncio.ensure_future(
            self.perform(
                message,
                run_id=secrets.token_hex(8),
                attachments=attachments,
                emit=emit,
                approver=self._approver,
                answerer=self._answerer,
            )
        )
        turn.add_done_callback(lambda _: queue.put_nowait(None))
        events = _numbered(queue, turn)
        try:
            yield events
        finally:
            await events.aclose()
            turn.cancel()
            await asyncio.wait({turn})

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
    ) -> RunResult:
        """One turn whose events go to `emit` in batches as they happen, for those who log them.

        The model reads `attachments` before the message. Questions go to `approver`, without one
        they wait for `decide`; what tools ask for goes to `answerer`, without one it waits for
        `answer_input`. `prepare` is awaited before each model call; a call of a tool that it took
        away is answered with an error. `keep_question` gets each question with its whole preview,
        of which the event has the beginning.
        """
        if self._closed:
            raise AgentClosed("This agent was closed.")
        if self._active is not None:
            raise AgentBusy("This agent is running already.", hint="One run at a time.")
        context = ToolContext("", run_id, self._session_id, self._tool_state)
        calls = Calls(
            config=self.config,
            tools=self.tools,
            permissions=self.permissions,
            context=context,
            emit=emit,
            approver=approver,
            answerer=answerer,
            keep_question=keep_question,
        )
        self._active = Run(
            run_id,
            message,
            attachments=attachments,
            config=self.config,
            provider=self._ready_provider(),
            tools=self.tools,
            permissions=self.permissions,
            calls=calls,
            conversation=self.memory,
            emit=emit,
            prepare=prepare,
        )
        try:
            return await self._active.execute()
        finally:
            self._active = None

    def decide(
        self,
        key: str,
        decision: Decision,
        *,
        arguments: JsonObject | None = None,
        reason: str = "",
    ) -> None:
        """Answers an `ApprovalRequired` by its key.

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

    def cancel(self) -> None:
        """Stops the active run, its model call and its tools. Without one, nothing happens."""
        if self._active is not None:
            self._active.cancel()

    async def aclose(self) -> None:
        """Closes what the agent made. Closing twice is fine; a run must have ended before."""
        self._closed = True
        owned, self._owned = self._owned, None
        if owned is not None:
            await owned.aclose()

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _ready_provider(self) -> Provider:
        if self._provider is not None:
            return self._provider
        if self._owned is None:
            self._owned = make_provider(self.config.model.provider)
        return self._owned


async def refuse_all(question: ApprovalRequired) -> Answer:
    """The approver of those who have nobody to ask."""
    return Answer("deny", reason="There is nobody to ask.")


async def decline_all(required: InputRequired) -> InputAnswer:
    """The answerer of those who have nobody to ask."""
    return InputAnswer("decline")


async def _numbered(
    queue: asyncio.Queue[EventBody | None], turn: asyncio.Future[RunResult]
) -> AsyncGenerator[Event, None]:
    number = 0
    while (body := await queue.get()) is not None:
        number += 1
        yield Event(number, time.time(), body)
    await turn
