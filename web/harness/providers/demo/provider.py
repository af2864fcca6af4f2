"""Streams scripted answers at the pace of a model."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator

from web.harness.providers.demo import texts
from web.harness.providers.demo.lengths import Lengths
from web.harness.providers.demo.script import Script, as_sub_agent, script_for
from web.harness.providers.demo.small import SMALL, count_request, count_tool, refuse_too_long
from web.harness.values.errors import ProviderError
from web.harness.values.messages import ToolUseBlock
from web.harness.values.model import (
    ModelChunk,
    ModelDone,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    ToolUseChunk,
    parse_arguments,
)
from web.harness.values.tokens import ToolsCounter
from web.harness.values.usage import Usage

TOKENS_PER_SECOND = 50.0
CHARS_PER_TOKEN = 4
TOKENS_PER_READ = 20
"""Chunks that come together when nothing is waited for."""
REMEMBERED = 256

_TOKEN = re.compile(r"\s*\S+\s*?|\s+")
_PIECE = re.compile(r".{1,12}", re.S)


class DemoProvider:
    """A Provider that needs no key and no network.

    `pace` is tokens a second where a message asks for nothing else; 0 waits for nothing.
    """

    def __init__(self, pace: float = TOKENS_PER_SECOND) -> None:
        self._pace = pace
        # Messages whose answer has broken off once, so that the second try succeeds.
        self._failed: OrderedDict[str, None] = OrderedDict()
        self._count_tools = ToolsCounter(count_tool)
        self._lengths = Lengths()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        if request.model == SMALL:
            refuse_too_long(request, self._count_tools)
        script = as_sub_agent(script_for(request), request)
        last_id = request.messages[-1].id if request.messages else ""
        if script.failure == "once" and last_id in self._failed:
            script = Script(text=texts.AFTER_RETRY)
        rate = self._pace if script.rate is None or not self._pace else script.rate
        calls = _calls(script, last_id)
        async for chunks in _paced(_chunks(script, calls), rate):
            yield chunks
        if script.failure:
            raise self._failure(script, last_id)
        reason = "tool_use" if calls else script.stop_reason
        yield [ModelDone(reason, self._usage(request, script), tuple(calls))]

    async def aclose(self) -> None:
        self._failed.clear()
        self._lengths = Lengths()

    def _usage(self, request: ModelRequest, script: Script) -> Usage:
        """Estimated from lengths, but for the model that has to count what it takes."""
        thought = len(script.thinking) // CHARS_PER_TOKEN
        written = len(script.text) + sum(len(name) + len(raw) for name, raw in script.calls)
        if request.model == SMALL:
            sent = count_request(request, self._count_tools)
        else:
            chars = len(request.system_prompt) + self._lengths(request.messages)
            sent = -(-chars // CHARS_PER_TOKEN) + self._count_tools(request.tools)
        return Usage(
            input_tokens=sent,
            output_tokens=thought - (-written // CHARS_PER_TOKEN),
            thinking_tokens=thought,
        )

    def _failure(self, script: Script, last_id: str) -> ProviderError:
        if script.failure == "once":
            self._failed[last_id] = None
            if len(self._failed) > REMEMBERED:
                self._failed.popitem(last=False)
            return ProviderError(
                "The demo model broke off, as it was asked to.",
                hint="Nothing is to be done: it is tried again.",
                code="provider_overloaded",
                transient=True,
            )
        return ProviderError(
            "The demo model failed, as it was asked to.",
            hint="Write something else; 'help' lists what it does.",
            code="demo_failure",
        )


def _calls(script: Script, last_id: str) -> list[ToolUseBlock]:
    blocks = []
    for number, (name, raw) in enumerate(script.calls):
        arguments, malformed = parse_arguments(raw)
        blocks.append(ToolUseBlock(f"demo_{last_id}_{number}", name, arguments, malformed))
    return blocks


def _chunks(script: Script, calls: list[ToolUseBlock]) -> list[ModelChunk]:
    """The answer in the pieces that a model would send."""
    chunks: list[ModelChunk] = [ThinkingChunk(piece) for piece in _TOKEN.findall(script.thinking)]
    chunks += [TextChunk(piece) for piece in _TOKEN.findall(script.text)]
    for index, (call, (_, raw)) in enumerate(zip(calls, script.calls, strict=True)):
        chunks.append(ToolUseChunk(index, call.id, call.name, ""))
        chunks += [ToolUseChunk(index, call.id, call.name, part) for part in _PIECE.findall(raw)]
    return chunks


async def _paced(chunks: list[ModelChunk], rate: float) -> AsyncGenerator[list[ModelChunk], None]:
    """One chunk at a time, each when it is due; with rate 0, many at a time without a wait."""
    if not rate:
        for start in range(0, len(chunks), TOKENS_PER_READ):
            yield chunks[start : start + TOKENS_PER_READ]
            await asyncio.sleep(0)
        return
    clock = asyncio.get_running_loop().time
    start_time = clock()
    for number, chunk in enumerate(chunks):
        await asyncio.sleep(max(0.0, start_time + number / rate - clock()))
        yield [chunk]
