"""How much of a model's context a request takes, measured before it is sent and learned after."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from web.harness.loop.actions import ContextFull
from web.harness.loop.budget import ContextBudget
from web.harness.loop.condensing import TOO_LONG
from web.harness.memory.conversation import Conversation
from web.harness.memory.summaries import as_sent
from web.harness.providers.context_sizes import stated_context
from web.harness.tools.threads import run_in_thread
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ContextTooLong, HarnessError
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.model import ModelRequest
from web.harness.values.tokens import ToolsCounter, message_tokens, text_tokens
from web.harness.values.usage import Usage

T = TypeVar("T")

MIN_CALIBRATED = 400
"""Of a request with fewer tokens the provider's count says little about others."""

GUESS = 0.8
"""Of a refused request's size that the context is taken to have where the refusal names none."""

DENSER = 1.25
"""How much denser text is taken to be where a request was refused that should have fitted."""

LARGE = 150_000
"""Tokens of a conversation whose messages are not looked through on the event loop: some of what is
done with ten times as many takes 70 ms."""

MANY = 1_000
"""Messages; to count them takes some 7 ms."""

HOPELESS_SHARE = 20
"""Where less than this part of the context is left for messages, these are not to blame."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """A request as estimated, the budget that it was held against, and how long its answer may
    become."""

    estimate: int
    fixed: int
    budget: ContextBudget | None
    answer: int


class ContextGauge:
    """Serves one run, that of the person's message `turn_id`.

    Tokens are the model's own, as well as they are known by then; those that are called estimated
    are of `values/tokens.py`, before what was learned of the model.
    """

    def __init__(
        self,
        turn_id: str,
        *,
        config: AgentConfig,
        conversation: Conversation,
        learned: LearnedLimits,
        tools: ToolsCounter,
    ) -> None:
        self._turn_id = turn_id
        self._config = config
        self._conversation = conversation
        self._learned = learned
        self._count_tools = tools
        self._measured = _Measured(0, 0, None, 0)

    async def count(self) -> None:
        """Has the messages counted, aside where there are many that never were."""
        if self._conversation.uncounted > MANY:
            await run_in_thread(lambda: self._conversation.tokens, finish=True)

    def fitted(self, request: ModelRequest, *, early: bool) -> ModelRequest | ContextFull:
        """The request as it is sent, or that it is too long; see `CallModel.early`."""
        fixed = text_tokens(request.system_prompt) + self._count_tools(request.tools)
        budget = self._budget(fixed)
        estimate = fixed + self._conversation.tokens
        tokens, most = self.real(estimate), request.max_tokens
        if budget is not None:
            most = budget.answer_tokens(tokens, most)
        self._measured = _Measured(estimate, fixed, budget, most)
        if budget is not None and tokens > (budget.near if early else budget.room):
            return self._full(budget)
        return replace(request, messages=as_sent(request.messages), max_tokens=most)

    def counted(self, usage: Usage) -> None:
        """Learns from the provider's count of the request that was measured last."""
        self._calibrate(self._measured.estimate, usage.input_tokens)
        sent = self.real(self._measured.estimate) + self._measured.answer
        taken = usage.input_tokens + usage.output_tokens
        self._learned.took(self._config.model, taken, sent)

    def refused(self, error: ContextTooLong) -> ContextFull | None:
        """Learns from a refusal of the request that was measured last.

        None where it tells of no context that a model can have.
        """
        measured = self._measured
        self._learn(error, measured.estimate, measured.answer)
        budget = self._budget(measured.fixed)
        if budget is None:
            return None
        self._measured = replace(measured, budget=budget)
        return self._full(budget)

    def refused_other(self, error: ContextTooLong, estimate: int, answer: int) -> None:
        """Learns from a refusal of a request that was not measured here, whose answer may have
        had `answer` tokens."""
        self._learn(error, estimate, answer)

    def limit(self) -> int | None:
        """The smaller of what is configured and what was learned, else what the vendor states."""
        model = self._config.model
        known = (self._config.limits.max_context_tokens, self._learned.get(model))
        told = [tokens for tokens in known if tokens is not None]
        return min(told) if told else stated_context(model)

    def now(self) -> int:
        """What the request that was measured last would have with the messages as they are now."""
        return self.real(self._measured.fixed + self._conversation.tokens)

    def for_messages(self, tokens: int) -> int:
        """Of a request of so many tokens, what is left for messages; estimated."""
        return max(self.estimated(tokens) - self._measured.fixed, 0)

    def real(self, estimate: int) -> int:
        """Tokens of the model for estimated ones."""
        return math.ceil(estimate * self._learned.density(self._config.model))

    def estimated(self, tokens: int) -> int:
        """The other way round."""
        return int(tokens / self._learned.density(self._config.model))

    async def aside(self, work: Callable[[], T]) -> T:
        """What `work` on the messages gives; of a large conversation it is done in a thread."""
        await self.count()
        return work() if self._conversation.tokens < LARGE else await run_in_thread(work)

    def too_long(self) -> HarnessError:
        """Why nothing more could be left out, for a run that ends with it."""
        measured, limit = self._measured, self.limit()
        model, is_set = self._config.model, limit == self._config.limits.max_context_tokens
        whose = "the limit set for this agent is" if is_set else f"{model} takes"
        takes = f"{whose} {limit:,}"
        way_out = "raise that limit" if is_set else "choose a model with a larger context"
        parts = "send it in smaller parts, switch tools off"
        if measured.budget is None or limit is None or self.now() <= measured.budget.room:
            words = f"{model} refuses even a short conversation for its length."
            way_out = "choose a model with a larger context"
        elif measured.budget.for_messages < limit // HOPELESS_SHARE:
            words = (
                f"The system prompt and the tools alone take about {self.real(measured.fixed):,} "
                f"tokens; {takes} in all."
            )
            parts = "shorten the system prompt, switch tools off"
        else:
            words = (
                f"The message is too long: with what must stay it has about {self._least():,} "
                f"tokens; {takes}, the answer included."
            )
        hint = f"Nothing was lost. {parts.capitalize()}, or {way_out}."
        return HarnessError(words, hint=hint, code=TOO_LONG)

    def _full(self, budget: ContextBudget) -> ContextFull:
        tokens = self.real(self._measured.estimate)
        return ContextFull(tokens, budget.room, budget.goal, self._least())

    def _least(self) -> int:
        """The request with nothing but what must stay."""
        stays = self._conversation.pinned | {self._turn_id}
        messages = (each for each in self._conversation.get_messages() if each.id in stays)
        return self.real(self._measured.fixed + sum(map(message_tokens, messages)))

    def _learn(self, error: ContextTooLong, estimate: int, answer: int) -> None:
        model, before = self._config.model, self.limit()
        if error.limit is not None:
            self._learned.learn(model, error.limit)
        elif error.counted is None:
            self._learned.guess(model, int((self.real(estimate) + answer) * GUESS))
        if error.counted is not None and error.counted > self.real(estimate):
            self._learned.calibrate(model, estimate, error.counted)
        elif error.counted is not None:
            self._calibrate(estimate, error.counted)
        elif before == self.limit():
            # It should have fitted, so the texts take more than was thought.
            self._learned.calibrate(model, estimate, math.ceil(self.real(estimate) * DENSER))

    def _calibrate(self, estimate: int, counted: int) -> None:
        if estimate >= MIN_CALIBRATED:
            self._learned.calibrate(self._config.model, estimate, counted)

    def _budget(self, fixed: int) -> ContextBudget | None:
        limit = self.limit()
        if limit is None:
            return None
        return ContextBudget.of(limit, self.real(fixed), self._config.max_tokens)
