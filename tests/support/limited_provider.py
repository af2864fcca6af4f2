"""A `Provider` that takes so many tokens by its own count and refuses more, as real ones do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from tests.support.scripted_provider import Step, says
from web.harness.values.errors import ContextTooLong, ProviderError
from web.harness.values.messages import CONVERSATION_URI
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest
from web.harness.values.usage import Usage

Answering = Callable[[ModelRequest], list[Step]]


def is_summary_request(request: ModelRequest) -> bool:
    return any(block.uri == CONVERSATION_URI for block in request.messages[-1].attachments)


class LimitedProvider:
    """Answers with `answer` what has at most `limit` tokens, an answer's own included.

    `chars_per_token` is its own count, which it reports. `tells` says whether a refusal names the
    limit and the count. `notes` answers a request for a summary. `refusals` counts, `requests` are
    those that were taken, `summaries` those of them for a summary.
    """

    def __init__(
        self,
        limit: int,
        *,
        chars_per_token: float = 4.0,
        tells: bool = True,
        answer: Answering = lambda request: says("ok"),
        notes: Answering = lambda request: says("Notes: they talked."),
    ) -> None:
        self.limit = limit
        self.refusals = 0
        self.requests: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []
        self.summarising = asyncio.Event()
        self.closed = 0
        self._chars_per_token = chars_per_token
        self._tells = tells
        self._answer = answer
        self._notes = notes

    def count(self, request: ModelRequest) -> int:
        chars = len(request.system_prompt) + sum(message.size for message in request.messages)
        chars += sum(
            len(tool.description) + len(json.dumps(tool.input_schema)) for tool in request.tools
        )
        return int(chars / self._chars_per_token) + 3 * len(request.messages)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        counted = self.count(request)
        if counted + request.max_tokens > self.limit:
            self.refusals += 1
            if self._tells:
                raise ContextTooLong("Too long.", limit=self.limit, counted=counted)
            raise ContextTooLong("Too long.")
        self.requests.append(request)
        steps = self._answer
        if is_summary_request(request):
            self.summaries.append(request)
            self.summarising.set()
            steps = self._notes
        for step in steps(request):
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, ProviderError):
                raise step
            elif isinstance(step, ModelDone):
                yield [replace(step, usage=Usage(counted, step.usage.output_tokens))]
            else:
                yield [step]

    async def aclose(self) -> None:
        self.closed += 1
