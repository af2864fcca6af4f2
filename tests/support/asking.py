"""Asks a provider and gathers what it streams."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from web.harness.values.errors import ProviderError
from web.harness.values.messages import ContentBlock, Message, TextBlock
from web.harness.values.model import (
    ModelChunk,
    ModelDone,
    ModelRequest,
    Provider,
    TextChunk,
    ThinkingChunk,
    ToolUseChunk,
)


@dataclass
class Gathered:
    """All chunks of one answer, up to its end or the error that ended it."""

    chunks: list[ModelChunk] = field(default_factory=list)
    reads: int = 0

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextChunk))

    @property
    def thinking(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, ThinkingChunk))

    @property
    def calls(self) -> list[ToolUseChunk]:
        return [chunk for chunk in self.chunks if isinstance(chunk, ToolUseChunk)]

    @property
    def done(self) -> ModelDone:
        """The one closing chunk, which must be the last."""
        assert [isinstance(chunk, ModelDone) for chunk in self.chunks].count(True) == 1
        last = self.chunks[-1]
        assert isinstance(last, ModelDone)
        return last


def asked(*content: ContentBlock | str, **fields: Any) -> ModelRequest:
    """A request with one user message."""
    blocks = tuple(TextBlock(item) if isinstance(item, str) else item for item in content)
    return ModelRequest(**{"model": "m", "messages": (Message("m1", "user", blocks),), **fields})


async def gather(
    provider: Provider, request: ModelRequest, into: Gathered | None = None
) -> Gathered:
    """The whole answer. What came before an error stays in `into`. Bounded in time."""
    found = into if into is not None else Gathered()
    async with asyncio.timeout(20), aclosing(provider.stream(request)) as stream:
        async for chunks in stream:
            assert chunks, "a provider yields no empty list"
            found.reads += 1
            found.chunks.extend(chunks)
    return found


async def outcome(
    provider: Provider, request: ModelRequest
) -> tuple[Gathered, ProviderError | None]:
    """What came of an answer, and the error that ended it, if one did."""
    found = Gathered()
    try:
        return await gather(provider, request, found), None
    except ProviderError as error:
        return found, error
