"""The model calls of one run: a request goes out, and an outcome and a message come of it."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from web.harness.agent.answer import AnswerBuilder
from web.harness.agent.calls import Calls
from web.harness.agent.context_gauge import ContextGauge
from web.harness.agent.control import Control
from web.harness.agent.deadlines import within
from web.harness.agent.watch import Watch
from web.harness.loop.actions import CallModel, ContextFull, ModelAnswered, ModelFailed, Outcome
from web.harness.tools.hooks import HookEvent
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.values.config import AgentConfig
from web.harness.values.errors import (
    ContextTooLong,
    HarnessError,
    PicturesRefused,
    ProviderError,
)
from web.harness.values.events import AttemptReset, Note, UsageReport
from web.harness.values.messages import ImageBlock, JsonObject, Message
from web.harness.values.model import ModelDone, ModelRequest, Provider
from web.harness.values.pictures import leave_out
from web.harness.values.text import sayable

log = logging.getLogger(__name__)

_JITTER = random.SystemRandom()

Prepare = Callable[[], Awaitable[str]]
"""Awaited before each model call: brings the tools up to date, and returns what the model is told
after the system prompt; '' for nothing."""

WITHOUT_PICTURES = "The model did not take the pictures, so it answers without having seen them."

MAX_ERROR_CHARS = 2_000
"""Of an error's words that a run keeps."""


class ModelCalls:
    """Serves one run. `draft` is the message that the newest call left, None where it left none."""

    def __init__(
        self,
        *,
        config: AgentConfig,
        provider: Provider,
        tools: ToolRegistry,
        permissions: Permissions,
        calls: Calls,
        control: Control,
        watch: Watch,
        gauge: ContextGauge,
        prepare: Prepare | None = None,
    ) -> None:
        self.draft: Message | None = None
        self._config = config
        self._provider = provider
        self._tools = tools
        self._permissions = permissions
        self._calls = calls
        self._control = control
        self._watch = watch
        self._emit = watch.emit
        self._gauge = gauge
        self._prepare = prepare
        self._answer: AnswerBuilder | None = None
        self._noted: set[str] = set()
        self._blind = False
        self._began = 0.0

    async def perform(self, action: CallModel, tasks: asyncio.TaskGroup) -> Outcome:
        """Calls the model once. What it says is shown as it comes; where it fails, or the call is
        cancelled, `keep_partial` makes a message of it."""
        self.draft, self._began = None, time.monotonic()
        self._answer = answer = AnswerBuilder(action.message_id, self._emit, self._noted)
        if action.delay > 0:
            await asyncio.sleep(action.delay)
        try:
            done = await self._done(action, answer)
        except ContextTooLong as error:
            full = self._gauge.refused(error)
            return full if full is not None else _failed(error)
        except ProviderError as error:
            jitter = _JITTER.random()
            return replace(_failed(error), retry_after=error.retry_after, jitter=jitter)
        except Exception:
            log.exception("A model call broke in an unexpected way")
            return _failed(
                HarnessError(
                    "Something went wrong inside the server.",
                    hint="The server's log says more. Try again.",
                    code="internal_error",
                )
            )
        if isinstance(done, ContextFull):
            return done
        cost = self._config.limits.prices.cost(done.usage)
        model = str(self._config.model)
        self._emit([UsageReport(action.message_id, done.usage, model, cost)])
        self.draft = draft = answer.message(self._control.conversation.last_id, calls=True)
        uses = draft.tool_uses if draft is not None else ()
        proposed = await self._calls.propose(uses, action.message_id, tasks)
        size = draft.size if draft is not None else 0
        return ModelAnswered(size, proposed, done.stop_reason, done.usage, cost)

    async def prepare(self) -> bool:
        """Brings the tools up to date for calls of an answer that another process asked for."""
        try:
            if self._prepare is not None:
                await self._prepare()
        except Exception:
            log.exception("The tools of a run that goes on could not be brought up to date")
        return True

    @property
    def shown(self) -> bool:
        """Whether anything is shown of the newest call that a reset would have to take back."""
        return self._answer is not None and self._answer.shown

    def keep_partial(self) -> int:
        """Makes what the model has written so far the draft; returns its size."""
        if self._answer is None:
            return 0
        self.draft = self._answer.message(self._control.conversation.last_id, calls=False)
        return self.draft.size if self.draft is not None else 0

    def take_back(self, action: CallModel, reason: str) -> None:
        """Says that what was shown of a call does not count."""
        self._emit([AttemptReset(action.message_id, action.attempt, reason)])

    def forget(self) -> None:
        """Nothing of the newest call can be kept any more."""
        self._answer = None

    @property
    def about(self) -> JsonObject:
        """What whoever looks at the run later wants to know of the newest call."""
        seconds = round(time.monotonic() - self._began, 3)
        return {"model": str(self._config.model), "seconds": seconds}

    async def _done(self, action: CallModel, answer: AnswerBuilder) -> ModelDone | ContextFull:
        self._began = time.monotonic()
        told = await self._prepare() if self._prepare is not None else ""
        await self._gauge.count()
        request = self._gauge.fitted(self._request(told), early=action.early)
        if isinstance(request, ContextFull):
            return request
        self._control.note("model_call", about=self._sent(action, request))
        self._watch.started(HookEvent.MODEL_CALL_STARTED)
        limit = self._config.retry.call_timeout_seconds
        done = await within(limit, self._ask(answer, request))
        self._gauge.counted(done.usage)
        return done

    def _sent(self, action: CallModel, request: ModelRequest) -> JsonObject:
        return {
            "model": str(self._config.model),
            "attempt": action.attempt,
            "messages": len(request.messages),
            "tokens": self._gauge.now(),
            "max_tokens": request.max_tokens,
            "tools": len(request.tools),
        }

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
        messages = self._control.conversation.sent
        return ModelRequest(
            config.model.name,
            leave_out(messages, _refused) if self._blind else messages,
            "\n\n".join(part for part in (config.system_prompt, told) if part),
            self._tools.specs(self._permissions),
            config.max_tokens,
            config.temperature,
            config.retry.stall_seconds,
        )


def _failed(error: HarnessError) -> ModelFailed:
    transient = isinstance(error, ProviderError) and error.transient
    return ModelFailed(
        error.code,
        transient and not isinstance(error, ContextTooLong),
        message=sayable(error.message)[:MAX_ERROR_CHARS],
        hint=sayable(error.hint)[:MAX_ERROR_CHARS],
    )


def _refused(picture: ImageBlock) -> str:
    return "this model did not take the pictures of this chat"
