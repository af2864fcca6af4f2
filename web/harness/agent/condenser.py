"""Makes the conversation of one run shorter, by the steps that the loop asks for."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import assert_never

from web.harness.agent.context_gauge import ContextGauge
from web.harness.agent.summariser import NO_SUMMARY, Summariser
from web.harness.agent.watch import Watch
from web.harness.loop.actions import CondenseContext, Condensed, CondenseFailed
from web.harness.loop.state import Condensing
from web.harness.memory.condensing import (
    Plan,
    clear_results,
    count_cleared,
    linked,
    plan,
    without_old_thinking,
)
from web.harness.memory.conversation import Conversation
from web.harness.memory.shortening import shorten
from web.harness.memory.summaries import (
    added_note,
    is_smaller,
    is_summary,
    summary_message,
    summary_text,
)
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ContextTooLong, HarnessError, ProviderError
from web.harness.values.events import ContextCondensed, Note, Waiting
from web.harness.values.messages import Message
from web.harness.values.model import Provider
from web.harness.values.text import sayable
from web.harness.values.tokens import PER_ATTACHMENT, text_tokens

log = logging.getLogger(__name__)

_JITTER = random.SystemRandom()

MAX_SUMMARY_TOKENS = 2_000
MIN_SUMMARY_TOKENS = 120
SUMMARY_SHARE = 5
"""A summary has at most this part of the room for messages."""

WORTH_SHARE = 4
"""A model is not asked to sum up less than this part of what is to be freed, if all fits."""

CUT_PERCENT = 97
"""Texts are cut to a little less than the room, as nobody can cut to a token."""

SUMMARISING = "Earlier messages are summarised"
NOT_SUMMARISED = "The earlier messages could not be summarised."
KEPT = "They are kept as they are."
LEFT_OUT = "The oldest were left out, as the model has no room for them."


@dataclass(slots=True)
class _Pass:
    """What was done since the context was found too long, to be told in one line."""

    before: int
    originals: dict[str, Message]
    cleared: bool = False
    summarised: int = 0
    dropped: int = 0
    shortened: int = 0
    summary: str = ""
    failure: str = ""


class Condenser:
    """Serves one run; `turn_id` is the id of the person's message, which always stays.

    The conversation is changed only where a step has succeeded.
    """

    def __init__(
        self,
        turn_id: str,
        *,
        config: AgentConfig,
        provider: Provider,
        conversation: Conversation,
        gauge: ContextGauge,
        watch: Watch,
    ) -> None:
        self.gauge = gauge
        self._turn_id = turn_id
        self._config = config
        self._provider = provider
        self._conversation = conversation
        self._watch = watch
        self._pass: _Pass | None = None
        self._summaries = 0
        self._is_replaced = False

    async def perform(self, action: CondenseContext) -> Condensed | CondenseFailed:
        """One step; see `Condensing.step`. Sizes in and out are those of the whole request."""
        if action.delay > 0:
            await asyncio.sleep(action.delay)
        step = action.condensing
        match step.step:
            case "clear":
                await self._clear(step)
            case "summarise":
                return await self._summarise(step)
            case "drop":
                await self._drop(step)
            case "shorten":
                await self._shorten(step)
            case _:
                assert_never(step.step)
        await self.gauge.count()
        return Condensed(self.gauge.now())

    def tell(self) -> None:
        """Says in one event what was done, once the loop needs no further step."""
        done, self._pass = self._pass, None
        if done is None:
            return
        if done.failure:
            went_on = LEFT_OUT if done.dropped else KEPT
            self._watch.emit([Note(f"{NOT_SUMMARISED} {went_on}", sayable(done.failure))])
        messages = self._conversation.get_messages()
        cleared = count_cleared(messages, done.originals) if done.cleared else 0
        numbers = (cleared, done.summarised, done.dropped, done.shortened)
        if any(numbers):
            now = self.gauge.now()
            self._watch.emit([ContextCondensed(done.before, now, done.summary, *numbers)])

    def take_replaced(self) -> list[Message] | None:
        """The whole conversation, where it is another than when this was last asked."""
        is_replaced, self._is_replaced = self._is_replaced, False
        return self._conversation.get_messages() if is_replaced else None

    async def _clear(self, step: Condensing) -> None:
        messages = self._conversation.get_messages()
        self._pass = done = _Pass(step.tokens, {message.id: message for message in messages})
        if step.tokens <= step.goal:
            return
        goal, pinned = self.gauge.for_messages(step.goal), self._conversation.pinned
        cleared = await self.gauge.aside(
            lambda: clear_results(
                without_old_thinking(messages, self._turn_id), goal=goal, pinned=pinned
            )
        )
        done.cleared = cleared.results > 0
        if cleared.messages != messages:
            self._replace(cleared.messages)

    async def _summarise(self, step: Condensing) -> Condensed | CondenseFailed:
        notes = summary_text(self._conversation.get_messages())
        most = self._summary_tokens(step)
        planned = await self._planned(step.goal, self.gauge.estimated(most))
        worth = self.gauge.estimated(step.room - step.goal) // WORTH_SHARE
        goes = await self.gauge.aside(lambda: planned.tokens)
        if not planned.old or (step.tokens <= step.room and goes < worth):
            return Condensed(step.tokens)
        done = self._done(step)
        message_id = f"notes-{self._turn_id}-{self._summaries + 1}"
        summariser = Summariser(
            message_id,
            config=self._config,
            provider=self._provider,
            gauge=self.gauge,
            watch=self._watch,
        )
        self._watch.emit([Waiting(SUMMARISING, 0.0, "summary")])
        try:
            text = await summariser.write(notes, planned.old, done.originals, most)
            summary = summary_message(message_id, text)
            if not is_smaller(summary, goes + text_tokens(notes)):
                words = "The summary was longer than what it was to stand for."
                raise HarnessError(words, code=NO_SUMMARY)
        except HarnessError as error:
            return self._failed(done, error, summariser)
        except Exception:
            log.exception("A summary broke in an unexpected way")
            words = "Something went wrong inside the server."
            return self._failed(done, HarnessError(words, code="internal_error"), summariser)
        self._summaries += 1
        done.failure = ""
        done.summarised += len(planned.old)
        done.summary = text
        self._replace([summary, *planned.kept])
        await self.gauge.count()
        return Condensed(self.gauge.now(), summariser.usage, summariser.cost)

    @staticmethod
    def _failed(done: _Pass, error: HarnessError, summariser: Summariser) -> CondenseFailed:
        done.failure = error.message
        provider = error if isinstance(error, ProviderError) else None
        return CondenseFailed(
            error.code,
            provider is not None and (provider.transient or isinstance(error, ContextTooLong)),
            provider.retry_after if provider is not None else None,
            _JITTER.random(),
            summariser.usage,
            summariser.cost,
        )

    async def _drop(self, step: Condensing) -> None:
        messages = self._conversation.get_messages()
        notes = [message for message in messages if is_summary(message)]
        text = summary_text(messages)
        # Not to the room alone: the next answer would not fit, and all would be written down anew.
        planned = await self._planned(step.goal, text_tokens(text) + PER_ATTACHMENT)
        if planned.old:
            self._done(step).dropped += len(planned.old)
            message_id = notes[-1].id if notes else f"notes-{self._turn_id}-0"
            summary = summary_message(message_id, added_note(text, len(planned.old)))
            self._replace([summary, *planned.kept])

    async def _shorten(self, step: Condensing) -> None:
        before, pinned = self._conversation.get_messages(), self._conversation.pinned
        goal = self.gauge.for_messages(step.room) * CUT_PERCENT // 100
        messages, count = await self.gauge.aside(lambda: shorten(before, goal, pinned))
        if count:
            self._done(step).shortened += count
            self._replace(messages)

    async def _planned(self, tokens: int, notes: int) -> Plan:
        """What goes so that the request has at most `tokens`, with estimated ones for notes."""
        messages, pinned = self._conversation.get_messages(), self._conversation.pinned
        budget = self.gauge.for_messages(tokens) - notes - PER_ATTACHMENT
        return await self.gauge.aside(
            lambda: plan(messages, budget=budget, turn_id=self._turn_id, pinned=pinned)
        )

    def _summary_tokens(self, step: Condensing) -> int:
        part = self.gauge.real(self.gauge.for_messages(step.room)) // SUMMARY_SHARE
        most = min(MAX_SUMMARY_TOKENS, self._config.max_tokens)
        return max(min(part, most), MIN_SUMMARY_TOKENS)

    def _done(self, step: Condensing) -> _Pass:
        if self._pass is None:
            # A run that is taken up in mid-step.
            self._pass = _Pass(step.tokens, {})
        return self._pass

    def _replace(self, messages: list[Message]) -> None:
        self._conversation.replace(linked(messages))
        self._is_replaced = True
