"""What the MCP servers of a chat ask of its model; the person has agreed to it by then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from web.chats.chat import Chat
from web.harness.mcp.sampling import SamplingAnswer, SamplingRequest, StopReason
from web.harness.values.config import ModelName
from web.harness.values.errors import HarnessError
from web.harness.values.messages import Message, TextBlock
from web.harness.values.model import ModelDone, ModelRequest, Provider, TextChunk
from web.harness.values.text import sayable

SAMPLE_SECONDS = 300.0
"""How long one answer may take in all."""
MAX_ANSWER_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class ChatSampler:
    """Asks the model that the chat has chosen by then. Used by the tools of its servers."""

    chat: Chat
    provider: Callable[[ModelName], Provider]

    @property
    def model(self) -> str:
        """The model, as `PROVIDER:NAME`."""
        return self.chat.record.model

    async def __call__(self, request: SamplingRequest, /) -> SamplingAnswer:
        """The model's words, without a conversation of the chat. Raises HarnessError in words."""
        model = ModelName.parse(self.model)
        answer = _Answer(request.stop)
        try:
            async with asyncio.timeout(SAMPLE_SECONDS):
                await answer.receive(self.provider(model), _model_request(model, request))
        except TimeoutError as error:
            raise HarnessError(f"It took over {SAMPLE_SECONDS:g} seconds.") from error
        return SamplingAnswer(answer.text, str(model), answer.stop_reason, answer.done.usage)


def _model_request(model: ModelName, request: SamplingRequest) -> ModelRequest:
    messages = tuple(
        Message(f"sample-{number}", each.role, (TextBlock(each.text),))
        for number, each in enumerate(request.messages)
    )
    return ModelRequest(
        model.name,
        messages,
        request.system_prompt,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
    )


class _Answer:
    """One answer as it comes. It ends before the first of `stops`."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.text = ""
        self.done = ModelDone("end_turn")
        self._stops = stops
        self._stopped = False

    @property
    def stop_reason(self) -> StopReason:
        if self._stopped:
            return "stopSequence"
        return "maxTokens" if self.done.stop_reason == "max_tokens" else "endTurn"

    async def receive(self, provider: Provider, request: ModelRequest) -> None:
        """Reads the stream to its end, or as far as it is wanted; closes it in any case."""
        stream = provider.stream(request)
        try:
            async for chunks in stream:
                for chunk in chunks:
                    if isinstance(chunk, TextChunk):
                        self._add(sayable(chunk.text))
                    elif isinstance(chunk, ModelDone):
                        self.done = chunk
                if self._stopped or len(self.text) > MAX_ANSWER_CHARS:
                    break
        finally:
            await stream.aclose()
        if self.done.stop_reason == "refusal":
            raise HarnessError("It declined to answer this.")

    def _add(self, text: str) -> None:
        if self._stopped:
            return
        # A stop may have begun in what came before.
        begin = max(0, len(self.text) - max(map(len, self._stops), default=0))
        self.text += text
        found = _first(self.text.find(stop, begin) for stop in self._stops)
        if found is not None:
            self.text, self._stopped = self.text[:found], True


def _first(places: Iterable[int]) -> int | None:
    return min((place for place in places if place >= 0), default=None)
