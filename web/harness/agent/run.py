"""One run: what the loop decides is done here, in this process."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import assert_never

from web.harness.agent.answer import AnswerBuilder
from web.harness.agent.calls import Calls
from web.harness.agent.condenser import Condenser
from web.harness.agent.deadlines import within
from web.harness.agent.questions import Answer
from web.harness.agent.watch import Watch
from web.harness.loop.actions import (
    AwaitApproval,
    CallModel,
    CallsStarted,
    CancelRequested,
    CancelTools,
    CondenseContext,
    ContextFull,
    Decided,
    Finish,
    ModelAnswered,
    ModelFailed,
    Outcome,
    RunTools,
)
from web.harness.loop.condensing import TOO_LONG
from web.harness.loop.machine import apply, next_action
from web.harness.loop.state import MessageRef, RunLimits, RunState, start_run
from web.harness.memory.conversation import Conversation
from web.harness.tools.hooks import HookEvent
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import InputAnswer
from web.harness.values.config import AgentConfig
from web.harness.values.errors import (
    ContextTooLong,
    HarnessError,
    PicturesRefused,
    ProviderError,
)
from web.harness.values.events import (
    AttemptReset,
    ErrorReport,
    Note,
    RunResult,
    UsageReport,
    Waiting,
)
from web.harness.values.messages import AttachedBlock, ContentBlock, ImageBlock, Message, TextBlock
from web.harness.values.model import ModelDone, ModelRequest, Provider
from web.harness.values.pictures import leave_out
from web.harness.values.text import sayable

log = logging.getLogger(__name__)

_JITTER = random.SystemRandom()

Prepare = Callable[[], Awaitable[str]]
"""Awaited before each model call: brings the tools up to date, and returns what the model is told
after the system prompt; '' for nothing."""


WITHOUT_PICTURES = "The model did not take the pictures, so it answers without having seen them."


class Run:
    """Performs one run, from the person's message to its `RunResult`.

    `watch` gets each batch of events, in order. Messages are appended to `conversation` as they
    become complete.
    """

    def __init__(
        self,
        run_id: str,
        text: str,
        *,
        attachments: Sequence[AttachedBlock] = (),
        config: AgentConfig,
        provider: Provider,
        tools: ToolRegistry,
        permissions: Permissions,
        calls: Calls,
        conversation: Conversation,
        watch: Watch,
        condenser: Condenser,
        prepare: Prepare | None = None,
    ) -> None:
        self.run_id = run_id
        self._config = config
        self._provider = provider
        self._tools = tools
        self._permissions = permissions
        self._calls = calls
        self._conversation = conversation
        self._watch = watch
        self._emit = watch.emit
        self._prepare = prepare
        # Attachments may come without a word, and some APIs refuse an empty text.
        said = (TextBlock(text),) if text.strip() or not attachments else ()
        content: tuple[ContentBlock, ...] = (*attachments, *said)
        first = Message(f"{run_id}-0", "user", content, conversation.last_id)
        conversation.append(first)
        self._state = start_run(run_id, RunLimits.of(config), first.size)
        self._draft: Message | None = None
        self._error: HarnessError | None = None
        self._answer: AnswerBuilder | None = None
        self._condenser = condenser
        self._model_task: asyncio.Task[Outcome] | None = None
        self._stopping = False
        self._noted: set[str] = set()
        self._blind = False

    @property
    def has_ended(self) -> bool:
        """Whether it has its result, and writes nothing any more."""
        return self._state.ending is not None

    @property
    def state(self) -> RunState:
        return self._state

    async def execute(self) -> RunResult:
        """Runs to the end. Cancelling it stops model and tools and leaves a whole conversation."""
        self._watch.started(HookEvent.RUN_STARTED)
        try:
            async with asyncio.TaskGroup() as tasks:
                try:
                    return await self._drive(tasks)
                except asyncio.CancelledError:
                    self._abandon()
                    raise
        except BaseExceptionGroup as group:
            # Whoever runs an agent need not know that it has tasks.
            raise _first(group) from group

    def cancel(self) -> None:
        """Stops model and tools; `execute` then returns a cancelled result. Twice is fine."""
        self._stopping = True
        if self._model_task is not None:
            self._model_task.cancel()
        self._calls.wake()

    def decide(self, key: str, answer: Answer) -> None:
        """Answers a question. Raises DecisionRefused where it cannot be answered (so)."""
        self._calls.decide(key, answer)

    def answer_input(self, key: str, answer: InputAnswer) -> None:
        """Answers what a tool asks for. Raises DecisionRefused where it cannot be answered (so)."""
        self._calls.answer_input(key, answer)

    async def _drive(self, tasks: asyncio.TaskGroup) -> RunResult:
        while True:
            if self._stopping and not self._state.cancelling and self._state.ending is None:
                self._apply(CancelRequested())
            action = next_action(self._state)
            match action:
                case CallModel():
                    await self._call_model(action, tasks)
                case CondenseContext():
                    await self._condense(action, tasks)
                case RunTools(start, _):
                    if start:
                        self._apply(CallsStarted(start))
                        self._calls.start(start, self._state, tasks)
                    await self._next_outcome()
                case AwaitApproval():
                    await self._next_outcome()
                case CancelTools(call_ids):
                    self._calls.cancel(call_ids)
                    await self._next_outcome()
                case Finish():
                    return self._finish(action)
                case _:
                    assert_never(action)

    async def _next_outcome(self) -> None:
        outcome = await self._calls.inbox.get()
        if outcome is None or (isinstance(outcome, Decided) and self._state.cancelling):
            return
        self._apply(outcome)

    def _apply(self, outcome: Outcome) -> None:
        """Moves the state on, and writes the messages that it says were added."""
        known = len(self._state.messages)
        self._state = apply(self._state, outcome)
        for ref in self._state.messages[known:]:
            self._conversation.append(self._message(ref))

    def _message(self, ref: MessageRef) -> Message:
        if ref.role == "tool":
            return Message(ref.id, "tool", self._calls.results(), self._conversation.last_id)
        if self._draft is None:
            raise RuntimeError("The loop wrote an answer that was not given.")
        return self._draft

    async def _call_model(self, action: CallModel, tasks: asyncio.TaskGroup) -> None:
        self._answer = answer = AnswerBuilder(action.message_id, self._emit, self._noted)
        self._model_task = tasks.create_task(self._receive(action, answer, tasks))
        await asyncio.wait({self._model_task})
        stopped = self._model_task.cancelled()
        outcome = CancelRequested() if stopped else self._model_task.result()
        self._model_task = None
        if isinstance(outcome, ModelFailed):
            self._apply(replace(outcome, kept=self._keep_partial()))
            if self._state.ending is None:
                self._show_retry(action)
        elif isinstance(outcome, CancelRequested):
            self._apply(CancelRequested(self._keep_partial()))
        else:
            if isinstance(outcome, ContextFull) and answer.shown:
                reason = "The conversation is too long for the model."
                self._emit([AttemptReset(action.message_id, action.attempt, reason)])
            self._apply(outcome)
        self._answer = None

    async def _condense(self, action: CondenseContext, tasks: asyncio.TaskGroup) -> None:
        self._model_task = tasks.create_task(self._condenser.perform(action))
        await asyncio.wait({self._model_task})
        stopped = self._model_task.cancelled()
        outcome = CancelRequested() if stopped else self._model_task.result()
        self._model_task = None
        self._apply(outcome)
        if self._state.condensing is None:
            self._condenser.tell()

    def _keep_partial(self) -> int:
        """Makes what the model has written so far the draft; returns its size."""
        if self._answer is None:
            return 0
        self._draft = self._answer.message(self._conversation.last_id, calls=False)
        return self._draft.size if self._draft is not None else 0

    async def _receive(
        self, action: CallModel, answer: AnswerBuilder, tasks: asyncio.TaskGroup
    ) -> Outcome:
        if action.delay > 0:
            await asyncio.sleep(action.delay)
        try:
            told = await self._prepare() if self._prepare is not None else ""
            request = self._condenser.gauge.fitted(self._request(told), early=action.early)
            if isinstance(request, ContextFull):
                return request
            self._watch.started(HookEvent.MODEL_CALL_STARTED)
            limit = self._config.retry.call_timeout_seconds
            done = await within(limit, self._ask(answer, request))
            self._condenser.gauge.counted(done.usage)
        except ContextTooLong as error:
            self._error = error
            full = self._condenser.gauge.refused(error)
            return full if full is not None else ModelFailed(error.code, transient=False)
        except ProviderError as error:
            self._error = error
            return ModelFailed(error.code, error.transient, 0, error.retry_after, _JITTER.random())
        except Exception:
            log.exception("A model call broke in an unexpected way")
            self._error = HarnessError(
                "Something went wrong inside the server.",
                hint="The server's log says more. Try again.",
                code="internal_error",
            )
            return ModelFailed("internal_error", transient=False)
        cost = self._config.limits.prices.cost(done.usage)
        model = str(self._config.model)
        self._emit([UsageReport(action.message_id, done.usage, model, cost)])
        self._draft = answer.message(self._conversation.last_id, calls=True)
        uses = self._draft.tool_uses if self._draft is not None else ()
        proposed = await self._calls.propose(uses, action.message_id, tasks)
        size = self._draft.size if self._draft is not None else 0
        return ModelAnswered(size, proposed, done.stop_reason, done.usage, cost)

    async def _ask(self, answer: AnswerBuilder, request: ModelRequest) -> ModelDone:
        """The model's answer; where it refuses pictures, to the request without any.

        The rest of the run does without them then.
        """
        try:
            return await answer.receive(self._provider, request)
        except PicturesRefused as error:
            if self._blind or answer.shown:
                raise
            self._blind = True
            self._emit([Note(WITHOUT_PICTURES, sayable(error.message))])
        messages = leave_out(request.messages, _refused)
        return await answer.receive(self._provider, replace(request, messages=messages))

    def _request(self, told: str) -> ModelRequest:
        config = self._config
        messages = self._conversation.sent
        return ModelRequest(
            config.model.name,
            leave_out(messages, _refused) if self._blind else messages,
            "\n\n".join(part for part in (config.system_prompt, told) if part),
            self._tools.specs(self._permissions),
            config.max_tokens,
            config.temperature,
            config.retry.stall_seconds,
        )

    def _show_retry(self, action: CallModel) -> None:
        reason = sayable(self._error.message) if self._error is not None else ""
        self._emit(
            [
                AttemptReset(action.message_id, action.attempt, reason),
                Waiting(reason, self._state.delay),
            ]
        )

    def _finish(self, action: Finish) -> RunResult:
        self._calls.close()
        state = self._state
        last = state.messages[-1]
        text = self._draft.text if self._draft is not None and last.role == "assistant" else ""
        result = RunResult(
            action.status, text, state.usage, state.cost, state.iterations, action.reason
        )
        if action.status == "failed":
            error = self._error or HarnessError("The run failed.", code=action.reason)
            if action.reason == TOO_LONG:
                error = self._condenser.gauge.too_long()
            report = ErrorReport(error.code, sayable(error.message), sayable(error.hint))
            self._emit([report, result])
        else:
            self._emit([result])
        return result

    def _abandon(self) -> None:
        """Settles everything at once, without waiting, when the run's own task is cancelled."""
        if self._state.ending is not None:
            return
        if not self._state.cancelling:
            self._apply(CancelRequested(self._keep_partial()))
        while isinstance(action := next_action(self._state), CancelTools):
            self._calls.cancel(action.call_ids)
            while not self._calls.inbox.empty():
                outcome = self._calls.inbox.get_nowait()
                if outcome is not None and not isinstance(outcome, Decided):
                    self._apply(outcome)
        if isinstance(action, Finish):
            self._finish(action)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _refused(picture: ImageBlock) -> str:
    return "this model did not take the pictures of this chat"
