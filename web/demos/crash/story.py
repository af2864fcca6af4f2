"""What the model of the demo says: one long answer with three calls, the same each time.

What comes next follows from what the model is sent and not from how often it was asked, so that any
process can go on with it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence

from web.harness.providers.demo.provider import DemoProvider
from web.harness.values.messages import JsonObject, Message, ToolResultBlock, ToolUseBlock
from web.harness.values.model import (
    ModelChunk,
    ModelDone,
    ModelRequest,
    StopReason,
    TextChunk,
    ToolUseChunk,
)
from web.harness.values.usage import Usage

TITLE = "Kill-it demo"

PROMPT = "Write the harbour master's report: look up the tide, measure the basin, post the letter."

BEFORE = """\
## Report of the harbour master

This answer is scripted, and takes its time. While it is written its server is killed: not asked to
stop, but ended by the system in the middle of a word, as by a power cut. Every step was written
down before it was shown, so the next server finds the message, what was said so far, and which
tools had run.

Three tools start now, side by side. `look_up_tide` is quick and will have ended. `measure_basin`
takes a while and may be repeated: it goes on by itself, with the key that it had. `post_letter`
takes a while too, and must not happen twice.
"""

AFTER = """\
## What came of it

| What | Result |
|:-----|:-------|
| Tide | {look_up_tide} |
| Basin | {measure_basin} |
| Letter | {post_letter} |

The text above was on the page before the server was killed, and was not written a second time. The
tide was not looked up again either, since its result had been kept. Nobody could know whether the
letter had gone out, so it was not posted again in silence: a person was asked.

If you read these lines while the server was killed once more, you saw some of them twice: a model
can't go on in the middle of a sentence, so what was shown of an answer nobody had finished is taken
back, and the answer is written anew. What you read now is whole, and there is one of it.
"""

CALLS: tuple[tuple[str, JsonObject], ...] = (
    ("look_up_tide", {"harbour": "Northport"}),
    ("measure_basin", {"basin": "east", "readings": 12}),
    ("post_letter", {"to": "the harbour office"}),
)

PACE = 25.0
FAST_PACE = 400.0
"""Words a second."""

_KEY = re.compile(r"story_(.+)_\d+")
_WORD = re.compile(r"\s*\S+\s*")


def final_text(results: dict[str, str]) -> str:
    """The last answer, with the first lines of the tools' results, by their names."""
    return AFTER.format(**{name: results.get(name, "none").partition("\n")[0] for name, _ in CALLS})


def asked_by(key: str) -> str:
    """The id of the message that a call of the story belongs to, by its key; '' for another key."""
    match = _KEY.fullmatch(key)
    return match[1] if match else ""


class StoryProvider:
    """A `Provider` that tells the story when it is asked for it, and else is the demo model."""

    def __init__(self, *, fast: bool = False) -> None:
        self._pace = FAST_PACE if fast else PACE
        self._demo = DemoProvider()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        turn = _newest_turn(request.messages)
        if not turn or turn[0].text.strip() != PROMPT:
            async for chunks in self._demo.stream(request):
                yield chunks
            return
        text, uses = _answer(turn)
        words = _WORD.findall(text)
        clock = asyncio.get_running_loop().time
        began = clock()
        for number, word in enumerate(words):
            await asyncio.sleep(max(0.0, began + number / self._pace - clock()))
            yield [TextChunk(word)]
        yield [
            ToolUseChunk(at, use.id, use.name, json.dumps(use.arguments))
            for at, use in enumerate(uses)
        ]
        reason: StopReason = "tool_use" if uses else "end_turn"
        yield [ModelDone(reason, Usage(200, len(words)), tuple(uses))]

    async def aclose(self) -> None:
        await self._demo.aclose()


def _newest_turn(messages: Sequence[Message]) -> Sequence[Message]:
    starts = [at for at, message in enumerate(messages) if message.role == "user"]
    return messages[starts[-1] :] if starts else ()


def _answer(turn: Sequence[Message]) -> tuple[str, list[ToolUseBlock]]:
    if not any(message.role == "assistant" for message in turn):
        uses = [
            ToolUseBlock(f"story_{turn[0].id}_{at}", name, arguments)
            for at, (name, arguments) in enumerate(CALLS)
        ]
        return BEFORE, uses
    names = {use.id: use.name for message in turn for use in message.tool_uses}
    blocks = [block for message in turn for block in message.content]
    results = {
        names[block.call_id]: block.text
        for block in blocks
        if isinstance(block, ToolResultBlock) and block.call_id in names
    }
    return final_text(results), []
