"""Has a model write the notes that stand for the oldest messages of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing

from web.harness.agent.context_gauge import ContextGauge
from web.harness.agent.deadlines import within
from web.harness.agent.watch import Watch
from web.harness.loop.budget import ANSWER_SHARE
from web.harness.memory.shortening import cut
from web.harness.memory.summaries import PROMPT, chunks, summary_request
from web.harness.tools.hooks import HookEvent
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ContextTooLong, HarnessError
from web.harness.values.events import UsageReport
from web.harness.values.messages import Message
from web.harness.values.model import ModelDone, ModelRequest, Provider, TextChunk
from web.harness.values.text import sayable
from web.harness.values.tokens import message_tokens, text_tokens
from web.harness.values.usage import Usage, add_cost

NO_SUMMARY = "no_summary"

LEAST_SHARE = 4
"""A piece of the conversation has at least this part of the context, however long the notes."""


class Summariser:
    """Writes one summary, by as many calls as it takes. `usage` and `cost` are what they took."""

    def __init__(
        self,
        message_id: str,
        *,
        config: AgentConfig,
        provider: Provider,
        gauge: ContextGauge,
        watch: Watch,
    ) -> None:
        self.usage = Usage()
        self.cost: float | None = None
        self._message_id = message_id
        self._config = config
        self._provider = provider
        self._gauge = gauge
        self._watch = watch

    async def write(
        self, notes: str, old: tuple[Message, ...], originals: Mapping[str, Message], most: int
    ) -> str:
        """Notes of at most `most` tokens, from those before and the old messages.

        `originals` are messages as they were before results were cleared. Raises ProviderError,
        and HarnessError where the model wrote no notes.
        """
        room = self._gauge.estimated(self._room(most))
        for text in await self._gauge.aside(lambda: chunks(old, originals, room)):
            # A server may let a model write on beyond what it was allowed.
            notes = cut(await self._call(notes, text, most), self._gauge.estimated(most) + 1)
        if not notes:
            raise HarnessError("The model wrote no summary.", code=NO_SUMMARY)
        return notes

    def _room(self, most: int) -> int:
        """For a piece of the conversation: the context without prompt, old notes and answer."""
        limit = self._gauge.limit() or 0
        prompt = self._gauge.real(text_tokens(PROMPT)) + 200
        answer = self._answer_tokens(most)
        return max(limit - limit // 10 - most - answer - prompt, limit // LEAST_SHARE)

    def _answer_tokens(self, most: int) -> int:
        limit = self._gauge.limit() or 0
        return max(min(self._config.max_tokens, limit // ANSWER_SHARE), most)

    async def _call(self, notes: str, text: str, most: int) -> str:
        retry = self._config.retry
        request = summary_request(
            *(self._config.model.name, notes, text, most, self._answer_tokens(most)),
            retry.stall_seconds,
        )
        self._watch.started(HookEvent.MODEL_CALL_STARTED)
        try:
            return await within(retry.call_timeout_seconds, self._receive(request))
        except ContextTooLong as error:
            # What is learned makes the pieces smaller that are sent next.
            size = sum(map(message_tokens, request.messages)) + text_tokens(PROMPT)
            self._gauge.refused_other(error, size, request.max_tokens)
            raise

    async def _receive(self, request: ModelRequest) -> str:
        pieces: list[str] = []
        async with aclosing(self._provider.stream(request)) as stream:
            async for received in stream:
                for chunk in received:
                    if isinstance(chunk, TextChunk):
                        pieces.append(chunk.text)
                    elif isinstance(chunk, ModelDone):
                        self._took(chunk)
        return sayable("".join(pieces)).strip()

    def _took(self, done: ModelDone) -> None:
        cost = self._config.limits.prices.cost(done.usage)
        self.usage, self.cost = self.usage + done.usage, add_cost(self.cost, cost)
        model = str(self._config.model)
        self._watch.emit([UsageReport(self._message_id, done.usage, model, cost)])
        if done.stop_reason == "refusal":
            raise HarnessError("The model declined to summarise.", code=NO_SUMMARY)
