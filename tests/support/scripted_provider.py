"""A `Provider` whose answers a test writes down beforehand, or gives while it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from web.harness.values.errors import ProviderError
from web.harness.values.messages import ToolUseBlock
from web.harness.values.model import (
    ModelChunk,
    ModelDone,
    ModelRequest,
    StopReason,
    TextChunk,
    ThinkingChunk,
    ToolUseChunk,
)
from web.harness.values.usage import Usage

Step = ModelChunk | ProviderError | asyncio.Event
"""What a scripted answer does next: sends a chunk, breaks, or waits until the test goes on."""


class ScriptedProvider:
    """Gives the scripted answers in order; the last one again and again.

    `requests` are those that came, `open` is how many streams are under way, `asked` is set when
    a stream is opened.
    """

    def __init__(self, *answers: Sequence[Step]) -> None:
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.open = 0
        self.closed = 0
        self.asked = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        index = min(len(self.requests), len(self.answers) - 1)
        self.requests.append(request)
        self.open += 1
        self.asked.set()
        try:
            for step in self.answers[index]:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, ProviderError):
                    raise step
                else:
                    yield [step]
        finally:
            self.open -= 1

    async def aclose(self) -> None:
        self.closed += 1


def says(*texts: str, stop_reason: StopReason = "end_turn") -> list[Step]:
    """An answer of text alone, in these pieces."""
    return [*(TextChunk(text) for text in texts), ModelDone(stop_reason, Usage(10, len(texts)))]


def calls(*uses: tuple[str, dict[str, Any]], text: str = "") -> list[Step]:
    """An answer that calls tools, each given as its name and arguments."""
    blocks = tuple(ToolUseBlock("", name, arguments) for name, arguments in uses)
    chunks: list[Step] = [TextChunk(text)] if text else []
    for index, (name, arguments) in enumerate(uses):
        chunks.append(ToolUseChunk(index, "", name, json.dumps(arguments)))
    return [*chunks, ModelDone("tool_use", Usage(10, 5), blocks)]


def thinks(thought: str, text: str) -> list[Step]:
    return [ThinkingChunk(thought, "sealed"), TextChunk(text), ModelDone("end_turn")]


def breaks(*before: str, transient: bool = True, code: str = "provider_overloaded") -> list[Step]:
    """An answer that fails after these pieces of text."""
    error = ProviderError("The model is overloaded.", hint="Wait.", code=code, transient=transient)
    return [*(TextChunk(text) for text in before), error]
