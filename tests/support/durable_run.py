"""A run to be cut off anywhere: three model calls, two parallel tools, one approval.

The model answers by what it is sent and not by how often it was asked, so that any process can go
on. Each tool writes down that it runs, with its key, before it does anything.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

from web.harness.agent.agent import Agent
from web.harness.tools.functions import function_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ReplayPolicy, ToolContext
from web.harness.values.config import AgentConfig, Retry
from web.harness.values.messages import Message, ToolResultBlock, ToolUseBlock
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest, TextChunk, ToolUseChunk
from web.harness.values.usage import Usage

TEXTS = ("First I look at both.", "Now I write it down.")
"""Of the answers with calls; the last one tells the results of the tools."""

ANSWER = "All is done: left right kept"
"""Where every tool ran as it should."""

Tick = Callable[[str], None]


def no_tick(_: str) -> None:
    """For a process that nobody stops."""


class ThreeCalls:
    """The model: its n-th answer in a turn follows from the n - 1 that it is sent."""

    def __init__(self, tick: Tick = no_tick) -> None:
        self._tick = tick

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        turn = _newest_turn(request.messages)
        answers = sum(message.role == "assistant" for message in turn)
        text, calls = _answer(answers, turn)
        self._tick(f"model call {answers + 1}")
        words = text.split(" ")
        for at, word in enumerate(words):
            yield [TextChunk(word if at == 0 else f" {word}")]
            await asyncio.sleep(0)
        self._tick(f"model answer {answers + 1}")
        for at, (name, arguments) in enumerate(calls):
            yield [ToolUseChunk(at, "", name, json.dumps(arguments))]
        uses = tuple(ToolUseBlock("", name, arguments) for name, arguments in calls)
        yield [ModelDone("tool_use" if uses else "end_turn", Usage(10, len(words)), uses)]

    async def aclose(self) -> None:
        """It holds nothing."""


def _newest_turn(messages: Sequence[Message]) -> Sequence[Message]:
    start = max(at for at, message in enumerate(messages) if message.role == "user")
    return messages[start:]


def _answer(answers: int, turn: Sequence[Message]) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    if answers == 0:
        return TEXTS[0], [("look", {"side": "left"}), ("look", {"side": "right"})]
    if answers == 1:
        return TEXTS[1], [("save", {"text": "kept"})]
    blocks = [block for message in turn for block in message.content]
    results = [block.text for block in blocks if isinstance(block, ToolResultBlock)]
    return " ".join(["All is done:", *results]), []


def durable_tools(ran: Path, replay: ReplayPolicy, tick: Tick = no_tick) -> ToolRegistry:
    """`look` runs by itself, `save` asks; both append `NAME KEY` to the file `ran`."""

    async def look(side: str, context: ToolContext) -> str:
        note(ran, f"look-{side}", context.call_id)
        tick(f"look {side}")
        return side

    async def save(text: str, context: ToolContext) -> str:
        note(ran, "save", context.call_id)
        tick("save")
        return text

    return ToolRegistry(
        [
            function_tool(look, permission=PermissionLevel.ALLOW, replay=replay),
            function_tool(save, permission=PermissionLevel.ASK, replay=replay),
        ]
    )


def note(ran: Path, name: str, key: str) -> None:
    with os.fdopen(os.open(ran, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
        file.write(f"{name} {key}\n")


def ran_in(ran: Path) -> list[tuple[str, str]]:
    """Every run of a tool: its name and key."""
    lines = ran.read_text().splitlines() if ran.exists() else []
    return [(name, key) for name, key in (line.split() for line in lines)]


def durable_agent(ran: Path, replay: ReplayPolicy = "safe", tick: Tick = no_tick) -> Agent:
    return Agent(
        AgentConfig(retry=Retry(attempts=3, backoff_seconds=0.001)),
        provider=ThreeCalls(tick),
        tools=durable_tools(ran, replay, tick),
        session_id="s",
    )
